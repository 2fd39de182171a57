/* SPDX-License-Identifier: BSD-3-Clause
 * The pipeline.  Two blocks take turns on the device.  Of two workers a rank one does all file
 * access, writing what ended and reading what comes next; the other merges, counts and sums. */
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
  struct flight *f = &e->flights[0], *other = &e->flights[1];
  struct progress progress;
  progress_start(&progress, e->task->codes ? "encode" : "route", "rows", n);
  TRY(files_turn(e));
  while (e->next < n || f->n > 0 || other->n > 0) {
    TRY(flight_turn(e, f, other));
    progress_show(&progress, e->ended);
    struct flight *swap = f;
    f = other;
    other = swap;
  }
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
  struct phase *phase = &e->result->phases[PHASE_COLLECT];
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

/* unit and behind as in base/phase.h. */
static const struct phase phases[ENCODE_PHASES] = {
    [PHASE_OPEN] = {.name = "open"},
    [PHASE_LOAD] = {.name = "load", .unit = "GB", .behind = 1},
    [PHASE_READ] = {.name = "read", .unit = "GB", .behind = 1},
    [PHASE_COPY] = {.name = "copy", .unit = "GB", .behind = 1},
    [PHASE_GATHER] = {.name = "gather", .unit = "GB"},
    [PHASE_ROUTE] = {.name = "route", .unit = "GMAC"},
    [PHASE_EXCHANGE] = {.name = "exchange", .unit = "GB"},
    [PHASE_MERGE] = {.name = "merge", .unit = "GB", .behind = 1},
    [PHASE_FETCH] = {.name = "fetch", .unit = "GB"},
    [PHASE_CODES] = {.name = "codes", .unit = "GMAC"},
    [PHASE_COLLECT] = {.name = "collect", .unit = "GB"},
    [PHASE_METRICS] = {.name = "metrics", .behind = 1},
    [PHASE_SUMS] = {.name = "sums", .unit = "GB", .behind = 1},
    [PHASE_COSINE] = {.name = "cosine", .unit = "GMAC"},
    [PHASE_WRITE] = {.name = "write", .unit = "GB", .behind = 1},
    [PHASE_WAIT] = {.name = "wait"},
    [PHASE_LATE] = {.name = "late"},
};

static int device_ready(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct device_options options = {.p = e->p,
                                   .d = e->d,
                                   .atoms_most = e->tiles.held,
                                   .threads = t->threads,
                                   .variant = t->variant,
                                   .kind = t->device,
                                   .work = encode_work(t),
                                   .take = (t->top_s + t->rounds - 1) / t->rounds,
                                   .support = t->codes || t->rounds > 1 ? t->top_s : 0,
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
  return buffers_take(e);
}

/* Slots last from round to round, and are of one block. */
static int tables_take(struct encode *e)
{
  struct encode_memory m;
  int tables = e->task->rounds > 1 ? FLIGHTS : 1;
  encode_memory(e->task, e->c->size, &m);
  e->wanted = m.wanted;
  for (int i = 0; i < tables; i++) TRY(table_init(&e->tables[i], &e->tiles, m.kept));
  for (int i = 0; i < FLIGHTS; i++) e->flights[i].table = &e->tables[i % tables];
  return OK;
}

static int dictionary_read(void *argument)
{
  struct encode *e = argument;
  struct phase *phase = &e->result->phases[PHASE_LOAD];
  phase_begin(phase);
  TRY(tiles_read(&e->tiles));
  phase_end(phase, (double)e->tiles.held * e->d * e->p * (double)sizeof(float));
  return OK;
}

static int workers_start(struct encode *e)
{
  TRY(worker_open(&e->behind));
  TRY(worker_open(&e->files));
  return worker_start(&e->files, dictionary_read, e);
}

/* A device with the dictionary, which is read while the device is being opened. */
static int encode_open(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct phase *phase = &e->result->phases[PHASE_OPEN];
  phase_begin(phase);
  tiles_init(&e->tiles, e->c, t->atoms, t->tile, t->normalize);
  TRY(comm_agree(e->c, workers_start(e)));
  TRY(comm_agree(e->c, device_ready(e)));
  TRY(comm_devices(e->c, &e->device));
  int status = worker_wait(&e->files, 0); /* however long a dictionary takes */
  TRY(tiles_put(&e->tiles, e->c, status, &e->device));
  phase_end(phase, 0);
  return comm_agree(e->c, tables_take(e));
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
  memcpy(result->phases, phases, sizeof phases);
  TRY(encode_open(&e));
  TRY(shift_find(&e));
  TRY(blocks_run(&e));
  worker_close(&e.files);
  worker_close(&e.behind);
  TRY(result_finish(&e));
  device_note(&e);
  comm_devices_close(c);
  buffers_drop(&e);
  for (int i = 0; i < FLIGHTS; i++) table_free(&e.tables[i], &e.device);
  tiles_free(&e.tiles, &e.device);
  device_close(&e.device);
  arena_free(&e.arena);
  return OK;
}

void encode_free(struct encode_result *result)
{
  free(result->density);
  *result = (struct encode_result){0};
}
