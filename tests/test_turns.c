/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a turn of encode, in which each group takes one block of rows, takes few collective
 * operations.  If each rank has all atoms, there are at most two, and one more for each further
 * round.  If the ranks of a group share the atoms, there are at most eight for each round.
 * RUN: np=2 4 */
#include <string.h>

#include "base/status.h"
#include "base/sums.h"
#include "encode/encode.h"
#include "model/synth.h"
#include "tap.h"

enum { K = 40, P = 24, TURNS = 6 };

static int rows_make(void *self, gidx first, idx count, float *out)
{
  (void)self;
  for (gidx i = 0; i < count; i++) trig_row(first + i, P, out + i * P);
  return OK;
}

/* Each atom has a single 1. */
static int atoms_make(void *self, idx first, idx count, float *out)
{
  (void)self;
  memset(out, 0, (size_t)count * P * sizeof *out);
  for (idx a = 0; a < count; a++) out[(gidx)a * P + (first + a) % P] = 1;
  return OK;
}

static int supports_drop(void *self, const struct support_block *block)
{
  (void)self, (void)block;
  return OK;
}

/* The number of collective operations of `turns` turns, including those before and after them; -1:
 * a failure. */
static gidx calls_of(struct comm *c, int groups, idx rounds, gidx turns)
{
  struct row_source rows = {.n = turns * groups * ROW_BLOCK,
                            .p = P,
                            .name = "rows",
                            .row_bytes = 4.0 * P,
                            .read = rows_make};
  struct atom_source atoms = {
      .k = K, .d = 1, .p = P, .name = "atoms", .self = NULL, .read = atoms_make};
  const struct support_sink sink = {NULL, supports_drop};
  struct encode_task task = {.rows = &rows,
                             .atoms = &atoms,
                             .sink = &sink,
                             .top_s = 6,
                             .rounds = rounds,
                             .groups = groups,
                             .block = ROW_BLOCK,
                             .threads = 1,
                             .variant = "auto",
                             .codes = 1};
  struct encode_result result;
  gidx before = c->calls;
  encode_cut_choose(&task, c->size);
  int status = encode_run(&task, c, &result);
  encode_free(&result);
  return status ? -1 : c->calls - before;
}

/* Check the number of collective operations per turn, without those before and after the turns. */
static void check(struct comm *c, int groups, idx rounds, gidx most)
{
  gidx few = calls_of(c, groups, rounds, 2), many = calls_of(c, groups, rounds, 2 + TURNS);
  double each = (double)(many - few) / TURNS;
  ok(few > 0 && many > few && each <= (double)most, "%d groups of %d, %d rounds: %.1f per turn",
     groups, c->size / groups, rounds, each);
  if (c->rank == 0)
    printf("# %d groups of %d, %d rounds: %.1f collective operations per turn\n", groups,
           c->size / groups, rounds, each);
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  claim_begin("a turn takes few collective operations");
  for (idx rounds = 1; rounds <= 3; rounds += 2) {
    check(&c, c.size, rounds, 1 + rounds);
    check(&c, 1, rounds, 8 * rounds);
  }
  claim_end();
  int status = done_testing();
  return comm_close(&c) || status;
}
