/* SPDX-License-Identifier: BSD-3-Clause
 * RUN: np=2 3 4
 *
 * Claim: if ranks share sum blocks, the sums have the bits of the tree of one rank (N.0), even if
 * the blocks of a rank need more nodes than the tree of all blocks. */
#include "refit/sums.h"

#include <string.h>

#include "base/block_tree.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "tap.h"

enum { WIDTH = 3, BLOCKS = 200 };

static void chains_fill(real *chains, gidx first, gidx blocks)
{
  for (gidx i = 0; i < blocks * WIDTH; i++)
    chains[i] = random_normal(3, 1, (uint64_t)(first * WIDTH + i));
}

static int tree_total(gidx blocks, real *out)
{
  struct arena arena = {0};
  struct block_tree tree;
  real chain[WIDTH];
  TRY(block_tree_init(&tree, &arena, WIDTH, 0, blocks));
  for (gidx b = 0; b < blocks; b++) {
    chains_fill(chain, b, 1);
    block_tree_push(&tree, (struct block_node){0, 1, b}, chain);
  }
  block_tree_total(&tree, out);
  arena_free(&arena);
  return OK;
}

int main(void)
{
  struct comm c;
  int wrong = 0, deeper = 0;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  for (gidx blocks = 1; blocks <= BLOCKS && !wrong; blocks++) {
    static real chains[BLOCKS * WIDTH];
    real wanted[WIDTH], got[WIDTH] = {0};
    gidx rows = (blocks - 1) * ROW_BLOCK + 1, first, own;
    refit_blocks_partition(rows, c.size, c.rank, &first, &own);
    deeper += block_tree_depth(first, own) > block_tree_depth(0, blocks);
    chains_fill(chains, first, own);
    wrong = tree_total(blocks, wanted) || refit_sum(&c, rows, chains, WIDTH, got);
    wrong |= c.rank == 0 && memcmp(got, wanted, sizeof got);
    if (wrong) printf("# %lld blocks: %s\n", (long long)blocks, status_message());
  }
  ok(!wrong, "1 to %d blocks", BLOCKS);
  ok(deeper > 0 || c.rank == 0, "some blocks of a rank need a deeper tree than all blocks");
  ok(comm_close(&c) == OK, "close");
  return done_testing();
}
