/* SPDX-License-Identifier: BSD-3-Clause
 * The rows are read once.  The coder does the rest. */
#include "fit/validation.h"

#include "base/num.h"
#include "base/status.h"
#include "model/identity.h"
#include "refit/row_batches.h"
#include "refit/state.h"
#include "refit/sums.h"

static int validation_arrays(struct fit_validation *j, const struct sparse_coder_shape *s)
{
  TRY(arena_alloc(&j->arena, &j->x, (gidx)j->n * s->p, sizeof *j->x));
  TRY(arena_alloc(&j->arena, &j->atoms, (gidx)j->n * s->s, sizeof *j->atoms));
  return arena_alloc(&j->arena, &j->score, (gidx)j->n * s->s, sizeof *j->score);
}

int fit_validation_bytes(const struct sparse_coder_shape *shape, gidx n, int ranks, gidx *bytes)
{
  gidx first, share = refit_rows_partition(n, ranks, 0, &first);
  struct fit_validation dry = {.arena.is_dry = 1, .n = (idx)imin(share, INT32_MAX)};
  TRY(validation_arrays(&dry, shape));
  *bytes = (gidx)dry.arena.bytes;
  return OK;
}

static int arrays_make(struct fit_validation *j)
{
  gidx n = refit_rows_partition(j->rows->n, j->c->size, j->c->rank, &j->first);
  CHECK(n <= INT32_MAX, ERR_MEMORY, "%lld held-out rows per rank are too many: add ranks",
        (long long)n);
  j->n = (idx)n;
  return validation_arrays(j, &j->coder->shape);
}

/* Fail if the rows of all ranks are equal. */
static int variance_check(const struct fit_validation *j)
{
  CHECK(j->c->rank || j->tss > 0, ERR_INPUT,
        "the held-out rows of '%s' do not vary, so their explained variance is not defined: give "
        "other rows",
        j->rows->name);
  return OK;
}

int fit_validation_open(struct fit_validation *j, const struct row_source *rows, const real *mean,
                        struct sparse_coder *coder, struct comm *c)
{
  *j = (struct fit_validation){.c = c, .rows = rows, .coder = coder};
  if (rows->n == 0) return OK;
  uint64_t terms = 0;
  TRY(comm_agree(c, arrays_make(j)));
  TRY(comm_agree_at(c,
                    refit_rows_load(rows, mean, j->first, j->n, coder->shape.threads, j->x, &terms),
                    j->first));
  gidx sum = (gidx)terms;
  TRY(comm_sum(c, &sum, 1));
  j->hash = content_hash((uint64_t)sum, rows->n, rows->p, 1);
  TRY(refit_tss(c, rows->n, j->x, rows->p, &j->tss));
  TRY(comm_agree(c, variance_check(j)));
  return comm_agree(c, coded_open(coder, &j->coded, j->n, j->first, j->x, j->atoms, j->score));
}

int fit_validation_advise(const struct fit_validation *j)
{
  struct metrics m;
  if (j->rows->n == 0) return OK;
  return refit_norms(j->c, j->rows->n, j->x, j->rows->p, j->tss, "the held-out rows", &m);
}

void fit_validation_close(struct fit_validation *j)
{
  if (j->coder) coded_close(j->coder, &j->coded);
  arena_free(&j->arena);
  *j = (struct fit_validation){0};
}

int fit_validation_run(struct fit_validation *j, const struct stops *stops, real *explained,
                       int *stopped)
{
  *explained = nan_canonical();
  *stopped = 0;
  if (!j->rows || j->rows->n == 0) return OK;
  struct row_batches batches = {j->n, sparse_coder_rows_at_once(j->coder, 1), .key = j->first,
                                .stops = stops};
  int status = OK;
  while (row_batches_next(&batches, j->c, &status))
    status = sparse_coder_run(j->coder, &j->coded, batches.first, batches.count, 0);
  TRY(status);
  *stopped = batches.is_stopped;
  if (*stopped) return OK;
  TRY(comm_agree(j->c, coded_get(j->coder, &j->coded, CODED_QUALITY)));
  struct metrics m = {.n = j->rows->n, .p = j->rows->p};
  TRY(coded_metrics(&j->coded, j->c, j->tss, &m));
  if (j->c->rank == 0) *explained = m.explained_variance;
  return OK;
}
