/* SPDX-License-Identifier: BSD-3-Clause
 * Times causal attention of random queries, keys and values in memory, and prints medians.  Keys
 * and values of a stream are contiguous.  On a GPU they are also read from a pool of blocks in
 * random order. */
#include "bench/harvest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "bench/peer.h"
#include "device/attention.h"

#define AT(member) offsetof(struct bench_harvest_options, member)

const struct option_row bench_harvest_rows[BENCH_HARVEST_ROWS] = {
    {"heads", OPTION_INT, AT(heads), "12", 1, 1024, NULL, "COUNT", "number of heads of queries",
     .effect = OPTION_BITS},
    {"kv-heads", OPTION_INT, AT(kv_heads), "0", 0, 1024, NULL, "COUNT",
     "number of heads of keys and values; 0: --heads", .effect = OPTION_BITS},
    {"head-columns", OPTION_INT, AT(head_columns), "64", 1, ATTEND_COLUMNS, NULL, "COUNT",
     "number of columns of a head", .effect = OPTION_BITS},
    {"positions", OPTION_INT, AT(positions), "4096", 1, 1 << 20, NULL, "COUNT",
     "number of positions of a stream", .effect = OPTION_BITS},
    {"queries", OPTION_INT, AT(queries), "0", 0, 1 << 20, NULL, "COUNT",
     "number of queries of a stream, at its last positions; 0: one at each position",
     .effect = OPTION_BITS},
    {"streams", OPTION_INT, AT(streams), "1", 1, 4096, NULL, "COUNT", "sequences",
     .effect = OPTION_BITS},
    {"cells", OPTION_CHOICE, AT(cells), "f32", 0, 0, "f32|f16|bf16", NULL,
     "type of keys and values", .effect = OPTION_BITS},
    {"page", OPTION_INT, AT(page), "16", 1, 1 << 16, NULL, "POSITIONS",
     "number of positions in a block of the pool that a GPU reads", .effect = OPTION_BITS},
};

enum harvest_case { CASE_PEAK, CASE_COPY, CASE_PLAIN, CASE_PAGED, CASES };
static const char *const case_names[CASES] = {"peak", "copy", "contiguous", "paged"};
/* On a GPU several runs are timed together, because starting and waiting take as long as one short
 * run: MIN_TOGETHER to MAX_TOGETHER runs, in about SECONDS_TOGETHER. */
enum { MAX_REPEATS = 1000, MIN_TOGETHER = 5, MAX_TOGETHER = 200 };
#define SECONDS_TOGETHER 0.02

struct bench {
  const struct bench_harvest_options *o;
  const struct bench_common *common;
  struct attention attention;
  enum attend_type type;
  gidx queries, positions; /* of all streams */
  struct device device;
  struct buffer q, k, v, rows, lse;
  struct attend plain, paged;
  struct arena arena;
  gidx *start, *at, *length, *cell;
  idx *table;
  gidx width;
  float *m, *l, *acc; /* m, l, acc, from and end are for a CPU only */
  gidx *from, *end;
  double flops, bytes; /* of one run */
  int together;
  double seconds[CASES][MAX_REPEATS];
};

static void values_fill(const struct bench *b, void *to, gidx count, int wide)
{
  for (gidx i = 0; i < count; i++) {
    float x = (float)random_normal(1, 1, (uint64_t)i & 0xffff);
    if (wide || b->type == ATTEND_F32)
      ((float *)to)[i] = x;
    else
      ((uint16_t *)to)[i] = b->type == ATTEND_F16 ? f16_bits(x) : bf16_bits(x);
  }
}

/* Set the offsets.  Streams follow one another; blocks of the pool are in random order. */
static int offsets_make(struct bench *b)
{
  const struct bench_harvest_options *o = b->o;
  gidx n = o->streams, queries = o->queries ? o->queries : o->positions;
  b->width = ceil_div(o->positions, o->page);
  gidx blocks = n * b->width;
  TRY(arena_alloc(&b->arena, &b->start, n + 1, sizeof *b->start));
  TRY(arena_alloc(&b->arena, &b->at, n, sizeof *b->at));
  TRY(arena_alloc(&b->arena, &b->length, n, sizeof *b->length));
  TRY(arena_alloc(&b->arena, &b->cell, n, sizeof *b->cell));
  TRY(arena_alloc(&b->arena, &b->table, blocks, sizeof *b->table));
  for (gidx i = 0; i < n; i++) {
    b->start[i + 1] = (i + 1) * queries;
    b->at[i] = o->positions - queries;
    b->length[i] = o->positions;
    b->cell[i] = i * o->positions;
  }
  for (gidx i = 0; i < blocks; i++) {
    gidx j = (gidx)random_below(1, 2, (uint64_t)i, (uint64_t)i + 1);
    b->table[i] = b->table[j];
    b->table[j] = (idx)i;
  }
  b->queries = b->start[n];
  b->positions = blocks * o->page; /* a pool has whole blocks */
  return OK;
}

static int buffers_alloc(struct bench *b)
{
  const struct attention *a = &b->attention;
  struct device *dev = &b->device;
  gidx size = b->type == ATTEND_F32 ? 4 : 2, rows = b->queries * a->heads;
  gidx cells = b->positions * a->kv_heads * a->d;
  TRY(buffer_alloc(dev, &b->q, rows * a->d * 4));
  TRY(buffer_alloc(dev, &b->k, cells * size));
  TRY(buffer_alloc(dev, &b->v, cells * size));
  TRY(buffer_alloc(dev, &b->rows, rows * a->dv * 4));
  TRY(buffer_alloc(dev, &b->lse, rows * 4));
  values_fill(b, b->q.host, rows * a->d, 1);
  values_fill(b, b->k.host, cells, 0);
  values_fill(b, b->v.host, cells, 0);
  struct buffer *const all[] = {&b->q, &b->k, &b->v};
  for (int i = 0; i < LENGTH(all); i++) TRY(device_put(dev, all[i], 0, all[i]->bytes));
  return OK;
}

static int is_gpu(const struct bench *b)
{
  return strcmp(b->device.kind, "cuda") == 0;
}

/* Allocate the work space of all runs: plans on a GPU, arrays on a CPU. */
static int work_open(struct bench *b)
{
  const struct attention *a = &b->attention;
  struct attend_plan plan = {.attention = a,
                             .sequences = b->o->streams,
                             .start = b->start,
                             .at = b->at,
                             .length = b->length,
                             .cell = b->cell,
                             .cells = b->positions,
                             .type = b->type};
  gidx rows = b->queries * a->heads;
  if (is_gpu(b)) {
    TRY(attend_open(&b->plain, &b->device, &plan));
    plan.table = b->table;
    plan.width = b->width;
    plan.size = b->o->page;
    return attend_open(&b->paged, &b->device, &plan);
  }
  CHECK(b->type == ATTEND_F32, ERR_USAGE,
        "'--cells' is %s, but a CPU takes only f32: give f32, or --device cuda", b->o->cells);
  TRY(arena_alloc(&b->arena, &b->m, rows, sizeof *b->m));
  TRY(arena_alloc(&b->arena, &b->l, rows, sizeof *b->l));
  TRY(arena_alloc(&b->arena, &b->acc, rows * attention_stride(a->dv), sizeof *b->acc));
  TRY(arena_alloc(&b->arena, &b->from, b->queries, sizeof *b->from));
  return arena_alloc(&b->arena, &b->end, b->queries, sizeof *b->end);
}

/* Count the work of a run.  A multiply-add counts as two operations.  Bytes: q, k, v and the
 * results are moved once.  On a CPU also set from and end. */
static void work_count(struct bench *b)
{
  const struct attention *a = &b->attention;
  gidx from, end;
  double pairs = 0;
  for (gidx s = 0; s < b->o->streams; s++)
    for (gidx i = b->start[s]; i < b->start[s + 1]; i++) {
      attention_seen(a, b->at[s] + i - b->start[s], b->length[s], &from, &end);
      pairs += (double)(end - from);
      if (b->end) b->from[i] = from, b->end[i] = end;
    }
  b->flops = 4 * pairs * a->heads * a->d;
  b->bytes =
      (double)b->queries * a->heads * (2 * a->d + 1) * 4 +
      2.0 * b->o->streams * b->o->positions * a->kv_heads * a->d * (b->type == ATTEND_F32 ? 4 : 2);
}

static int cpu_run(struct bench *b)
{
  const struct attention *a = &b->attention;
  gidx stride = attention_stride(a->dv), wide = (gidx)a->kv_heads * a->d;
  for (idx s = 0; s < b->o->streams; s++) {
    gidx at = b->start[s], row = at * a->heads;
    for (gidx j = 0; j < b->length[s]; j += ATTENTION_SHARD) {
      struct attention_job job = {.attention = a,
                                  .n = (idx)(b->start[s + 1] - at),
                                  .q = (float *)b->q.host + row * a->d,
                                  .from = b->from + at,
                                  .end = b->end + at,
                                  .first = j,
                                  .count = (idx)imin(ATTENTION_SHARD, b->length[s] - j),
                                  .k = (float *)b->k.host + (b->cell[s] + j) * wide,
                                  .v = (float *)b->v.host + (b->cell[s] + j) * wide,
                                  .m = b->m + row,
                                  .l = b->l + row,
                                  .acc = b->acc + row * stride};
      TRY(device_attention(&b->device, &job));
    }
  }
  return OK;
}

static int gpu_run(struct bench *b, struct attend *w, int runs)
{
  struct attend_job job = {.q = &b->q, .k = &b->k, .v = &b->v, .rows = &b->rows, .lse = &b->lse};
  for (int i = 0; i < runs; i++) TRY(attend_run(w, &job));
  return device_get(&b->device, &b->lse, 0, sizeof(float)); /* this waits for the kernels */
}

static int repeat_run(struct bench *b, int turn)
{
  double rate, begun;
  int threads = is_gpu(b) ? 1 : b->common->threads;
  b->seconds[CASE_PEAK][turn] = b->flops / (4 * device_peak(&b->device, 0.2) * threads);
  TRY(device_copy_rate(&b->device, &rate));
  b->seconds[CASE_COPY][turn] = rate > 0 ? b->bytes / rate : 0;
  begun = log_seconds();
  TRY(is_gpu(b) ? gpu_run(b, &b->plain, b->together) : cpu_run(b));
  b->seconds[CASE_PLAIN][turn] = (log_seconds() - begun) / (is_gpu(b) ? b->together : 1);
  if (!is_gpu(b)) return OK;
  begun = log_seconds();
  TRY(gpu_run(b, &b->paged, b->together));
  b->seconds[CASE_PAGED][turn] = (log_seconds() - begun) / b->together;
  return OK;
}

/* Write a line.  of_peak, of_copy: our rate divided by the peak rate of fma, and by the rate of
 * copies; of_copy 0: copies are not measured. */
static void line_write(const struct bench *b, int which, double seconds, double of_peak,
                       double of_copy)
{
  struct json *j = b->common->json;
  if (j) {
    json_object(j, NULL);
    json_text(j, "name", case_names[which]);
    json_real(j, "seconds", seconds);
    json_real(j, "tflops", 1e-12 * b->flops / seconds);
    json_real(j, "of_peak", of_peak);
    json_real(j, "gigabytes", 1e-9 * b->bytes / seconds);
    json_real(j, "of_copy", of_copy > 0 ? of_copy : nan_canonical());
    json_end(j);
    return;
  }
  printf("%-12s %10.4f %10.2f %9.1f%% %10.1f", case_names[which], 1e3 * seconds,
         1e-12 * b->flops / seconds, 100 * of_peak, 1e-9 * b->bytes / seconds);
  if (of_copy > 0) printf(" %9.1f%%", 100 * of_copy);
  printf("\n");
}

static void head_write(const struct bench *b)
{
  const struct attention *a = &b->attention;
  struct json *j = b->common->json;
  gidx queries = b->queries / b->o->streams;
  if (!j) {
    printf("%d streams, each of %lld queries and %d positions, %d query heads, %d key heads of %d "
           "columns, %s, ",
           b->o->streams, (long long)queries, b->o->positions, a->heads, a->kv_heads, a->d,
           b->o->cells);
    if (is_gpu(b)) printf("blocks of %d, ", b->o->page);
    printf("threads=%d variant=%s, medians of %d runs\n", b->common->threads, b->device.variant,
           b->common->repeats);
    printf("%-12s %10s %10s %10s %10s%s\n", "", "ms", "TFLOP/s", "of peak", "GB/s",
           is_gpu(b) ? "    of copy" : "");
    return;
  }
  json_long(j, "streams", b->o->streams);
  json_long(j, "queries", queries);
  json_long(j, "positions", b->o->positions);
  json_long(j, "heads", a->heads);
  json_long(j, "kv_heads", a->kv_heads);
  json_long(j, "head_columns", a->d);
  json_text(j, "cells", b->o->cells);
  json_long(j, "page", b->o->page);
  json_text(j, "variant", b->device.variant);
  json_array(j, "lines");
}

static void table_write(struct bench *b)
{
  int repeats = b->common->repeats;
  head_write(b);
  for (int which = 0; which < CASES; which++) {
    double of[2];
    if (b->seconds[which][0] <= 0) continue;
    for (int i = 0; i < 2; i++)
      of[i] = median_ratio(b->seconds[i ? CASE_COPY : CASE_PEAK], b->seconds[which], repeats);
    line_write(b, which, median(b->seconds[which], repeats), of[0], of[1]);
  }
  if (b->common->json) json_end(b->common->json);
}

static int bench_open(struct bench *b)
{
  const struct bench_harvest_options *o = b->o;
  idx kv_heads = o->kv_heads ? o->kv_heads : o->heads;
  struct device_options options = bench_device(b->common, 1, 0);
  CHECK(o->heads % kv_heads == 0, ERR_USAGE, "'--kv-heads' is %d, which does not divide %d heads",
        kv_heads, o->heads);
  CHECK(o->queries <= o->positions, ERR_USAGE,
        "'--queries' is %d, more than the %d of '--positions'", o->queries, o->positions);
  b->attention = (struct attention){.heads = o->heads,
                                    .kv_heads = kv_heads,
                                    .d = o->head_columns,
                                    .dv = o->head_columns,
                                    .scale = 1 / sqrt(o->head_columns),
                                    .causal = 1};
  b->type = strcmp(o->cells, "f32") == 0   ? ATTEND_F32
            : strcmp(o->cells, "f16") == 0 ? ATTEND_F16
                                           : ATTEND_BF16;
  TRY(device_open(&b->device, &options));
  TRY(offsets_make(b));
  TRY(buffers_alloc(b));
  TRY(work_open(b));
  work_count(b);
  return OK;
}

static int together_of(double seconds)
{
  double runs = fmin(SECONDS_TOGETHER / seconds, MAX_TOGETHER);
  return (int)fmax(runs, MIN_TOGETHER);
}

int bench_harvest(const struct bench_harvest_options *o, const struct bench_common *common)
{
  static struct bench b;
  b = (struct bench){.o = o, .common = common, .together = MIN_TOGETHER};
  TRY(bench_open(&b));
  TRY(repeat_run(&b, 0)); /* may compile kernels */
  if (is_gpu(&b)) TRY(repeat_run(&b, 0));
  b.together = together_of(b.seconds[CASE_PLAIN][0]);
  for (int r = 0; r < common->repeats; r++) TRY(repeat_run(&b, r));
  table_write(&b);
  attend_close(&b.plain);
  attend_close(&b.paged);
  struct buffer *const all[] = {&b.q, &b.k, &b.v, &b.rows, &b.lse};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&b.device, all[i]);
  device_close(&b.device);
  arena_free(&b.arena);
  return OK;
}
