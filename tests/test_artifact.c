/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the hash that names a dictionary is the one that hashlib computes.  It does not depend on
 * the order and the signs of atoms, and it changes when any value changes by its last bit. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/status.h"
#include "model/artifact.h"
#include "tap.h"

enum { K = 5, D = 2, P = 7, VALUES = K * D * P };

/* Multiples of 1/64.  Some are zeros, and atom 2 has two values of the largest magnitude. */
static void atoms_make(float *atoms)
{
  for (int i = 0; i < VALUES; i++) atoms[i] = (float)((i * 37 + 11) % 101 - 50) / 64;
  atoms[2 * D * P + 3] = 1;
  atoms[2 * D * P + 9] = -1;
  atoms[4] = 0;
}

static int hash_of(const float *atoms, idx d, char *sha)
{
  struct artifact a;
  int status = artifact_make(&a, atoms, VALUES / (d * P), d, P);
  memcpy(sha, a.sha256, SHA256_HEX);
  artifact_free(&a);
  return status == OK;
}

/* 1: the hash is `wanted`; 0: it is another; -1: there is none. */
static int same_hash(const float *atoms, const char *wanted)
{
  char sha[SHA256_HEX];
  return hash_of(atoms, D, sha) ? strcmp(sha, wanted) == 0 : -1;
}

static void values_check(float *atoms, const char *wanted)
{
  int kept = 0;
  for (int i = 0; i < VALUES; i++)
    for (int up = -1; up <= 1; up += 2) {
      float old = atoms[i];
      atoms[i] = nextafterf(old, (float)(2 * up));
      kept += same_hash(atoms, wanted) != 0;
      atoms[i] = old;
    }
  ok(kept == 0, "a change of the last bit of any of %d values changes the hash: %d do not", VALUES,
     kept);
}

static void turned_check(const float *atoms, const char *wanted)
{
  float other[VALUES];
  int changed = 0;
  for (int mask = 0; mask < 1 << K; mask++) {
    for (int i = 0; i < VALUES; i++) other[i] = mask >> i / (D * P) & 1 ? -atoms[i] : atoms[i];
    changed += same_hash(other, wanted) != 1;
  }
  ok(changed == 0, "no choice of %d atoms' signs changes the hash", K);
  memcpy(other, atoms, sizeof other);
  for (int i = 0; i < P; i++) other[i] = -other[i];
  ok(same_hash(other, wanted) == 0, "the sign of one vector of a frame changes the hash");
}

static void order_check(const float *atoms, const char *wanted)
{
  float other[VALUES];
  int changed = 0;
  for (int seed = 0; seed < 20; seed++) {
    int order[K] = {0, 1, 2, 3, 4};
    for (int i = K - 1; i > 0; i--) {
      int j = (int)random_below((uint64_t)seed, 1, (uint64_t)i, (uint64_t)i + 1), old = order[i];
      order[i] = order[j];
      order[j] = old;
    }
    for (int a = 0; a < K; a++)
      memcpy(other + a * D * P, atoms + order[a] * D * P, D * P * sizeof *other);
    changed += same_hash(other, wanted) != 1;
  }
  ok(changed == 0, "none of 20 orders of the atoms changes the hash");
  memcpy(other, atoms, sizeof other);
  memcpy(other + P, atoms, P * sizeof *other);
  memcpy(other, atoms + P, P * sizeof *other);
  ok(same_hash(other, wanted) == 0, "the order of a frame's vectors changes the hash");
}

int main(void)
{
  /* computed by hashlib, with the program in tests/test_terminal.py */
  static const char frames[] = "55b9e44fcc72b8b74ee350c20057f3193dd95a8c00b5f366f09ca69963659bc8",
                    vectors[] = "29414ec52894b8a9550741a99410553b9381e146bfdd7c29c1aad26c313a671e";
  float atoms[VALUES];
  char sha[SHA256_HEX];
  atoms_make(atoms);
  ok(hash_of(atoms, 1, sha) && strcmp(sha, vectors) == 0, "the hash of %d atoms: %s", VALUES / P,
     sha);
  ok(hash_of(atoms, D, sha) && strcmp(sha, frames) == 0,
     "the hash of the same values as %d frames: %s", K, sha);
  values_check(atoms, frames);
  turned_check(atoms, frames);
  order_check(atoms, frames);
  return done_testing();
}
