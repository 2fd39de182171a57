/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are read once and stay with the device, to which the encoder's matrix goes each time; what
 * it finds comes back, and a CPU says how good that is. */
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

int train_validation_alloc(struct train_validation *j, struct arena *a)
{
  gidx n = refit_rows_partition(j->rows->n, j->c->size, j->c->rank, &j->first);
  if (j->rows->n == 0) return OK;
  CHECK(n <= INT32_MAX, ERR_MEMORY, "%lld rows a rank to judge by are too many", (long long)n);
  j->n = (idx)n;
  TRY(arena_alloc(a, &j->x, n * j->p, sizeof *j->x));
  TRY(arena_alloc(a, &j->quality, n, sizeof *j->quality));
  TRY(arena_alloc(a, &j->start, n + 1, sizeof *j->start));
  TRY(arena_alloc(a, &j->lengths, n, sizeof *j->lengths));
  TRY(arena_alloc(a, &j->threshold, j->k, sizeof *j->threshold));
  return arena_alloc(a, &j->bias, j->k, sizeof *j->bias);
}

static struct device_options options_of(const struct train_validation *j, const char *kind)
{
  return (struct device_options){.p = j->p,
                                 .d = 1,
                                 .max_atoms = j->k,
                                 .threads = j->threads,
                                 .variant = j->variant,
                                 .kind = kind,
                                 .top_k = 1,
                                 .route_rows = j->n,
                                 .encoder = 1,
                                 .local_rank = j->c->local_rank,
                                 .kernels = j->kernels};
}

gidx train_validation_beside(const struct train_validation *j, const char *kind)
{
  struct device_options options = options_of(j, kind);
  struct device dry;
  gidx forms, entries = (gidx)j->n * j->s * 12;
  if (j->n == 0) return 0;
  device_open_dry(&dry, &options, &forms);
  return entries + (device_is_gpu(&dry) ? 0 : entries + forms);
}

static int device_begin(struct train_validation *j, const char *kind)
{
  struct device_options options = options_of(j, kind);
  gidx bytes = (gidx)j->n * j->p * (gidx)sizeof *j->x;
  TRY(device_open(&j->device, &options));
  return buffer_wrap(&j->device, &j->all, j->x, bytes);
}

int train_validation_open(struct train_validation *j, const char *kind)
{
  struct device_options host = options_of(j, "cpu");
  int is_gpu = strcmp(kind, "cuda") == 0;
  if (j->n == 0) return OK;
  int status = device_begin(j, kind);
  if (status == ERR_MEMORY && is_gpu) {
    log_rank("held-out rows are judged by the CPU: %s", status_message());
    status_clear();
    j->all = (struct buffer){0};
    device_close(&j->device);
    status = device_begin(j, "cpu");
    is_gpu = 0;
  }
  TRY(status);
  host.encoder = host.max_atoms = 0;
  return is_gpu ? device_open(&j->host, &host) : OK;
}

void train_validation_close(struct train_validation *j)
{
  buffer_free(&j->device, &j->all);
  device_close(&j->device);
  device_close(&j->host);
  entries_free(&j->found);
}

int train_validation_read(struct train_validation *j, const real *mean)
{
  uint64_t terms = 0;
  struct metrics m;
  struct comm *c = j->c;
  if (j->rows->n == 0) return OK;
  TRY(comm_agree_at(c, refit_rows_load(j->rows, mean, j->first, j->n, j->threads, j->x, &terms),
                    j->first));
  gidx sum = (gidx)terms;
  TRY(comm_sum(c, &sum, 1));
  j->hash = content_hash((uint64_t)sum, j->rows->n, j->p, 1);
  TRY(refit_tss(c, j->rows->n, j->x, j->p, &j->tss));
  int varies = c->rank || j->tss > 0;
  TRY(comm_agree(c, varies ? OK
                           : status_fail(ERR_INPUT, __FILE__, __LINE__,
                                         "the held-out rows of '%s' do not vary: their explained "
                                         "variance is not defined",
                                         j->rows->name)));
  TRY(refit_norms(c, j->rows->n, j->x, j->p, j->tss, "the held-out rows", &m));
  gidx bytes = (gidx)j->n * j->p * (gidx)sizeof *j->x;
  return comm_agree(c, j->n ? device_put(&j->device, &j->all, 0, bytes) : OK);
}

/* The codes of own rows. */
static int codes_find(struct train_validation *j, const float *weights, int *finite)
{
  const struct encoder encoder = {.kind = j->has_threshold ? ENCODER_BATCHTOPK : ENCODER_TOPK,
                                  .k = j->k,
                                  .p = j->p,
                                  .top = j->s,
                                  .centered = 1,
                                  .bias = j->bias,
                                  .threshold = j->has_threshold ? j->threshold : NULL};
  struct encoder_job job = {
      .encoder = &encoder, .rows = &j->all, .n = j->n, .lengths = j->lengths, .found = &j->found};
  TRY(device_dictionary_free(&j->device));
  TRY(device_put_tile(&j->device, weights, j->k, 0));
  TRY(device_encoder(&j->device, &job));
  *finite = job.bad.row < 0;
  for (idx i = 0; i < j->n && *finite; i++) j->start[i + 1] = j->start[i] + j->lengths[i];
  return OK;
}

/* How good the codes of own rows are: nothing is known where a score is no number. */
static int rows_evaluate(struct train_validation *j, const struct train_state *state)
{
  int finite = 0;
  if (j->n == 0) return OK;
  TRY(codes_find(j, state->w[TRAIN_ENCODER], &finite));
  for (idx i = 0; i < j->n && !finite; i++) j->quality[i].error = nan_canonical();
  if (!finite) return OK;
  struct quality_job job = {.n = j->n,
                            .rows = j->x,
                            .atoms = state->w[TRAIN_DECODER],
                            .start = j->start,
                            .support = j->found.atoms,
                            .codes = j->found.codes,
                            .quality = j->quality};
  return device_quality(j->host.backend ? &j->host : &j->device, &job);
}

int train_validation_run(struct train_validation *j, const struct train_state *state, int scale,
                         real *explained)
{
  float threshold = ldexpf(batch_threshold_value(&state->threshold), -scale);
  *explained = j->l0 = nan_canonical();
  if (j->rows->n == 0 || (j->has_threshold && state->threshold.weight == 0)) return OK;
  for (idx a = 0; a < j->k; a++) {
    j->bias[a] = ldexpf(state->w[TRAIN_BIAS][a], -scale);
    j->threshold[a] = threshold;
  }
  TRY(comm_agree_at(j->c, rows_evaluate(j, state), j->first));
  struct coded coded = {.n = j->n, .first = j->first, .quality = {.host = j->quality}};
  struct metrics m = {.n = j->rows->n, .p = j->p};
  TRY(coded_metrics(&coded, j->c, j->tss, &m));
  if (j->c->rank == 0) *explained = isnan(m.explained_variance) ? *explained : m.explained_variance;
  real figures[] = {*explained, m.l0};
  TRY(comm_broadcast(j->c, figures, LENGTH(figures), sizeof *figures));
  *explained = figures[0];
  j->l0 = figures[1];
  return OK;
}
