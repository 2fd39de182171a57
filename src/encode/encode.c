/* SPDX-License-Identifier: BSD-3-Clause
 * The loop over blocks, with the steps before and after it.  Two blocks alternate on the device:
 * while one is routed, the host merges the lists of the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "comm/buffers.h"
#include "encode/layout.h"
#include "encode/steps.h"
#include "model/access.h"

const struct row_source *encode_whole(const struct encode_task *task)
{
  return task->whole ? task->whole : task->rows;
}

/* e->shift <- the column shifts of the metrics.  Rank 0 reads the first rows in the files worker
 * and broadcasts the shifts.  After a failure the files worker may still write to x, so x is not
 * freed. */
static int shift_find(struct encode *e)
{
  const struct row_source *rows = encode_whole(e->task);
  struct arena arena = {0};
  float *x;
  int status = OK;
  if (e->c->rank == 0) {
    status = arena_alloc(&arena, &x, imin(rows->n, SHIFT_ROWS) * e->p, sizeof *x);
    if (!status) status = shift_access(&e->files, rows, e->task->mean, x, e->shift);
  }
  TRY(comm_agree(e->c, status));
  arena_free(&arena);
  TRY(comm_broadcast(e->c, e->shift, e->p, sizeof *e->shift));
  return comm_agree(e->c, e->preprocess.device ? preprocess_shift(&e->preprocess, e->shift) : OK);
}

/* Wait until the hash of the dictionary is confirmed. */
int encode_confirm_wait(struct encode *e)
{
  struct phase *phase = &e->result->phases[PHASE_WAIT_FILES];
  if (!e->confirmer.state) return OK;
  phase_begin(phase);
  int status = worker_wait(&e->confirmer);
  worker_close(&e->confirmer);
  phase_end(phase, 0);
  return status;
}

int encode_confirm_poll(struct encode *e)
{
  return e->confirmer.state && !worker_is_busy(&e->confirmer) ? encode_confirm_wait(e) : OK;
}

/* Route all blocks.  If only one block is in flight, every second pass of the loop routes nothing,
 * and merges the lists of that block. */
static int blocks_run(struct encode *e)
{
  struct block_in_flight *b = &e->in_flight[0], *other = &e->in_flight[1];
  struct progress progress;
  gidx before = e->task->sink_first;
  progress_start(&progress, e->task->codes ? "encode" : "route", "rows", before + e->end);
  progress.before = before;
  TRY(comm_agree(e->c, files_start(e)));
  comm_lockstep_begin(&e->group); /* one agreement per pass, after steps of about equal length */
  while (e->next < e->end || b->superblock_rows > 0 || other->superblock_rows > 0) {
    TRY(block_cycle(e, b));
    TRY(background_start(e, other));
    int is_routed = b->n > 0 && !comm_failure_is_common(&e->group) && !step_route(e, b);
    int status = background_wait(e); /* seen by this rank alone: the group continues until it
                                      * agrees */
    if (!status) status = encode_confirm_poll(e);
    if (is_routed) TRY(comm_defer(&e->group, step_alltoallv(e, b)));
    if (!comm_failure(&e->group)) comm_record(&e->group, status);
    progress_show(&progress, before + e->finished_rows);
    struct block_in_flight *swap = b;
    b = other;
    other = swap;
  }
  comm_lockstep_end(&e->group);
  if (!comm_failure(e->c)) comm_record(e->c, files_wait(e));
  return comm_agree(e->c, OK);
}

/* Replace the encoder's matrix on the device by the atoms. */
static int atoms_upload(struct encode *e)
{
  TRY(device_dictionary_free(&e->device));
  return shard_upload(&e->shard, &e->device);
}

/* The largest decoder cosine, if K is small enough. */
static int cosine_compute(struct encode *e)
{
  struct phase *phase = &e->result->phases[PHASE_COSINE];
  gidx k = e->shard.tiling.k;
  e->result->metrics.max_decoder_cosine = nan_canonical();
  int is_stopped = e->end < e->task->rows->n; /* the run that resumes this one computes it */
  if (k > e->task->max_cosine || e->task->no_cosine || is_stopped) return OK;
  phase_begin(phase);
  if (e->task->encoder) TRY(comm_agree(e->c, atoms_upload(e)));
  TRY(shard_cosine(&e->shard, e->c, &e->group, &e->device, e->block,
                   &e->result->metrics.max_decoder_cosine));
  int signs = e->device.nonnegative ? 2 : 1; /* atoms are routed for each sign */
  phase_end(phase, signs * (double)k * e->d * e->shard.held * e->d * e->p);
  return OK;
}

/* The sum of the ranks' terms becomes the hash of the dictionary. */
int encode_dictionary_name(struct encode *e)
{
  const struct encode_task *t = e->task;
  gidx sum = (gidx)e->shard.terms;
  TRY(comm_sum(e->c, &sum, 1));
  uint64_t hash = content_hash((uint64_t)sum, t->atoms->k, e->d, e->p);
  e->result->inputs.dictionary = hash;
  int status = OK;
  if (t->dictionary && t->dictionary != hash)
    status =
        status_fail(ERR_INPUT, __FILE__, __LINE__,
                    "'%s' is not the dictionary that the run was begun with: its hash is "
                    "%016llx, not %016llx",
                    t->atoms->name, (unsigned long long)hash, (unsigned long long)t->dictionary);
  return comm_agree(e->c, status);
}

/* The sum of the ranks' terms becomes the hash of the rows; a part of the rows has no hash yet. */
static int rows_name(struct encode *e)
{
  struct identity *inputs = &e->result->inputs;
  const struct encode_task *t = e->task;
  gidx sum = (gidx)inputs->rows;
  TRY(comm_sum(e->c, &sum, 1));
  e->result->part.rows_terms = (uint64_t)sum;
  int is_whole = !t->whole && e->end == t->rows->n;
  inputs->rows = is_whole ? content_hash((uint64_t)sum, t->rows->n, t->rows->p, 1) : 0;
  return OK;
}

/* Fill in all fields of the part except its sums, and the metrics that need codes. */
static int part_fill(struct encode *e)
{
  struct encode_part *part = &e->result->part;
  const struct encode_task *t = e->task;
  part->first = t->first;
  part->n = e->end;
  part->total = encode_whole(t)->n;
  part->p = e->p;
  part->fingerprint = e->result->fingerprint;
  part->nonzero = e->statistics.nonzero;
  part->codes = e->statistics.codes;
  part->norms = t->codes ? e->statistics.norms : NULL;
  part->max_cosine = t->max_cosine;
  if (!t->codes || e->c->rank) return OK;
  real *shift;
  TRY(arena_alloc(&e->result->arena, &shift, e->p, sizeof *shift));
  memcpy(shift, e->shift, (size_t)e->p * sizeof *shift);
  part->shift = shift;
  return part_metrics(&e->result->metrics, part);
}

int encode_sample(const struct row_source *rows, uint64_t *hash)
{
  enum { SAMPLES = 64 };
  struct arena arena = {0};
  struct worker worker;
  float *x;
  gidx count = imin(rows->n, SAMPLES);
  uint64_t sum = 0;
  TRY(arena_alloc(&arena, &x, rows->p, sizeof *x));
  TRY(worker_open(&worker));
  for (gidx i = 0; i < count; i++) {
    gidx row = i * (rows->n / count);
    TRY(rows_access(&worker, (struct rows_access){rows, row, 1, x}));
    sum += items_terms(x, 1, rows->p, row);
  }
  worker_close(&worker);
  arena_free(&arena);
  *hash = content_hash(sum, rows->n, rows->p, 1);
  return OK;
}

int encode_shift(const struct row_source *rows, const real *mean, real *shift)
{
  struct arena arena = {0};
  struct worker worker = {0};
  float *x;
  int status = arena_alloc(&arena, &x, imin(rows->n, SHIFT_ROWS) * rows->p, sizeof *x);
  if (!status) status = worker_open(&worker);
  if (!status) status = shift_access(&worker, rows, mean, x, shift);
  worker_close(&worker);
  arena_free(&arena);
  return status;
}

int encode_join(const struct encode_task *task, const struct encode_part *before,
                const gidx *density, struct encode_result *result)
{
  const struct encode_part now = result->part, *parts[] = {before, &now};
  struct metrics *m = &result->metrics;
  TRY(part_join(parts, LENGTH(parts), &result->arena, &result->part));
  for (idx k = 0; k < task->atoms->k; k++) result->density[k] += density[k];
  if (task->codes) TRY(part_metrics(m, &result->part));
  metrics_density(m, result->density, result->part.n, task->atoms->k);
  result->fingerprint = result->part.fingerprint;
  return OK;
}

int encode_finish(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct metrics *m = &e->result->metrics;
  struct phase *phase = &e->result->phases[PHASE_GATHER];
  phase_begin(phase);
  gidx sums[] = {(gidx)e->result->fingerprint, e->result->tiny};
  TRY(comm_sum(e->c, sums, LENGTH(sums)));
  e->result->fingerprint = (uint64_t)sums[0];
  if (sums[1] > 0)
    log_warn("%lld rows have codes, but what their frames see of them is so small a part that its "
             "squares underflow: the choice of their atoms means nothing",
             (long long)sums[1]);
  TRY(rows_name(e));
  e->result->rows = e->end;
  TRY(comm_sum(e->c, e->result->density, e->shard.tiling.k));
  if (t->codes) TRY(statistics_finish(&e->statistics, e->c, &e->result->part.sums));
  TRY(comm_agree(e->c, part_fill(e)));
  metrics_density(m, e->result->density, e->end, e->shard.tiling.k);
  e->result->filter = e->device.filter; /* before the cosines, which are routed too */
  phase_end(phase, 0);
  return cosine_compute(e);
}

static const struct phase phase_names[ENCODE_PHASES] = {
    [PHASE_OPEN] = {.name = "open"},
    [PHASE_LOAD] = {.name = "load", .unit = "GB", .background = 1},
    [PHASE_READ] = {.name = "read", .unit = "GB", .background = 1},
    [PHASE_COPY] = {.name = "copy", .unit = "GB", .background = 1},
    [PHASE_ALLGATHER] = {.name = "allgather", .unit = "GB"},
    [PHASE_ROUTE] = {.name = "route", .unit = "GMAC"},
    [PHASE_ALLTOALLV] = {.name = "alltoallv", .unit = "GB"},
    [PHASE_MERGE] = {.name = "merge", .unit = "GB", .background = 1},
    [PHASE_FETCH] = {.name = "fetch", .unit = "GB"},
    [PHASE_CODES] = {.name = "codes", .unit = "GMAC"},
    [PHASE_GATHER] = {.name = "gather", .unit = "GB"},
    [PHASE_METRICS] = {.name = "metrics", .background = 1},
    [PHASE_SUMS] = {.name = "sums", .unit = "GB", .background = 1},
    [PHASE_COSINE] = {.name = "cosine", .unit = "GMAC"},
    [PHASE_WRITE] = {.name = "write", .unit = "GB", .background = 1},
    [PHASE_HASH] = {.name = "hash", .unit = "GB", .background = 1},
    [PHASE_WAIT_FILES] = {.name = "wait"},
    [PHASE_WAIT_BACKGROUND] = {.name = "waited"},
};

void encode_init(struct encode *e, const struct encode_task *task, struct comm *c,
                 struct encode_result *result)
{
  *e = (struct encode){.task = task,
                       .c = c,
                       .result = result,
                       .p = task->rows->p,
                       .d = task->atoms->d,
                       .s = task->top_s,
                       .groups = task->groups ? task->groups : 1,
                       .end = task->rows->n};
  int size = c->size / e->groups;
  e->number = c->rank / size;
  e->group = (struct comm){.size = size, .rank = c->rank % size};
  e->block = encode_block_whole(e->groups, task->block);
  shard_init(&e->shard, &e->group, task->atoms, task->tile, task->normalize);
}

idx encode_block_whole(int groups, idx block)
{
  return groups > 1 ? (idx)imax(block - block % ROW_BLOCK, ROW_BLOCK) : block;
}

idx encode_superblock_at(const struct encode *e, gidx row)
{
  gidx most = e->block < ROW_BLOCK ? imin(e->block, ROW_BLOCK - row % ROW_BLOCK)
                                   : (gidx)e->groups * (e->block - e->block % ROW_BLOCK);
  return (idx)imax(imin(e->end - row, most), 0);
}

void encode_group_partition(const struct encode *e, gidx n, int group, gidx *first, gidx *count)
{
  gidx unit = e->groups > 1 ? ROW_BLOCK : imax(n, 1), blocks;
  comm_partition(ceil_div(n, unit), e->groups, group, first, &blocks);
  *first = imin(*first * unit, n);
  *count = imin(*first + blocks * unit, n) - *first;
}

void encode_rank_partition(const struct encode *e, gidx n, int rank, gidx *first, gidx *count)
{
  int size = e->c->size / e->groups;
  gidx group_first;
  encode_group_partition(e, n, rank / size, &group_first, count);
  comm_partition(*count, size, rank % size, first, count);
  *first += group_first;
}

struct device_options encode_device_options(const struct encode *e)
{
  const struct encode_task *t = e->task;
  return (struct device_options){
      .p = e->p,
      .d = e->d,
      .max_atoms = e->shard.held,
      .nonnegative = t->nonnegative,
      .threads = t->threads,
      .variant = t->variant,
      .kind = t->device,
      .work = encode_work(t),
      .top_k = t->encoder ? 1 : (idx)ceil_div(t->top_s, t->rounds),
      .route_rows = e->block,
      .support = (t->codes || t->rounds > 1) && !t->encoder ? t->top_s : 0,
      .codes_rows = t->rounds > 1 ? 0 : (idx)ceil_div(e->block, e->group.size),
      .local_rank = e->c->local_rank,
      .kernels = t->kernels,
      .filter = t->filter,
      .encoder = t->encoder != NULL,
      .preprocess = t->encoder == NULL};
}

/* Open the device, and allocate everything on it except the dictionary. */
static int device_prepare(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct device_options options = encode_device_options(e);
  struct phase *phases = e->result->phases;
  TRY(device_check_subnormals(t->threads));
  TRY(device_open(&e->device, &options));
  int cpu = t->encoder || !strcmp(e->device.kind, "cpu");
  if (cpu && (t->codes || t->rounds > 1)) TRY(device_check_fma());
  phases[PHASE_ROUTE].device = phases[PHASE_COSINE].device = e->device.kind;
  phases[PHASE_CODES].device = e->device.kind;
  return encode_alloc(e, &e->result->memory);
}

/* The first job of the files worker. */
static int dictionary_read(void *argument)
{
  struct encode *e = argument;
  struct phase *phase = &e->result->phases[PHASE_LOAD];
  phase_begin(phase);
  TRY(shard_alloc(&e->shard));
  TRY(shard_read(&e->shard));
  phase_end(phase, (double)e->shard.held * e->d * e->p * (double)sizeof(float));
  return OK;
}

static int workers_start(struct encode *e)
{
  TRY(worker_open(&e->background));
  TRY(worker_open(&e->files));
  return worker_start(&e->files, dictionary_read, e);
}

/* Should each rank read all tiles?  Yes if all ranks are on one machine and each has at least
 * LEAST_THREADS threads.  Then reading is as fast as sending by MPI, and the file still comes to
 * the machine only once. */
static int reading_choose(struct encode *e)
{
  enum { LEAST_THREADS = 4 };
  uint64_t shares = e->c->local_size < e->c->size || e->task->threads < LEAST_THREADS;
  TRY(comm_or(e->c, &shares, 1));
  e->shard.reads_all = !shares;
  return OK;
}

/* Make the communicators of this rank's row and column of the grid. */
static int ranks_divide(struct encode *e)
{
  int size = e->group.size;
  TRY(comm_split(e->c, e->number, &e->group));
  TRY(comm_split(e->c, e->c->rank % size, &e->like));
  e->shard.like = &e->like;
  return reading_choose(e);
}

static int dictionary_confirm(void *argument)
{
  const struct encode *e = argument;
  return e->task->atoms->confirm(e->task->atoms->self);
}

/* The confirmer of rank 0 compares the hash of all atoms while all ranks route, since the
 * comparison takes longer than reading.  The job waits for it before it has a result. */
static int confirm_start(struct encode *e)
{
  if (e->c->rank || !e->task->atoms->confirm) return OK;
  TRY(worker_open(&e->confirmer));
  return worker_start(&e->confirmer, dictionary_confirm, e);
}

static int matrix_read(void *argument)
{
  struct encode *e = argument;
  struct phase *phase = &e->result->phases[PHASE_LOAD];
  phase_begin(phase);
  TRY(imported_read(e));
  phase_end(phase, (double)e->shard.tiling.k * e->p * (double)sizeof(float) / e->c->size);
  return OK;
}

/* Open the device with the dictionary on it.  All threads read the dictionary while the device is
 * being opened, since there is nothing to compute yet. */
int encode_open(struct encode *e)
{
  struct phase *phase = &e->result->phases[PHASE_OPEN];
  int spare = team_spare();
  phase_begin(phase);
  TRY(ranks_divide(e));
  team_spare_set(e->task->threads);
  TRY(comm_agree(e->c, workers_start(e)));
  TRY(comm_agree(e->c, device_prepare(e)));
  TRY(comm_devices_open(e->c, &e->group, &e->device, 0));
  int status = worker_wait(&e->files); /* may take as long as reading the dictionary */
  if (!device_is_gpu(&e->device)) team_spare_set(spare);
  TRY(shard_put(&e->shard, e->c, &e->like, status, e->task->encoder ? NULL : &e->device));
  e->result->memory.atoms = (gidx)e->shard.arena.bytes;
  if (e->task->encoder) TRY(imported_broadcast(e, worker_run(&e->files, matrix_read, e)));
  phase_end(phase, 0);
  return comm_agree(e->c, confirm_start(e));
}

/* Note the device for the report, before it is closed. */
static void device_note(struct encode *e)
{
  struct encode_result *r = e->result;
  r->device = e->device.kind;
  snprintf(r->variant, sizeof r->variant, "%s", e->device.variant);
  r->counts = e->device.counts;
}

/* Free the device and all memory except the result's. */
int encode_end(struct encode *e)
{
  comm_devices_close(&e->group);
  TRY(comm_unite(e->c, &e->group));
  TRY(comm_unite(e->c, &e->like));
  buffers_free(e);
  imported_free(e);
  shard_free(&e->shard, &e->device);
  device_close(&e->device);
  arena_free(&e->arena);
  free(e);
  return OK;
}

int encode_run(const struct encode_task *task, struct comm *c, struct encode_result *result)
{
  struct encode *e; /* on the heap: struct run of job/run.h says why */
  *result = (struct encode_result){0};
  memcpy(result->phases, phase_names, sizeof phase_names);
  TRY(comm_agree(c, struct_alloc(&e, sizeof *e)));
  encode_init(e, task, c, result);
  TRY(encode_open(e));
  TRY(encode_dictionary_name(e));
  TRY(shift_find(e));
  TRY(task->encoder ? imported_run(e) : blocks_run(e));
  worker_close(&e->files);
  worker_close(&e->writer);
  worker_close(&e->background);
  TRY(comm_agree(c, encode_confirm_wait(e)));
  TRY(encode_finish(e));
  device_note(e);
  return encode_end(e);
}

void encode_free(struct encode_result *result)
{
  arena_free(&result->arena);
  *result = (struct encode_result){0};
}
