/* SPDX-License-Identifier: BSD-3-Clause
 * Supports are not read, so the number of classes is estimated as for random supports. */
#include "refit/times.h"

#include <math.h>

#include "base/num.h"
#include "base/sums.h"
#include "encode/times.h"
#include "refit/layout.h"

/* Work other than passes over rows, as multiply-adds that take about the same time.  ROW_TERMS: for
 * each entry, what the row sends to the owner of the atom.  The others are for each column.
 * SUM_TERMS: a sum of residuals over a sum block, which is joined and sent.  ATOM_TERMS +
 * SQUARE_TERMS q^2: the memory, the Gram-Schmidt steps and the products of an atom with q
 * directions.  The numbers were fitted to measured sweeps with P = 64 to 1,024, 16 to 512 rows per
 * atom, and q = 1 to 4: times differ from the fit by at most a factor 1.21. */
static const double ROW_TERMS = 900, SUM_TERMS = 15, ATOM_TERMS = 200, SQUARE_TERMS = 12;

/* The number of passes over the columns of a row for each of its atoms: to find the directions, to
 * assemble the system, to try the step, to keep it, and to compute the residuals at the start. */
static double row_passes(double d, double q)
{
  return d + 2 * (q - 1) + d + q + 1 + 3 * d + 1 + 2 * d + d;
}

double sweep_work(const struct sweep_shape *s)
{
  double d = s->d, q = s->q, blocks = fmax(ceil(s->rows / ROW_BLOCK), 1);
  double entries = s->rows * s->s, mean = entries / s->atoms;
  double segments = s->atoms * blocks * -expm1(-mean / blocks);
  double sums = SUM_TERMS * (d + q - 1) * segments;
  double own = s->atoms * d * (ATOM_TERMS + SQUARE_TERMS * q * q);
  return entries * (row_passes(d, q) * s->columns + ROW_TERMS * d) + (sums + own) * s->columns;
}

/* The expected number of rows that two atoms share, if supports are random. */
static double shared_rows(const struct sweep_shape *s)
{
  return s->rows * s->s * (s->s - 1.) / (s->atoms * s->atoms);
}

/* The number of classes, if supports are random.  Greedy colouring of a random graph of K atoms, in
 * which two atoms share no row with probability exp(-L), gives classes of about log K / L atoms.
 * Half an atom more is closer for small classes: of 15,232 and 60,160 rows with s = 32, K = 2,048
 * and 4,096, fits had 779 and 1,426 classes; 783 and 1,443 are estimated. */
static double classes_expected(const struct sweep_shape *s)
{
  double k = s->atoms, size = log(fmax(k, 2)) / shared_rows(s) + 0.5;
  return fmax(k / fmax(size, 1), fmin(s->s, k));
}

/* The rate of a sweep, in multiply-adds of sweep_work() per second: that of moves in one direction,
 * if it was measured and fits. */
static double moves_rate(const struct sweep_shape *s, const struct rates *r)
{
  double entries = fmax(s->rows * s->s, 1), classes = classes_expected(s);
  double atom_rows = fmax(entries / s->atoms, 1);
  double class_rows = fmax(entries / classes / s->ranks, 1);
  double one = rate_at(r, RATE_MOVES_ONE, s->columns, atom_rows, class_rows);
  return s->q == 1 && !isnan(one) ? one : rate_at(r, RATE_MOVES, s->columns, atom_rows, class_rows);
}

double sweep_seconds(const struct sweep_shape *s, const struct rates *r)
{
  return sweep_work(s) / moves_rate(s, r);
}

double residual_seconds(const struct sweep_shape *s, const struct rates *r)
{
  return s->rows * s->s * s->d * s->columns / moves_rate(s, r);
}

double classes_seconds(const struct sweep_shape *s, const struct rates *r)
{
  return s->rows * s->s * s->s / 2. / rate_at(r, RATE_COLOR, s->s, 1, 1);
}

/* Add the times of routing and coding `rows` rows. */
static void rows_times(const struct sweep_shape *s, const struct refit_task *task, double rows,
                       idx rounds, const struct rates *r, struct times *t)
{
  const struct encode_shape_of_rows shape = {.n = rows,
                                             .columns = s->columns,
                                             .atoms = s->atoms,
                                             .d = s->d,
                                             .top_s = s->s,
                                             .rounds = rounds,
                                             .group_ranks = 1,
                                             .codes = 1,
                                             .nonnegative = task->nonnegative};
  encode_rows_times(&shape, r, t);
}

/* Add the times of what follows the steps of each sweep. */
static void ends_times(const struct sweep_shape *s, const struct refit_task *task,
                       const struct refit_extent *e, const struct rates *r, struct times *t)
{
  double sweeps = (double)e->sweeps, own = s->s * s->d, k = s->atoms * s->d;
  enum rate codes = task->nonnegative ? RATE_NONNEGATIVE : RATE_CODES;
  double supports = s->rows * (8 + s->s * (8 + 4. * s->d)), others = s->ranks - 1;
  double written = s->ranks * sweeps * (supports + 4 * k * s->columns);
  if (e->reroute)
    rows_times(s, task, sweeps * s->rows, e->rounds, r, t);
  else
    times_add(t, "codes", sweeps * s->rows / rate_at(r, codes, s->columns, own, 1));
  if (e->held_out) rows_times(s, task, (sweeps + 1) * (double)e->held_out, e->rounds, r, t);
  times_add(t, "count", sweeps * s->rows / rate_at(r, RATE_COUNT, s->columns, s->s, 1));
  if (task->atoms->k <= task->max_cosine)
    times_add(t, "cosine", sweeps * k * k * s->columns / rate_at(r, RATE_ROUTE, s->columns, k, 1));
  if (s->ranks > 1)
    times_add(t, "exchange",
              sweeps * supports * others / s->ranks / rate_at(r, RATE_EXCHANGE, 1, 1, 1));
  times_add(t, "write", written / rate_at(r, RATE_WRITE, 1, 1, 1));
  times_add(t, "check", written / rate_at(r, RATE_CHECK, 1, 1, 1));
}

void refit_times(const struct refit_task *task, const struct refit_extent *e, int ranks,
                 const struct rates *r, struct times *t)
{
  const struct sweep_shape s = {.rows = (double)task->rows->n,
                                .atoms = task->atoms->k,
                                .columns = task->rows->p,
                                .d = task->atoms->d,
                                .s = refit_task_support(task),
                                .q = e->q,
                                .ranks = ranks};
  double readers = task->shares ? 1 : ranks, frames = 4. * s.atoms * s.d * s.columns;
  double read = s.rows * (task->rows->row_bytes + 8 + s.s * (8 + 4. * s.d)) +
                (double)e->held_out * e->held_out_bytes + readers * frames;
  double finds = e->has_classes ? 0 : e->reroute ? (double)e->sweeps : 1;
  times_add(t, "read", read / rate_at(r, RATE_READ, 1, 1, 1));
  times_add(t, "color", finds * classes_seconds(&s, r));
  times_add(t, "residual", residual_seconds(&s, r));
  times_add(t, "atoms", (double)e->sweeps * sweep_seconds(&s, r));
  ends_times(&s, task, e, r, t);
}
