/* SPDX-License-Identifier: BSD-3-Clause
 * The time of each part of a job is the work of this part divided by a rate. */
#include "encode/times.h"

#include <math.h>

#include "model/route.h"

void encode_rows_times(const struct encode_shape_of_rows *s, const struct rates *r, struct times *t)
{
  double part = s->atoms * s->d / s->group_ranks, own = s->codes ? s->top_s * s->d : 0;
  enum rate codes = s->nonnegative ? RATE_NONNEGATIVE : RATE_CODES;
  for (idx round = 1, begin = 0; round <= s->rounds; round++) {
    idx end = round_end(s->top_s, s->rounds, round);
    double rate = rate_at(r, RATE_ROUTE, s->columns, part, end - begin);
    times_add(t, "route", s->n * s->columns * s->atoms * s->d / rate);
    begin = end;
  }
  if (s->codes) times_add(t, "codes", s->n / rate_at(r, codes, s->columns, own, s->rounds));
  if (s->group_ranks == 1) return;
  double others = s->group_ranks - 1;
  double rows = 4 * s->n * s->columns * others * s->rounds;
  double lists = (double)sizeof(struct entry) * s->n * s->top_s * others;
  double fetched = 4 * s->columns * fmin(s->n * own, s->group_ranks * s->atoms * s->d);
  times_add(t, "exchange",
            (rows + lists + fetched * others / s->group_ranks) /
                rate_at(r, RATE_EXCHANGE, 1, 1, 1));
}

/* Every rank reads a part of the dictionary, and lays out the atoms that it holds. */
static double load_seconds(const struct encode_task *t, const struct rates *r)
{
  double bytes = 4.0 * t->atoms->k * t->atoms->d * t->atoms->p;
  return bytes * (1 + t->groups) / rate_at(r, RATE_READ, 1, 1, 1);
}

/* For the decoder cosine every atom is routed like a row with one atom.  For nonnegative codes the
 * negative of each atom is routed, too. */
static double cosine_seconds(const struct encode_task *t, const struct rates *r)
{
  double k = (double)t->atoms->k * t->atoms->d, p = t->atoms->p;
  if (t->no_cosine || t->atoms->k > t->max_cosine) return 0;
  return k * k * p * (1 + t->nonnegative) / rate_at(r, RATE_ROUTE, p, k, 1);
}

void encode_times(const struct encode_task *task, int ranks, const struct rates *r, struct times *t)
{
  const struct encode_shape_of_rows shape = {.n = (double)task->rows->n,
                                             .columns = task->rows->p,
                                             .atoms = task->atoms->k,
                                             .d = task->atoms->d,
                                             .top_s = task->top_s,
                                             .rounds = task->rounds,
                                             .group_ranks = ranks / task->groups,
                                             .codes = task->codes,
                                             .nonnegative = task->nonnegative};
  double read = shape.n * task->rows->row_bytes, writers = task->by_ranks ? 1 : ranks;
  double written = shape.n * task->top_s * (8 + 4.0 * task->codes * task->atoms->d);
  times_add(t, "load", load_seconds(task, r));
  encode_rows_times(&shape, r, t);
  times_add(t, "count", shape.n / rate_at(r, RATE_COUNT, shape.columns, shape.top_s, 1));
  times_add(t, "cosine", cosine_seconds(task, r));
  times_beside(t, "read", read / rate_at(r, RATE_READ, 1, 1, 1));
  times_beside(t, "write", written * writers / rate_at(r, RATE_WRITE, 1, 1, 1));
  times_add(t, "check", written * writers / rate_at(r, RATE_CHECK, 1, 1, 1));
}
