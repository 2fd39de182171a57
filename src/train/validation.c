/* SPDX-License-Identifier: BSD-3-Clause
 * Rows stay on the device, which gets the encoder's matrix for each evaluation.  The codes are
 * copied back from the device, and their quality is computed on the CPU. */
#include "train/validation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "device/codes.h"
#include "device/encoder.h"
#include "device/route.h"
#include "model/identity.h"
#include "refit/state.h"
#include "refit/sums.h"

int train_validation_alloc(struct train_validation *v, struct arena *a)
{
  gidx n = refit_rows_partition(v->rows->n, v->c->size, v->c->rank, &v->first);
  if (v->rows->n == 0) return OK;
  CHECK(n <= INT32_MAX, ERR_MEMORY, "%lld held-out rows are too many for a rank: use more ranks",
        (long long)n);
  v->n = (idx)n;
  TRY(arena_alloc(a, &v->x, n * v->p, sizeof *v->x));
  TRY(arena_alloc(a, &v->quality, n, sizeof *v->quality));
  TRY(arena_alloc(a, &v->start, n + 1, sizeof *v->start));
  TRY(arena_alloc(a, &v->lengths, n, sizeof *v->lengths));
  TRY(arena_alloc(a, &v->threshold, v->k, sizeof *v->threshold));
  return arena_alloc(a, &v->bias, v->k, sizeof *v->bias);
}

static struct device_options options_of(const struct train_validation *v, const char *kind)
{
  return (struct device_options){.p = v->p,
                                 .d = 1,
                                 .max_atoms = v->k,
                                 .threads = v->threads,
                                 .variant = v->variant,
                                 .kind = kind,
                                 .top_k = 1,
                                 .route_rows = v->n,
                                 .encoder = 1,
                                 .local_rank = v->c->local_rank,
                                 .kernels = v->kernels};
}

gidx train_validation_beside(const struct train_validation *v, const char *kind)
{
  struct device_options options = options_of(v, kind);
  struct device dry;
  gidx forms, entries = (gidx)v->n * v->s * 12;
  if (v->n == 0) return 0;
  device_open_dry(&dry, &options, &forms);
  return entries + (device_is_gpu(&dry) ? 0 : entries + forms);
}

static int device_begin(struct train_validation *v, const char *kind)
{
  struct device_options options = options_of(v, kind);
  gidx bytes = (gidx)v->n * v->p * (gidx)sizeof *v->x;
  TRY(device_open(&v->device, &options));
  return buffer_wrap(&v->device, &v->own, v->x, bytes);
}

int train_validation_open(struct train_validation *v, const char *kind)
{
  struct device_options host = options_of(v, "cpu");
  int is_gpu = strcmp(kind, "cuda") == 0;
  if (v->n == 0) return OK;
  int status = device_begin(v, kind);
  if (status == ERR_MEMORY && is_gpu) {
    log_rank("held-out rows are judged by the CPU: %s", status_message());
    status_clear();
    v->own = (struct buffer){0};
    device_close(&v->device);
    status = device_begin(v, "cpu");
    is_gpu = 0;
  }
  TRY(status);
  host.encoder = host.max_atoms = 0;
  return is_gpu ? device_open(&v->host, &host) : OK;
}

void train_validation_close(struct train_validation *v)
{
  buffer_free(&v->device, &v->own);
  device_close(&v->device);
  device_close(&v->host);
  entries_free(&v->found);
}

int train_validation_read(struct train_validation *v, const real *mean)
{
  uint64_t terms = 0;
  struct metrics m;
  struct comm *c = v->c;
  if (v->rows->n == 0) return OK;
  TRY(comm_agree_at(c, refit_rows_load(v->rows, mean, v->first, v->n, v->threads, v->x, &terms),
                    v->first));
  gidx sum = (gidx)terms;
  TRY(comm_sum(c, &sum, 1));
  v->hash = content_hash((uint64_t)sum, v->rows->n, v->p, 1);
  TRY(refit_tss(c, v->rows->n, v->x, v->p, &v->tss));
  int varies = c->rank || v->tss > 0;
  TRY(comm_agree(c, varies ? OK
                           : status_fail(ERR_INPUT, __FILE__, __LINE__,
                                         "the held-out rows of '%s' do not vary: their explained "
                                         "variance is not defined",
                                         v->rows->name)));
  TRY(refit_norms(c, v->rows->n, v->x, v->p, v->tss, "the held-out rows", &m));
  gidx bytes = (gidx)v->n * v->p * (gidx)sizeof *v->x;
  return comm_agree(c, v->n ? device_put(&v->device, &v->own, 0, bytes) : OK);
}

/* Find the codes of this rank's rows; *finite <- 0 if a score is not finite. */
static int codes_find(struct train_validation *v, const float *weights, int *finite)
{
  const struct encoder encoder = {.kind = v->has_threshold ? ENCODER_BATCHTOPK : ENCODER_TOPK,
                                  .k = v->k,
                                  .p = v->p,
                                  .top = v->s,
                                  .centered = 1,
                                  .bias = v->bias,
                                  .threshold = v->has_threshold ? v->threshold : NULL};
  struct encoder_job job = {
      .encoder = &encoder, .rows = &v->own, .n = v->n, .lengths = v->lengths, .found = &v->found};
  TRY(device_dictionary_free(&v->device));
  TRY(device_put_tile(&v->device, weights, v->k, 0));
  TRY(device_encoder(&v->device, &job));
  *finite = job.bad.row < 0;
  for (idx i = 0; i < v->n && *finite; i++) v->start[i + 1] = v->start[i] + v->lengths[i];
  return OK;
}

/* Compute the quality of the codes of this rank's rows; NaN if a score is not finite. */
static int rows_evaluate(struct train_validation *v, const struct train_state *state)
{
  int finite = 0;
  if (v->n == 0) return OK;
  TRY(codes_find(v, state->w[TRAIN_ENCODER], &finite));
  for (idx i = 0; i < v->n && !finite; i++) v->quality[i].error = nan_canonical();
  if (!finite) return OK;
  struct quality_job job = {.n = v->n,
                            .rows = v->x,
                            .atoms = state->w[TRAIN_DECODER],
                            .start = v->start,
                            .support = v->found.atoms,
                            .codes = v->found.codes,
                            .quality = v->quality};
  return device_quality(v->host.backend ? &v->host : &v->device, &job);
}

int train_validation_run(struct train_validation *v, const struct train_state *state, int scale,
                         real *explained)
{
  float threshold = ldexpf(batch_threshold_value(&state->threshold), -scale);
  *explained = v->l0 = nan_canonical();
  if (v->rows->n == 0 || (v->has_threshold && state->threshold.weight == 0)) return OK;
  for (idx a = 0; a < v->k; a++) {
    v->bias[a] = ldexpf(state->w[TRAIN_BIAS][a], -scale);
    v->threshold[a] = threshold;
  }
  TRY(comm_agree_at(v->c, rows_evaluate(v, state), v->first));
  struct coded coded = {.n = v->n, .first = v->first, .quality = {.host = v->quality}};
  struct metrics m = {.n = v->rows->n, .p = v->p};
  TRY(coded_metrics(&coded, v->c, v->tss, &m));
  if (v->c->rank == 0) *explained = isnan(m.explained_variance) ? *explained : m.explained_variance;
  real figures[] = {*explained, m.l0};
  TRY(comm_broadcast(v->c, figures, LENGTH(figures), sizeof *figures));
  *explained = figures[0];
  v->l0 = figures[1];
  return OK;
}
