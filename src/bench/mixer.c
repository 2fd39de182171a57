/* SPDX-License-Identifier: BSD-3-Clause
 * Times calls of a gated delta net with random tokens, and prints medians.  The states of streams
 * stay in their slots (device/mixer.h).  Case `call` has all kernels of a call, case `states` only
 * the kernel that updates states, on a GPU.  On a GPU several sets of streams take turns if their
 * states are small, so that the states do not stay in the cache. */
#include "bench/mixer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "bench/peer.h"
#include "device/mixer.h"

#define AT(member) offsetof(struct bench_mixer_options, member)

const struct option_row bench_mixer_rows[BENCH_MIXER_ROWS] = {
    {"streams", OPTION_INT, AT(streams), "64", 1, 4096, NULL, "COUNT", "sequences",
     .effect = OPTION_BITS},
    {"tokens", OPTION_INT, AT(tokens), "1", 1, 1 << 16, NULL, "COUNT",
     "number of tokens of a sequence", .effect = OPTION_BITS},
    {"heads", OPTION_INT, AT(heads), "32", 1, 1024, NULL, "COUNT", "heads", .effect = OPTION_BITS},
    {"key-heads", OPTION_INT, AT(key_heads), "16", 1, 1024, NULL, "COUNT",
     "number of heads of q and k", .effect = OPTION_BITS},
    {"head-columns", OPTION_INT, AT(head_columns), "128", 1, DELTA_COLUMNS, NULL, "COUNT",
     "number of columns of a head", .effect = OPTION_BITS},
    {"decay", OPTION_CHOICE, AT(decay), "head", 0, 0, "head|column", NULL,
     "what has a decay: a head, or each of its key columns", .effect = OPTION_BITS},
};

enum mixer_case { CASE_PEAK, CASE_COPY, CASE_STATES, CASE_CALL, CASES };
static const char *const case_names[CASES] = {"peak", "copy", "states", "call"};
enum { MAX_REPEATS = 1000, MIN_TOGETHER = 4, MAX_TOGETHER = 400, MAX_SETS = 8 };
#define SECONDS_TOGETHER 0.02
#define SET_BYTES (INT64_C(1) << 29) /* wanted bytes of the states of all sets, on a GPU */

struct bench {
  const struct bench_mixer_options *o;
  const struct bench_common *common;
  struct gated_delta model;
  struct device device;
  struct buffer x, conv, g, beta, s, taps, rows;
  struct mixer mixers[MAX_SETS];
  struct arena arena;
  gidx *start, tokens; /* first token of each stream; tokens of all streams */
  idx *slots[MAX_SETS];
  int sets, together;
  double bytes, instructions; /* of a run: bytes of states, read and written; instructions */
  double seconds[CASES][MAX_REPEATS];
};

static int is_gpu(const struct bench *b)
{
  return strcmp(b->device.kind, "cuda") == 0;
}

/* Fill a buffer by repeating some random values, because it may be large. */
static int filled_alloc(struct bench *b, struct buffer *to, gidx count, uint64_t stream, float size)
{
  enum { VALUES = 1 << 16 };
  TRY(buffer_alloc(&b->device, to, count * (gidx)sizeof(float)));
  float *out = to->host;
  for (gidx i = 0; i < imin(count, VALUES); i++) {
    float x = (float)random_normal(1, stream, (uint64_t)i);
    out[i] = size < 0 ? size * fabsf(x) : size * x;
  }
  for (gidx i = VALUES; i < count; i += VALUES)
    memcpy(out + i, out, (size_t)imin(count - i, VALUES) * sizeof *out);
  return device_put(&b->device, to, 0, to->bytes);
}

static int buffers_alloc(struct bench *b)
{
  const struct gated_delta *m = &b->model;
  gidx channels = gated_delta_channels(m), slots = (gidx)b->sets * b->o->streams;
  gidx decays = b->tokens * m->heads * gated_delta_decays(m);
  TRY(filled_alloc(b, &b->x, b->tokens * channels, 1, 1));
  TRY(filled_alloc(b, &b->conv, channels * m->width, 2, 0.5f));
  TRY(filled_alloc(b, &b->g, decays, 3, -0.1f));
  TRY(filled_alloc(b, &b->beta, b->tokens * m->heads, 4, 0.5f));
  TRY(filled_alloc(b, &b->s, slots * m->heads * m->dv * m->d, 5, 0.1f));
  TRY(filled_alloc(b, &b->taps, slots * channels * (m->width - 1), 6, 1));
  return buffer_alloc(&b->device, &b->rows, b->tokens * m->heads * m->dv * (gidx)sizeof(float));
}

/* Assign slots, and make the plan of each set.  The streams of a set keep their slots. */
static int plans_make(struct bench *b)
{
  idx n = b->o->streams;
  const struct mixer_plan plan = {&b->model, n, b->sets * n, b->tokens};
  TRY(arena_alloc(&b->arena, &b->start, n + 1, sizeof *b->start));
  for (idx i = 0; i <= n; i++) b->start[i] = (gidx)i * b->o->tokens;
  for (int set = 0; set < b->sets; set++) {
    TRY(arena_alloc(&b->arena, &b->slots[set], n, sizeof *b->slots[set]));
    for (idx i = 0; i < n; i++) b->slots[set][i] = set * n + i;
    TRY(mixer_open(&b->mixers[set], &b->device, &plan));
  }
  return OK;
}

static int runs(struct bench *b, int is_prepared)
{
  idx n = b->o->streams;
  struct mixer_job job = {.start = b->start,
                          .count = b->model.heads,
                          .x = &b->x,
                          .g = &b->g,
                          .beta = &b->beta,
                          .conv = &b->conv,
                          .s = &b->s,
                          .taps = &b->taps,
                          .o = &b->rows,
                          .is_prepared = is_prepared};
  for (int i = 0; i < b->together; i++) {
    const idx *slots = b->slots[i % b->sets];
    job.slots = (struct delta_slots){n, b->sets * n, slots, slots};
    TRY(mixer_run(&b->mixers[i % b->sets], &job));
  }
  return device_get(&b->device, &b->rows, 0, sizeof(float)); /* this waits for the kernels */
}

static int repeat_run(struct bench *b, int repeat)
{
  int threads = is_gpu(b) ? 1 : b->common->threads;
  double rate, begun;
  b->seconds[CASE_PEAK][repeat] = b->instructions / (2 * device_peak(&b->device, 0.2) * threads);
  TRY(device_copy_rate(&b->device, &rate));
  b->seconds[CASE_COPY][repeat] = rate > 0 ? b->bytes / rate : 0;
  for (int which = CASE_CALL; which >= CASE_STATES; which--) {
    if (which == CASE_STATES && !is_gpu(b)) continue;
    begun = log_seconds();
    TRY(runs(b, which == CASE_STATES));
    b->seconds[which][repeat] = (log_seconds() - begun) / b->together;
  }
  return OK;
}

/* Write a line.  of_peak, of_copy: our rate divided by the peak rate of instructions, and by the
 * rate of copies; of_copy 0: copies are not measured. */
static void line_write(const struct bench *b, int which, double seconds, double of_peak,
                       double of_copy)
{
  struct json *j = b->common->json;
  double us = 1e6 * seconds / b->o->tokens;
  if (j) {
    json_object(j, NULL);
    json_text(j, "name", case_names[which]);
    json_real(j, "seconds", seconds);
    json_real(j, "microseconds_token", us);
    json_real(j, "gigabytes", 1e-9 * b->bytes / seconds);
    json_real(j, "of_peak", of_peak);
    json_real(j, "of_copy", of_copy > 0 ? of_copy : nan_canonical());
    json_end(j);
    return;
  }
  printf("%-8s %10.4f %10.3f %10.1f %9.1f%%", case_names[which], 1e3 * seconds, us,
         1e-9 * b->bytes / seconds, 100 * of_peak);
  if (of_copy > 0) printf(" %9.1f%%", 100 * of_copy);
  printf("\n");
}

static void head_write(const struct bench *b)
{
  const struct bench_mixer_options *o = b->o;
  struct json *j = b->common->json;
  if (!j) {
    printf("%d streams of %d tokens, %d heads, %d key heads of %d columns, a decay for each %s, "
           "threads=%d variant=%s, medians of %d runs\n",
           o->streams, o->tokens, o->heads, o->key_heads, o->head_columns, o->decay,
           b->common->threads, b->device.variant, b->common->repeats);
    printf("%-8s %10s %10s %10s %10s%s\n", "", "ms", "us a token", "GB/s", "of peak",
           is_gpu(b) ? "    of copy" : "");
    return;
  }
  json_long(j, "streams", o->streams);
  json_long(j, "tokens", o->tokens);
  json_long(j, "heads", o->heads);
  json_long(j, "key_heads", o->key_heads);
  json_long(j, "head_columns", o->head_columns);
  json_text(j, "decay", o->decay);
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
  const struct bench_mixer_options *o = b->o;
  struct device_options options = bench_device(b->common, 1, 0);
  b->model = (struct gated_delta){.heads_k = o->key_heads,
                                  .heads = o->heads,
                                  .d = o->head_columns,
                                  .dv = o->head_columns,
                                  .width = 4,
                                  .silu = 1,
                                  .by_column = strcmp(o->decay, "column") == 0,
                                  .l2 = 1,
                                  .eps = 1e-6f,
                                  .scale = (float)(1 / sqrt(o->head_columns))};
  TRY(gated_delta_check(&b->model));
  b->tokens = (gidx)o->streams * o->tokens;
  double values = (double)o->heads * o->head_columns * o->head_columns;
  b->bytes = 2 * sizeof(float) * values * o->streams;
  b->instructions = 4 * values * (double)b->tokens;
  TRY(device_open(&b->device, &options));
  b->sets = is_gpu(b) ? (int)fmin(ceil(2.0 * SET_BYTES / b->bytes), MAX_SETS) : 1;
  TRY(buffers_alloc(b));
  return plans_make(b);
}

int bench_mixer(const struct bench_mixer_options *o, const struct bench_common *common)
{
  static struct bench b;
  b = (struct bench){.o = o, .common = common, .together = 1};
  TRY(bench_open(&b));
  if (is_gpu(&b)) b.together = MIN_TOGETHER;
  TRY(repeat_run(&b, 0)); /* may compile kernels */
  if (is_gpu(&b)) TRY(repeat_run(&b, 0));
  double more = fmin(SECONDS_TOGETHER / b.seconds[CASE_CALL][0], MAX_TOGETHER);
  b.together = (int)fmax(more, b.together);
  for (int r = 0; r < common->repeats; r++) TRY(repeat_run(&b, r));
  table_write(&b);
  for (int set = 0; set < b.sets; set++) mixer_close(&b.mixers[set]);
  struct buffer *const all[] = {&b.x, &b.conv, &b.g, &b.beta, &b.s, &b.taps, &b.rows};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&b.device, all[i]);
  device_close(&b.device);
  arena_free(&b.arena);
  return OK;
}
