/* SPDX-License-Identifier: BSD-3-Clause
 * The pipeline.  One background worker per rank does all file access: while a block is computed it
 * writes the block before and reads the block after. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "stage/encode_inside.h"

/* Column shifts of the metrics, from the first rows, on rank 0 for all. */
static int shift_find(struct encode *e)
{
  const struct row_source *rows = e->task->rows;
  idx n = rows->n < SHIFT_ROWS ? (idx)rows->n : SHIFT_ROWS;
  int status = OK;
  if (e->c->rank == 0 && n > 0) {
    struct arena arena = {0};
    float *x = NULL;
    status = arena_take(&arena, &x, (gidx)n * e->p, sizeof *x);
    if (!status) status = rows->read(rows->self, 0, n, x);
    if (!status) rows_center(x, n, e->p, e->task->mean);
    if (!status) status = rows_check(x, n, e->p, 0, rows->name);
    if (!status) rows_shift(x, n, e->p, e->shift);
    arena_free(&arena);
  }
  TRY(comm_agree(e->c, status));
  return comm_broadcast(e->c, e->shift, e->p, sizeof *e->shift);
}

static int blocks_run(struct encode *e)
{
  gidx n = e->task->rows->n;
  struct progress progress;
  struct support_block done = {0};
  progress_start(&progress, e->task->codes ? "encode" : "route", "rows", n);
  TRY(comm_agree(e->c, files_start(e, NULL, 0, 0)));
  for (gidx first = 0; first < n; first += e->block) {
    TRY(files_wait(e));
    TRY(comm_agree(e->c, files_start(e, &done, first + e->block, !e->turn)));
    TRY(block_encode(e, first, &done));
    e->turn = !e->turn;
    progress_show(&progress, first + e->n);
  }
  TRY(files_wait(e));
  TRY(comm_agree(e->c, files_start(e, &done, n, 0)));
  return files_wait(e);
}

/* Largest decoder cosine, where K is small enough. */
static int cosine_find(struct encode *e)
{
  struct phase *phase = &e->result->phases[PHASE_COSINE];
  gidx k = e->tiles.tiling.k;
  e->result->metrics.max_decoder_cosine = canonical_nan();
  if (k > e->task->cosine_most) return OK;
  phase_begin(phase);
  TRY(tiles_cosine(&e->tiles, e->c, &e->device, e->block, &e->result->metrics.max_decoder_cosine));
  phase_end(phase, (double)k * e->d * e->tiles.held * e->d * e->p);
  return OK;
}

static int result_finish(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct metrics *m = &e->result->metrics;
  struct phase *phase = &e->result->phases[PHASE_METRICS];
  phase_begin(phase);
  gidx sum = (gidx)e->result->fingerprint;
  TRY(comm_sum(e->c, &sum, 1));
  e->result->fingerprint = (uint64_t)sum;
  TRY(comm_sum(e->c, e->result->density, e->tiles.tiling.k));
  if (t->codes) TRY(statistics_finish(&e->statistics, e->c, e->p, m));
  metrics_density(m, e->result->density, t->rows->n, e->tiles.tiling.k);
  e->result->filter = e->device.filter; /* before the cosines, which are routed too */
  phase_end(phase, 0);
  return cosine_find(e);
}

static const char *const phase_names[ENCODE_PHASES] = {"read",  "copy",   "gather", "route",
                                                       "merge", "fetch",  "codes",  "metrics",
                                                       "sums",  "cosine", "write",  "wait"};
static const char *const phase_units[ENCODE_PHASES] = {"GB",   "GB", "GB", "GMAC", "GB", "GB",
                                                       "GMAC", NULL, "GB", "GMAC", "GB", NULL};

static int encode_open(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct tiling tiling = {t->atoms->k, t->tile, e->c->size};
  struct device_options options = {.p = e->p,
                                   .d = e->d,
                                   .atoms_most = tiling_held(&tiling, e->c->rank),
                                   .threads = t->threads,
                                   .variant = t->variant,
                                   .kind = t->device,
                                   .work = encode_work(t),
                                   .local_rank = e->c->local_rank,
                                   .kernels = t->kernels,
                                   .filter = t->filter};
  TRY(device_check_subnormals(t->threads));
  TRY(device_open(&e->device, &options));
  if (!strcmp(e->device.kind, "cpu") && (t->codes || t->rounds > 1)) TRY(device_check_fma());
  e->result->density = calloc((size_t)t->atoms->k, sizeof *e->result->density);
  CHECK(e->result->density, ERR_MEMORY, "cannot allocate %d counts", t->atoms->k);
  e->result->phases[PHASE_ROUTE].device = e->result->phases[PHASE_COSINE].device = e->device.kind;
  e->result->phases[PHASE_CODES].device = e->device.kind;
  TRY(buffers_take(e));
  return worker_open(&e->worker);
}

/* What ran where, for the report; the device is about to be closed. */
static void device_note(struct encode *e)
{
  struct encode_result *r = e->result;
  r->device = e->device.kind;
  snprintf(r->variant, sizeof r->variant, "%s", e->device.variant);
  r->counts = e->device.counts;
}

int encode_run(const struct encode_task *task, struct comm *c, struct encode_result *result)
{
  static struct encode e; /* outlives the failure of a block whose worker is still at work */
  e = (struct encode){.task = task, .c = c, .result = result};
  e.p = task->rows->p;
  e.d = task->atoms->d;
  e.s = task->top_s;
  e.block = task->block;
  *result = (struct encode_result){0};
  for (int i = 0; i < ENCODE_PHASES; i++)
    result->phases[i] = (struct phase){.name = phase_names[i], .unit = phase_units[i]};
  TRY(comm_agree(c, encode_open(&e)));
  TRY(comm_devices(c, &e.device));
  TRY(tiles_load(&e.tiles, c, task->atoms, task->tile, task->normalize, &e.device));
  TRY(shift_find(&e));
  TRY(blocks_run(&e));
  worker_close(&e.worker);
  TRY(result_finish(&e));
  device_note(&e);
  comm_devices_close(c);
  tiles_free(&e.tiles, &e.device);
  buffers_drop(&e);
  device_close(&e.device);
  arena_free(&e.arena);
  return OK;
}

void encode_free(struct encode_result *result)
{
  free(result->density);
  *result = (struct encode_result){0};
}
