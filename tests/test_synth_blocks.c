/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the results of synth do not depend on blocks, on ranks, or on whether the dictionary is
 * kept in memory.  If a sink fails, synth fails on every rank.
 * RUN: np=1 2 3 5 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "synth/synth.h"
#include "tap.h"

enum { N = 23, K = 19, D = 2, P = 7, S = 4 };

struct made {
  float atoms[K][D][P], start[K][D][P], rows[N][P], codes[N][S][D];
  idx chosen[N][S];
  gidx next; /* the row that the sink expects next */
  int in_order;
};

static int rows_keep(void *self, gidx first, gidx count, const float *values)
{
  struct made *m = self;
  m->in_order &= first == m->next;
  m->next = first + count;
  memcpy(m->rows[first], values, (size_t)count * sizeof m->rows[0]);
  return OK;
}

static int atoms_keep(void *self, gidx first, gidx count, const float *values)
{
  float(*out)[D][P] = self;
  memcpy(out[first], values, (size_t)count * sizeof out[0]);
  return OK;
}

static int truth_keep(void *self, const struct support_block *b)
{
  struct made *m = self;
  memcpy(m->chosen[b->first], b->atoms, (size_t)b->n * sizeof m->chosen[0]);
  memcpy(m->codes[b->first], b->codes, (size_t)b->n * sizeof m->codes[0]);
  return OK;
}

static int sink_fails(void *self, gidx first, gidx count, const float *values)
{
  (void)self, (void)count, (void)values;
  CHECK(first == 0, ERR_IO, "the sink is full at row %lld", (long long)first);
  return OK;
}

static const struct synth_task task = {
    .planted = {.seed = 3, .k = K, .d = D, .p = P, .s = S, .noise = 0.1},
    .n = N,
    .cosine = 0.7,
    .block = N,
    .max_keep = 1 << 30};

static int everything_make(struct comm *c, const struct synth_task *t, struct made *m)
{
  struct synth s;
  memset(m, 0, sizeof *m);
  m->in_order = 1;
  TRY(synth_open(&s, c, t));
  TRY(synth_atoms(&s, 0, &(const struct matrix_sink){m->atoms, atoms_keep}));
  TRY(synth_atoms(&s, 1, &(const struct matrix_sink){m->start, atoms_keep}));
  TRY(synth_rows(&s, &(const struct matrix_sink){m, rows_keep},
                 &(const struct support_sink){m, truth_keep}));
  synth_close(&s);
  return OK;
}

/* Make everything by its definition, item by item. */
static void reference_make(struct made *m)
{
  const struct planted *g = &task.planted;
  real work[2 * D * P];
  memset(m, 0, sizeof *m);
  m->in_order = 1;
  m->next = N;
  for (idx a = 0; a < K; a++) {
    planted_atom(g, a, m->atoms[a][0], work);
    planted_start(g, a, m->atoms[a][0], task.cosine, m->start[a][0], work);
  }
  for (idx i = N - 1; i >= 0; i--) {
    const float *vector[S * D];
    planted_support(g, i, m->chosen[i], m->codes[i][0]);
    for (idx j = 0; j < S * D; j++) vector[j] = m->atoms[m->chosen[i][j / D]][j % D];
    planted_row(g, i, vector, m->codes[i][0], m->rows[i], work);
  }
}

static void test_cuts(struct comm *c, const struct made *want)
{
  const idx blocks[] = {1, 2, 5, 22, 23, 1000};
  static struct made got;
  claim_begin("blocks of any size, atoms kept or made again: the definition's bits");
  for (int again = 0; again < 2; again++)
    for (int i = 0; i < LENGTH(blocks); i++) {
      struct synth_task cut = task;
      cut.block = blocks[i];
      if (again) cut.max_keep = 0;
      int status = everything_make(c, &cut, &got);
      int same = c->rank != 0 || memcmp(&got, want, sizeof got) == 0;
      ok(!status && same, "blocks of %d, atoms %s", blocks[i], again ? "made again" : "kept");
    }
  claim_end();
}

static void test_failure(struct comm *c)
{
  struct synth_task cut = task;
  struct synth s;
  cut.block = 4;
  int status = synth_open(&s, c, &cut);
  int failed = synth_rows(&s, &(const struct matrix_sink){NULL, sink_fails}, NULL);
  ok(!status && failed == ERR_IO && strstr(status_message(), "full at row 4"),
     "a failing sink fails every rank: %s", status_message());
  comm_recover(c);
  status_clear();
  synth_close(&s);
}

int main(void)
{
  struct comm c;
  static struct made want;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  reference_make(&want);
  test_cuts(&c, &want);
  test_failure(&c);
  comm_close(&c);
  return done_testing();
}
