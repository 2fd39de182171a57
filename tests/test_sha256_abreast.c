/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: texts that are hashed abreast get the leaf hashes of libcrypto, for any length, number and
 * addresses of texts.  The test takes the loops for this processor, which may have instructions for
 * SHA-256 or not. */
#include <stdlib.h>
#include <string.h>

#include "base/sha256_abreast.h"
#include "base/sha256_tree.h"
#include "tap.h"

enum { COUNT = 7, MOST = 5000, STEP = MOST + 13 };

static unsigned char bytes[COUNT * STEP];

/* How many of the hashes of `count` texts of `length` bytes are wrong. */
static int wrong_count(int count, size_t length)
{
  const unsigned char *parts[COUNT] = {NULL};
  unsigned char leaves[COUNT][SHA256_BYTES] = {{0}}, leaf[SHA256_BYTES];
  unsigned char *to[COUNT] = {NULL};
  int wrong = 0;
  for (int i = 0; i < count; i++) {
    parts[i] = bytes + (size_t)i * STEP + length % 5;
    to[i] = leaves[i];
  }
  if (sha256_leaves(parts, count, length, to)) return count;
  for (int i = 0; i < count; i++)
    wrong += sha256_leaf(parts[i], length, leaf) || memcmp(leaf, leaves[i], sizeof leaf) != 0;
  return wrong;
}

int main(void)
{
  int wrong = 0;
  srand(3);
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(rand() >> 7);
  for (int count = 0; count <= COUNT; count++) {
    for (size_t length = 0; length < 300; length++) wrong += wrong_count(count, length);
    for (size_t length = MOST - 130; length < MOST; length++) wrong += wrong_count(count, length);
  }
  ok(wrong == 0,
     "0 to 7 leaves at a time: ~%d hashes are wrong; this processor %s instructions of SHA", wrong,
     sha256_abreast_has() ? "has" : "has no");
  return done_testing();
}
