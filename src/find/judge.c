/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are read for each evaluation, since the offset changes.  Each rank encodes its sum blocks
 * (base/sums.h), piece by piece, by the same operations as a batch. */
#include "find/judge.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/codes.h"
#include "model/identity.h"
#include "refit/sparse_coder.h"
#include "refit/state.h"
#include "refit/sums.h"

enum { SAMPLE = 8192 }; /* fitted rows that are evaluated if none are held out */

static int host_open(struct finder *f)
{
  const struct device_options options = {
      .p = f->p, .d = 1, .threads = f->task->threads, .variant = f->task->variant, .kind = "cpu"};
  return device_open(&f->judge.host, &options);
}

int validation_alloc(struct finder *f)
{
  struct find_validation *j = &f->judge;
  struct arena *a = &f->arena;
  if (j->rows.n == 0) part_source(&f->sample, &f->fitted, 0, imin(f->fitted.n, SAMPLE), &j->rows);
  gidx n = refit_rows_partition(j->rows.n, f->c->size, f->c->rank, &j->first);
  CHECK(n <= INT32_MAX, ERR_MEMORY, "%lld held-out rows per rank are too many: add ranks",
        (long long)n);
  j->n = (idx)n;
  TRY(arena_alloc(a, &j->x, imax(n, 1) * f->p, sizeof *j->x));
  TRY(arena_alloc(a, &j->quality, n, sizeof *j->quality));
  if (device_is_gpu(&f->device) && !a->is_dry) TRY(host_open(f));
  return buffer_wrap(&f->device, &j->all, j->x, imax(n, 1) * f->p * (gidx)sizeof *j->x);
}

void validation_close(struct finder *f)
{
  buffer_free(&f->device, &f->judge.all);
  device_close(&f->judge.host);
}

int validation_read(struct finder *f)
{
  struct find_validation *j = &f->judge;
  struct comm *c = f->c;
  uint64_t terms = 0;
  gidx bytes = (gidx)j->n * f->p * (gidx)sizeof *j->x;
  TRY(comm_agree_at(
      c, refit_rows_load(&j->rows, f->described, j->first, j->n, f->task->threads, j->x, &terms),
      j->first));
  gidx sum = (gidx)terms;
  TRY(comm_sum(c, &sum, 1));
  j->hash = content_hash((uint64_t)sum, j->rows.n, f->p, 1);
  TRY(refit_tss(c, j->rows.n, j->x, f->p, &j->tss));
  int varies = c->rank || j->tss > 0;
  TRY(comm_agree(c, varies ? OK
                           : status_fail(ERR_INPUT, __FILE__, __LINE__,
                                         "the held-out rows of '%s' do not vary, so their "
                                         "explained variance is not defined: give other rows",
                                         j->rows.name)));
  return comm_agree(c, j->n ? device_put(&f->device, &j->all, 0, bytes) : OK);
}

int validation_advise(struct finder *f)
{
  const struct find_validation *j = &f->judge;
  struct metrics m;
  if (f->result->held_out_rows == 0) return OK;
  return refit_norms(f->c, j->rows.n, j->x, f->p, j->tss, "the held-out rows", &m);
}

/* Compute the quality of this rank's rows first .. first + n - 1, which have codes. */
static int piece_evaluate(struct finder *f, idx first, idx n)
{
  struct find_validation *j = &f->judge;
  const struct active *a = &f->active;
  return device_quality(j->host.backend ? &j->host : &f->device,
                        &(struct quality_job){.n = n,
                                              .rows = j->x + (gidx)first * f->p,
                                              .atoms = f->atoms,
                                              .start = a->start,
                                              .support = a->index,
                                              .codes = a->code,
                                              .quality = j->quality + first});
}

static int rows_evaluate(struct finder *f)
{
  struct active *a = &f->active;
  TRY(active_atoms(a, f->atoms, f->k, NULL));
  for (idx i = 0, n; i < f->judge.n; i += n) {
    n = (idx)imin(a->most_n, f->judge.n - i);
    TRY(active_encode_some(a, &f->judge.all, i, &n, &f->encoder));
    TRY(piece_evaluate(f, i, n));
  }
  return OK;
}

int validation_run(struct finder *f)
{
  struct find_validation *j = &f->judge;
  struct phase *judge = &f->result->phases[FIND_EVALUATE];
  phase_begin(judge);
  f->is_coded = 0;
  batches_rest(&f->batches); /* files have one user at a time */
  TRY(validation_read(f));
  TRY(comm_agree_at(f->c, rows_evaluate(f), j->first));
  struct coded coded = {.n = j->n, .first = j->first, .quality = {.host = j->quality}};
  struct metrics m = {.n = j->rows.n, .p = f->p};
  TRY(coded_metrics(&coded, f->c, j->tss, &m));
  real figures[] = {isnan(m.explained_variance) ? nan_canonical() : m.explained_variance, m.l0};
  TRY(comm_broadcast(f->c, figures, LENGTH(figures), sizeof *figures));
  j->explained = figures[0];
  j->l0 = figures[1];
  phase_end(judge, 0);
  return OK;
}
