/* SPDX-License-Identifier: BSD-3-Clause
 * RUN: np=2 3
 *
 * Claim: ranks that share the rows of a coder all get the bits of the references, even if there are
 * fewer rows than ranks, on the CPU and on GPUs.  If one rank cannot code a row, all ranks report
 * it. */
#include "device_coder.h"

#include <math.h>

static void check_shapes(const struct how *how)
{
  const struct sparse_coder_shape shapes[] = {
      {.k = 300, .d = 1, .p = 20, .s = 8, .rounds = 3, .nonnegative = 1},
      {.k = 90, .d = 2, .p = 24, .s = 6, .rounds = 2},
      {.k = 5, .d = 1, .p = 3, .s = 1, .rounds = 1},
  };
  for (int i = is_small(); i < LENGTH(shapes); i++)
    check_coder(how, 1, shapes[i], i ? 61 : 700, i == 2 ? 2 : 33);
}

/* Scores of the last row overflow.  The last rank has this row. */
static void check_failure(const struct how *how)
{
  struct coder_case t = {.shape = {.k = 50, .d = 1, .p = 8, .s = 3, .rounds = 1},
                         .sets = {{.n = 40}, {.n = 1}}};
  struct sparse_coder w = {0};
  struct coded_case *s = &t.sets[0];
  t.shape.kind = how->kind;
  t.shape.variant = how->variant;
  t.shape.threads = how->threads;
  t.shape.rows = s->n;
  t.shape.local_rank = sharing->local_rank;
  int status = case_alloc(&t);
  for (idx i = 0; i < 40 * t.shape.p && !status; i++) s->x[i] = i / t.shape.p == 39 ? 1e30f : 1;
  for (gidx i = 0; i < t.shape.p && !status; i++) t.tables[0][i] = 1e30f;
  if (!status) status = sparse_coder_open(&w, &t.shape);
  if (!status) status = sparse_coder_join(&w, sharing);
  if (!status) status = coded_open(&w, &s->coded, s->n, 100, s->x, s->atoms, s->score);
  if (!status) status = sparse_coder_put(&w, t.tables[0]);
  if (!status) status = sparse_coder_run(&w, &s->coded, 0, s->n, 0);
  ok(status == ERR_INPUT && strstr(status_message(), "row 139 and atom"), "%s: %d, %s", how->kind,
     status, status_message());
  comm_recover(sharing);
  status_clear();
  coded_close(&w, &s->coded);
  sparse_coder_leave(&w);
  sparse_coder_close(&w);
  arena_free(&t.arena);
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  sharing = &c;
  const struct how hows[] = {{"cpu", "baseline", 1, "off", NULL}, {"cuda", "auto", 2, "on", NULL}};
  for (int i = 0; i < LENGTH(hows); i++) {
    if (i == 1 && !gpu_present()) continue;
    claim_begin("%s: rows that ranks share have the references' bits", hows[i].kind);
    check_shapes(&hows[i]);
    check_failure(&hows[i]);
    claim_end();
  }
  ok(comm_close(&c) == OK, "close");
  return done_testing();
}
