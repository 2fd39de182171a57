/* SPDX-License-Identifier: BSD-3-Clause
 * The nodes are kept like the bits of a binary counter of leaves: adding a leaf joins nodes where
 * adding 1 carries.  sha256_tree_root() joins the remaining nodes, from the last to the first. */
#include "base/sha256_tree.h"

#include <string.h>

#include "base/sha256_abreast.h"
#include "base/status.h"

enum { LEAF = 0, NODE = 1 };

int sha256_leaf_begin(struct sha256 *h)
{
  static const unsigned char first = LEAF;
  TRY(sha256_begin(h));
  TRY(sha256_add(h, &first, 1));
  return OK;
}

int sha256_leaf(const void *bytes, size_t length, unsigned char *leaf)
{
  struct sha256 hash = {0};
  int status = sha256_leaf_begin(&hash);
  if (status == OK) status = sha256_add(&hash, bytes, length);
  if (status == OK) status = sha256_end(&hash, leaf);
  sha256_free(&hash);
  return status;
}

int sha256_leaves(const unsigned char *const *parts, int count, size_t length,
                  unsigned char *const *leaves)
{
  int done = 0;
  if (length >= SHA256_ABREAST_LEAST && count > 1 && sha256_abreast_has())
    for (int some; count - done > 1; done += some) {
      some = count - done < SHA256_ABREAST ? 2 : SHA256_ABREAST;
      sha256_abreast(parts + done, some, length, leaves + done);
    }
  for (; done < count; done++) TRY(sha256_leaf(parts[done], length, leaves[done]));
  return OK;
}

/* right <- the node of left and right. */
static int join(const unsigned char *left, unsigned char *right)
{
  unsigned char both[1 + 2 * SHA256_BYTES] = {NODE};
  memcpy(both + 1, left, SHA256_BYTES);
  memcpy(both + 1 + SHA256_BYTES, right, SHA256_BYTES);
  TRY(sha256(both, sizeof both, right));
  return OK;
}

int sha256_tree_add(struct sha256_tree *tree, const unsigned char *leaf)
{
  unsigned char node[SHA256_BYTES];
  int bit = 0;
  memcpy(node, leaf, sizeof node);
  for (; tree->leaves >> bit & 1; bit++) TRY(join(tree->nodes[bit], node));
  memcpy(tree->nodes[bit], node, sizeof node);
  tree->leaves++;
  return OK;
}

int sha256_tree_root(const struct sha256_tree *tree, char *text)
{
  unsigned char node[SHA256_BYTES];
  int bit = 0;
  if (!tree->leaves) TRY(sha256("", 0, node));
  while (tree->leaves && !(tree->leaves >> bit & 1)) bit++;
  if (tree->leaves) memcpy(node, tree->nodes[bit], sizeof node);
  while (bit < 63 && tree->leaves >> (bit + 1)) {
    bit++;
    if (tree->leaves >> bit & 1) TRY(join(tree->nodes[bit], node));
  }
  sha256_hex(node, text);
  return OK;
}
