/* SPDX-License-Identifier: BSD-3-Clause
 * A fit routes and codes its rows before its first sweep and at the end of each. */
#include "fit/times.h"

#include <math.h>

#include "base/num.h"
#include "encode/times.h"
#include "refit/times.h"

/* The shape of a sweep of UPDATE_ATOMS. */
static struct sweep_shape sweep_of(const struct fit_task *task, const struct fit_forecast *f,
                                   int ranks)
{
  return (struct sweep_shape){.rows = (double)f->part_rows,
                              .atoms = task->k,
                              .columns = task->rows->p,
                              .d = task->d,
                              .s = (idx)imin(task->top_s, task->k),
                              .q = task->directions,
                              .ranks = ranks};
}

/* The seconds of an update by all ranks, over all rows in memory.  If all atoms move at once, each
 * rank has some of the columns. */
static double update_seconds(const struct fit_task *task, const struct fit_forecast *f, int ranks,
                             const struct rates *r)
{
  double n = (double)f->part_rows, k = task->k, p = task->rows->p, each = fmax(p / ranks, 1);
  double s = (double)imin(task->top_s, task->k);
  if (f->update == UPDATE_CONJUGATE) return f->descent / rate_at(r, RATE_CONJUGATE, each, s, 1);
  if (f->update == UPDATE_ATOMS) {
    const struct sweep_shape sweep = sweep_of(task, f, ranks);
    return sweep_seconds(&sweep, r);
  }
  return n * s * (s + p) / rate_at(r, RATE_SUMS, each, k, s) +
         f->descent / rate_at(r, RATE_DESCENT, each, k, 1);
}

/* The seconds of finding the classes of a sweep; 0 if all atoms move at once. */
static double color_seconds(const struct fit_task *task, const struct fit_forecast *f, int ranks,
                            const struct rates *r)
{
  const struct sweep_shape sweep = sweep_of(task, f, ranks);
  return f->update == UPDATE_ATOMS ? classes_seconds(&sweep, r) : 0;
}

/* The seconds that exchanges take in a sweep.  Lists go to all ranks; in each pass of UPDATE_JOINT
 * the Gram rows go to all ranks, too. */
static double exchange_seconds(const struct fit_task *task, const struct fit_forecast *f, int ranks,
                               const struct rates *r)
{
  double k = task->k, others = ranks - 1;
  double bytes = 8.0 * (double)f->part_rows * (double)imin(task->top_s, task->k) * others;
  if (f->update == UPDATE_JOINT) bytes += 8 * k * k * task->passes * others;
  int has_lists = ranks > 1 && f->update != UPDATE_ATOMS;
  return has_lists ? bytes / rate_at(r, RATE_EXCHANGE, 1, 1, 1) : 0;
}

/* The seconds in which every rank gets its columns of the rows that other ranks read. */
static double columns_seconds(const struct fit_task *task, const struct fit_forecast *f, int ranks,
                              const struct rates *r)
{
  double bytes = 4.0 * (double)f->part_rows * task->rows->p * (ranks - 1) / ranks;
  return ranks == 1 || f->update == UPDATE_ATOMS ? 0 : bytes / rate_at(r, RATE_EXCHANGE, 1, 1, 1);
}

double fit_times(const struct fit_task *task, const struct fit_forecast *f, int ranks, int runs,
                 const struct rates *r, struct times *t)
{
  const struct encode_shape_of_rows rows = {.n = (double)f->part_rows + (double)f->held,
                                            .columns = task->rows->p,
                                            .atoms = task->k,
                                            .d = task->d,
                                            .top_s = (idx)imin(task->top_s, task->k),
                                            .rounds = task->rounds,
                                            .group_ranks = 1,
                                            .codes = 1,
                                            .nonnegative = task->nonnegative};
  double sweeps = (double)task->sweeps * (double)f->parts, row = task->rows->row_bytes;
  double bytes_rate = rate_at(r, RATE_READ, 1, 1, 1);
  struct times one = {.threads = t->threads};
  encode_rows_times(&rows, r, &one);
  double update = update_seconds(task, f, ranks, r);
  double exchange = exchange_seconds(task, f, ranks, r), color = color_seconds(task, f, ranks, r);
  double parts = f->parts > 1 ? sweeps : 1;
  double read = parts * (double)f->part_rows + (double)f->held;
  times_add(t, "mean", task->center ? (double)f->fitted * row / bytes_rate : 0);
  times_add(t, "read", runs * read * row / bytes_rate);
  times_add(t, "columns", runs * parts * columns_seconds(task, f, ranks, r));
  for (int i = 0; i < one.count; i++)
    times_add(t, one.lines[i].name, runs * (sweeps + 1) * one.lines[i].seconds);
  times_add(t, "color", runs * sweeps * color);
  times_add(t, "update", runs * sweeps * update);
  times_add(t, "exchange", runs * sweeps * exchange);
  return times_total(&one) + color + update + exchange;
}
