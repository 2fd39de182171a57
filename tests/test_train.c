/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: training over ranks and threads has the bits of the plain loops with dense matrices, dead
 * latents and batches of several chunks too; every epoch has every row once, in windows.
 * RUN: np=1 2 3 */
#include "train_cases.h"

enum { MOST = 40000 };

/* A pool has whole windows, mixed; an epoch all rows. */
static void check_shuffle(void)
{
  static const gidx sizes[] = {1, 128, 129, 1000, SHUFFLE_ROWS, SHUFFLE_ROWS + 1, MOST};
  claim_begin("an epoch has every row once, and another order than the one before");
  for (int i = 0; i < LENGTH(sizes); i++) {
    struct arena arena = {0};
    struct shuffle s;
    gidx n = sizes[i], *seen, all = 1, moved = 0, *last;
    arena_alloc(&arena, &seen, n, sizeof *seen);
    arena_alloc(&arena, &last, n, sizeof *last);
    shuffle_init(&s, &arena, n, 9);
    for (gidx epoch = 0; epoch < 2; epoch++)
      for (gidx at = 0; at < n; at++) {
        idx skip, w = 0, count = 0;
        gidx first = 0;
        shuffle_take(&s, epoch, at, &skip);
        idx left = s.at[skip];
        for (shuffle_window(&s, w, &first, &count); left >= count;) {
          left -= count;
          shuffle_window(&s, ++w, &first, &count);
        }
        gidx row = first + left;
        all &= row >= 0 && row < n && ++seen[row] == epoch + 1;
        moved += epoch && last[at] != row;
        last[at] = row;
      }
    ok(all, "%lld rows, each once", (long long)n);
    ok(n < 100 || moved > n / 2, "%lld of %lld rows are elsewhere in the next epoch",
       (long long)moved, (long long)n);
    arena_free(&arena);
  }
  claim_end();
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  train_device = "cpu";
  if (c.size == 1) check_shuffle();
  check_reference(&c);
  check_resumed(&c);
  check_judge(&c);
  comm_close(&c);
  return done_testing();
}
