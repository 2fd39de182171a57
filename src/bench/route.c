/* SPDX-License-Identifier: BSD-3-Clause
 * Times routing without and with the certified filter, and codes.  The lower bound is a loop of mul
 * and add on registers; for a GPU it follows from the clock.  On a CPU the peer is sgemm of
 * OpenBLAS.  Each repeat measures all cases in turn.  Prints medians. */
#include "bench/route.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/status.h"
#include "bench/peer.h"
#include "device/codes.h"
#include "device/route.h"
#include "io/rows.h"
#include "model/dictionary.h"

#define AT(member) offsetof(struct bench_route_options, member)

const struct option_row bench_shape_rows[BENCH_SHAPE_ROWS] = {
    {"n-rows", OPTION_INT, AT(n_rows), "1920", 1, 1 << 20, NULL, "ROWS", "rows",
     .effect = OPTION_BITS},
    {"atoms", OPTION_INT, AT(atoms), "32768", 2, 1 << 24, NULL, "ATOMS", "atoms",
     .effect = OPTION_BITS},
    {"columns", OPTION_INT, AT(columns), "768", 1, 1 << 16, NULL, "COLUMNS", "columns",
     .effect = OPTION_BITS},
    {"top-s", OPTION_INT, AT(top_s), "32", 1, MAX_TOP_S, NULL, "ATOMS", "atoms per row",
     .effect = OPTION_BITS},
};
const struct option_row bench_route_rows[BENCH_ROUTE_ROWS] = {
    {"rows", OPTION_TEXT, AT(rows), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "also route these rows, over atoms made from them; --columns then follows from the file",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"filter", OPTION_CHOICE, AT(filter), "auto", 0, 0, "auto|on|off", NULL,
     "also route with the certified filter", .effect = OPTION_RUN},
};
const struct option_row bench_product_rows[BENCH_PRODUCT_ROWS] = {
    {"precision", OPTION_CHOICE, AT(precision), "f32", 0, 0, "f32|bf16|f16|tf32", NULL,
     "precision of the products (in training, of those that give scores); all precisions but f32 "
     "need the matrix unit of a GPU",
     .effect = OPTION_BITS},
    {"stored", OPTION_FLAG, AT(stored), "no", 0, 1, NULL, NULL,
     "store the matrices in --precision, bf16 or f16; gradients are f32", .effect = OPTION_BITS},
};

struct device_options bench_device(const struct bench_common *common, idx p, int local_rank)
{
  return (struct device_options){.p = p,
                                 .d = 1,
                                 .threads = common->threads,
                                 .variant = common->cpu_variant,
                                 .kind = common->device,
                                 .local_rank = local_rank,
                                 .kernels = common->kernels};
}

enum bench_case {
  CASE_PEAK,
  CASE_SGEMM,
  CASE_ALONE,
  CASE_RANDOM,
  CASE_ROWS,
  CASE_WORST,
  CASE_CODES,
  CASE_SCREEN, /* with the filter: random data, then given rows, then the worst order */
  CASES = CASE_SCREEN + 3
};
static const char *const case_names[CASES] = {
    "peak",        "sgemm", "scores alone",     "random data",     "given rows",
    "worst order", "codes", "random certified", "given certified", "worst certified"};
enum { MAX_REPEATS = 1000 };

struct problem {
  float *rows, *atoms;              /* [n][p], [k][p] */
  struct device device, filtered;   /* without and with the filter; --filter off: only the first */
  struct buffer given, table;       /* rows and atoms on the device */
  struct buffer lists, slot, codes; /* struct entry [n][s], idx [n][s], float [n][s] */
};

struct bench {
  const struct bench_route_options *o;
  const struct bench_common *common;
  idx p;
  struct problem problems[CASES];
  float *product; /* [PEER_ROWS][k] result of sgemm for a block of rows */
  struct arena arena;
  double seconds[CASES][MAX_REPEATS], work[CASES];
  double dictionary; /* seconds to convert the dictionary for the filter of a GPU */
};

static void random_fill(float *x, gidx count, uint64_t stream)
{
  for (gidx i = 0; i < count; i++) x[i] = (float)random_normal(1, stream, (uint64_t)i);
}

static int is_screened(const struct bench *b)
{
  return strcmp(b->o->filter, "off") != 0;
}

static int problem_open(struct bench *b, struct problem *q)
{
  const struct bench_route_options *o = b->o;
  struct device_options options = bench_device(b->common, b->p, 0), filter;
  gidx entries = (gidx)o->n_rows * o->top_s, rows = (gidx)o->n_rows * b->p * (gidx)sizeof(float);
  gidx atoms = (gidx)o->atoms * b->p * (gidx)sizeof(float);
  struct device *dev = &q->device;
  options.max_atoms = o->atoms;
  options.work = b->work[CASE_RANDOM];
  options.route_rows = o->n_rows;
  filter = options;
  TRY(device_open(dev, &options));
  atoms_normalize(q->atoms, o->atoms, 1, b->p);
  TRY(device_put_tile(dev, q->atoms, o->atoms, 0));
  filter.filter = o->filter;
  if (is_screened(b)) {
    TRY(device_open(&q->filtered, &filter));
    TRY(device_put_tile(&q->filtered, q->atoms, o->atoms, 0));
  }
  TRY(buffer_wrap(dev, &q->given, q->rows, rows));
  TRY(buffer_wrap(dev, &q->table, q->atoms, atoms));
  TRY(buffer_alloc(dev, &q->lists, entries * (gidx)sizeof(struct entry)));
  TRY(buffer_alloc(dev, &q->slot, entries * (gidx)sizeof(idx)));
  TRY(buffer_alloc(dev, &q->codes, entries * (gidx)sizeof(float)));
  TRY(device_put(dev, &q->given, 0, rows));
  return device_put(dev, &q->table, 0, atoms);
}

static void problem_close(struct problem *q)
{
  struct buffer *const all[] = {&q->given, &q->table, &q->lists, &q->slot, &q->codes};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&q->device, all[i]);
  device_close(&q->filtered);
  device_close(&q->device);
}

static int problem_alloc(struct bench *b, struct problem *q)
{
  TRY(arena_alloc(&b->arena, &q->rows, (gidx)b->o->n_rows * b->p, sizeof *q->rows));
  return arena_alloc(&b->arena, &q->atoms, (gidx)b->o->atoms * b->p, sizeof *q->atoms);
}

static int random_open(struct bench *b, struct problem *q)
{
  TRY(problem_alloc(b, q));
  random_fill(q->rows, (gidx)b->o->n_rows * b->p, 1);
  random_fill(q->atoms, (gidx)b->o->atoms * b->p, 2);
  return problem_open(b, q);
}

struct ranked {
  float score;
  idx atom;
};

static int ranked_compare(const void *a, const void *b)
{
  float x = ((const struct ranked *)a)->score, y = ((const struct ranked *)b)->score;
  return (x > y) - (x < y);
}

/* The worst order: all rows are equal, and atoms are in ascending order of |score|. */
static int worst_open(struct bench *b, struct problem *q)
{
  const float *from = b->problems[CASE_RANDOM].atoms;
  size_t bytes = (size_t)b->p * sizeof *q->rows;
  struct ranked *order = NULL;
  TRY(problem_alloc(b, q));
  TRY(arena_alloc(&b->arena, &order, b->o->atoms, sizeof *order));
  for (idx i = 0; i < b->o->n_rows; i++)
    memcpy(q->rows + (gidx)i * b->p, b->problems[CASE_RANDOM].rows, bytes);
  for (idx a = 0; a < b->o->atoms; a++)
    order[a] = (struct ranked){fabsf(route_score(q->rows, from + (gidx)a * b->p, b->p)), a};
  qsort(order, (size_t)b->o->atoms, sizeof *order, ranked_compare);
  for (idx a = 0; a < b->o->atoms; a++)
    memcpy(q->atoms + (gidx)a * b->p, from + (gidx)order[a].atom * b->p, bytes);
  return problem_open(b, q);
}

/* The given rows, and atoms that are copies of the last rows of the source.  If there are more
 * atoms than rows, each further atom is the sum of two of these copies. */
static int given_open(struct bench *b, struct problem *q, const struct row_source *source)
{
  const struct bench_route_options *o = b->o;
  idx have = source->n < (gidx)o->atoms ? (idx)source->n : o->atoms;
  CHECK(source->n >= o->n_rows, ERR_INPUT, "'%s' has %lld rows, %d are wanted: see --n-rows",
        source->name, (long long)source->n, o->n_rows);
  TRY(problem_alloc(b, q));
  TRY(source->read(source->self, 0, o->n_rows, q->rows));
  TRY(source->read(source->self, source->n - have, have, q->atoms));
  for (idx a = have; a < o->atoms; a++)
    for (idx c = 0; c < b->p; c++)
      q->atoms[(gidx)a * b->p + c] =
          q->atoms[(gidx)(a % have) * b->p + c] +
          q->atoms[(gidx)(mix64((uint64_t)a) % (uint64_t)have) * b->p + c];
  return problem_open(b, q);
}

static int route_time(struct bench *b, enum bench_case which, int scores_only, double *seconds)
{
  int certified = which >= CASE_SCREEN;
  struct problem *q = &b->problems[certified ? CASE_RANDOM + which - CASE_SCREEN : which];
  struct route_job job = {
      .rows = &q->given, .n = b->o->n_rows, .top_k = b->o->top_s, .lists = &q->lists};
  job.scores_only = scores_only;
  double begun = log_seconds();
  TRY(device_route(certified ? &q->filtered : &q->device, &job));
  *seconds = log_seconds() - begun;
  return OK;
}

/* Time the codes of the supports that the last routing of random data has found. */
static int codes_time(struct bench *b, double *seconds)
{
  const struct bench_route_options *o = b->o;
  struct problem *q = &b->problems[CASE_RANDOM];
  gidx entries = (gidx)o->n_rows * o->top_s;
  TRY(device_get(&q->device, &q->lists, 0, entries * (gidx)sizeof(struct entry)));
  const struct entry *lists = q->lists.host;
  for (gidx i = 0; i < entries; i++) ((idx *)q->slot.host)[i] = lists[i].atom;
  TRY(device_put(&q->device, &q->slot, 0, entries * (gidx)sizeof(idx)));
  struct codes_job job = {.n = o->n_rows,
                          .m_new = o->top_s,
                          .max_m = o->top_s,
                          .rows = &q->given,
                          .atoms = &q->table,
                          .slot = &q->slot,
                          .codes = &q->codes};
  double begun = log_seconds();
  TRY(device_codes(&q->device, &job));
  *seconds = log_seconds() - begun;
  return OK;
}

static int is_gpu(const struct bench *b)
{
  return strcmp(b->problems[CASE_RANDOM].device.kind, "cuda") == 0;
}

static int repeat_run(struct bench *b, int repeat)
{
  const struct bench_route_options *o = b->o;
  struct problem *random = &b->problems[CASE_RANDOM];
  double peak = device_peak(&random->device, 0.2);
  int gpu = is_gpu(b);
  b->seconds[CASE_PEAK][repeat] = b->work[CASE_PEAK] / peak / (gpu ? 1 : b->common->threads);
  if (gpu)
    TRY(route_time(b, CASE_RANDOM, 1, &b->seconds[CASE_ALONE][repeat]));
  else
    b->seconds[CASE_SGEMM][repeat] = peer_sgemm(random->rows, random->atoms, o->n_rows, o->atoms,
                                                b->p, b->product, b->common->threads);
  TRY(route_time(b, CASE_WORST, 0, &b->seconds[CASE_WORST][repeat]));
  if (b->problems[CASE_ROWS].rows) TRY(route_time(b, CASE_ROWS, 0, &b->seconds[CASE_ROWS][repeat]));
  TRY(route_time(b, CASE_RANDOM, 0, &b->seconds[CASE_RANDOM][repeat]));
  if (is_screened(b))
    for (int which = CASE_SCREEN; which < CASES; which++)
      if (b->problems[CASE_RANDOM + which - CASE_SCREEN].rows)
        TRY(route_time(b, which, 0, &b->seconds[which][repeat]));
  return codes_time(b, &b->seconds[CASE_CODES][repeat]);
}

/* Print counts of the filter over all runs, and its seconds per run, at the end of its line. */
static void filter_print(const struct problem *q, int runs)
{
  const struct screen_counts *c = &q->filtered.filter;
  double rows = 0;
  for (int i = 0; i < SCREEN_PATHS; i++) rows += (double)c->rows[i];
  if (rows == 0) return;
  printf("  certified %.2f%%, %.1f candidates a row, ms a run:",
         100 * (double)c->rows[SCREEN_CERTIFIED] / rows,
         (double)c->candidates / (double)(c->rows[SCREEN_CERTIFIED] + 1));
  for (int i = 0; i < SCREEN_STAGES; i++)
    if (c->seconds[i] > 0) printf(" %s %.2f", screen_stage_names[i], 1e3 * c->seconds[i] / runs);
}

/* Add counts of the filter over all runs, and its seconds per run, to the object of its line. */
static void filter_json(const struct problem *q, int runs, struct json *j)
{
  const struct screen_counts *c = &q->filtered.filter;
  gidx rows = 0;
  for (int i = 0; i < SCREEN_PATHS; i++) rows += c->rows[i];
  json_object(j, "filter");
  json_long(j, "rows", rows);
  json_long(j, "certified", c->rows[SCREEN_CERTIFIED]);
  json_long(j, "candidates", c->candidates);
  json_object(j, "seconds");
  for (int i = 0; i < SCREEN_STAGES; i++)
    if (c->seconds[i] > 0) json_real(j, screen_stage_names[i], c->seconds[i] / runs);
  json_end(j);
  json_end(j);
}

static void line_write(const struct bench *b, enum bench_case which, double seconds, double of_peak)
{
  struct json *j = b->common->json;
  json_object(j, NULL);
  json_text(j, "name", case_names[which]);
  json_real(j, "seconds", seconds);
  json_real(j, "gmacs", 1e-9 * b->work[which] / seconds);
  json_real(j, "of_peak", of_peak);
  if (which >= CASE_SCREEN)
    filter_json(&b->problems[CASE_RANDOM + which - CASE_SCREEN], b->common->repeats, j);
  json_end(j);
}

static void line_print(const struct bench *b, enum bench_case which, double seconds, double of_peak,
                       double route)
{
  printf("%-16s %10.5f %10.2f %9.1f%%", case_names[which], seconds, 1e-9 * b->work[which] / seconds,
         100 * of_peak);
  if (which == CASE_CODES) printf(" %11.1f%%", 100 * seconds / route);
  if (which >= CASE_SCREEN)
    filter_print(&b->problems[CASE_RANDOM + which - CASE_SCREEN], b->common->repeats);
  printf("\n");
}

static void head_write(const struct bench *b, struct json *j)
{
  json_long(j, "rows", b->o->n_rows);
  json_long(j, "atoms", b->o->atoms);
  json_long(j, "columns", b->p);
  json_long(j, "top_s", b->o->top_s);
  json_text(j, "variant", b->problems[CASE_RANDOM].device.variant);
  json_array(j, "lines");
}

static void head_print(const struct bench *b)
{
  printf("N=%d K=%d P=%d s=%d threads=%d variant=%s, medians of %d runs\n", b->o->n_rows,
         b->o->atoms, b->p, b->o->top_s, b->common->threads,
         b->problems[CASE_RANDOM].device.variant, b->common->repeats);
  printf("%-16s %10s %10s %10s %12s\n", "", "seconds", "GMAC/s", "of peak", "of routing");
}

static void table_print(struct bench *b)
{
  int repeats = b->common->repeats;
  double ratio[MAX_REPEATS], route = 0;
  struct json *j = b->common->json;
  if (j)
    head_write(b, j);
  else
    head_print(b);
  for (int which = 0; which < CASES; which++) {
    if (b->seconds[which][0] <= 0) continue;
    for (int r = 0; r < repeats; r++)
      ratio[r] =
          b->work[which] / b->seconds[which][r] / (b->work[CASE_PEAK] / b->seconds[CASE_PEAK][r]);
    double of_peak = median(ratio, repeats);
    for (int r = 0; r < repeats; r++) ratio[r] = b->seconds[which][r];
    double seconds = median(ratio, repeats);
    if (which == CASE_RANDOM) route = seconds;
    if (j)
      line_write(b, which, seconds, of_peak);
    else
      line_print(b, which, seconds, of_peak, route);
  }
  if (j) json_end(j);
}

/* Route again and again for a second, because a GPU that grows hot lowers its clock. */
static int sustained_print(struct bench *b, enum bench_case which)
{
  const double min = 1; /* seconds */
  struct json *j = b->common->json;
  double begun = log_seconds(), one, all = 0;
  int runs = 0;
  for (; all < min; runs++, all = log_seconds() - begun) TRY(route_time(b, which, 0, &one));
  if (j) json_real(j, "sustained_seconds", all / runs);
  if (j) return OK;
  printf("%s, sustained: %.5f s a run, %d runs in %.2f s\n", case_names[which], all / runs, runs,
         all);
  return OK;
}

/* Print for a GPU: the peak rate that follows from its clock, the share of selection and merging in
 * routing, the rate of copies, and counts of kernels and copied bytes.  With the filter also its
 * sustained time, and the time to convert the dictionary.  JSON has some of these only. */
static int gpu_print(struct bench *b)
{
  struct device *dev = &b->problems[CASE_RANDOM].device;
  struct json *j = b->common->json;
  double copies, *of = b->seconds[CASE_RANDOM], *alone = b->seconds[CASE_ALONE];
  TRY(device_copy_rate(dev, &copies));
  double route = median(of, b->common->repeats), scores = median(alone, b->common->repeats);
  if (is_screened(b)) {
    TRY(sustained_print(b, CASE_SCREEN));
    if (j)
      json_real(j, "conversion_seconds", b->dictionary);
    else
      printf("conversion of the dictionary, done once, not part of these times: %.5f s\n",
             b->dictionary);
  }
  if (j) {
    json_real(j, "peak_terms", device_peak(dev, 0));
    json_real(j, "copies_gbs", 1e-9 * copies);
    json_long(j, "kernels", dev->counts.kernels);
    return OK;
  }
  printf("peak is two instructions a term at the highest clock: %.2f T terms/s\n",
         1e-12 * device_peak(dev, 0));
  printf("selection and merging: %.1f%% of routing random data\n", 100 * (route - scores) / route);
  printf("copies inside the device: %.0f GB/s, the sum of reads and writes\n", 1e-9 * copies);
  printf("%lld kernels, %.3f GB to and %.3f GB from the device\n", (long long)dev->counts.kernels,
         1e-9 * (double)dev->counts.put, 1e-9 * (double)dev->counts.got);
  return OK;
}

static int bench_open(struct bench *b, struct rows_input *rows)
{
  const struct bench_route_options *o = b->o;
  if (o->rows) TRY(rows_input_open(rows, NULL, o->rows));
  b->p = o->rows ? rows->source.p : o->columns;
  double macs = (double)o->n_rows * o->atoms * b->p;
  for (int which = 0; which < CASES; which++) b->work[which] = macs;
  b->work[CASE_CODES] = (double)o->n_rows * b->p * o->top_s * (o->top_s + 1) / 2;
  if (strcmp(b->common->device, "cuda")) TRY(device_check_fma());
  TRY(arena_alloc(&b->arena, &b->product, (gidx)PEER_ROWS * o->atoms, sizeof *b->product));
  TRY(random_open(b, &b->problems[CASE_RANDOM]));
  TRY(worst_open(b, &b->problems[CASE_WORST]));
  return o->rows ? given_open(b, &b->problems[CASE_ROWS], &rows->source) : OK;
}

int bench_route(const struct bench_route_options *o, const struct bench_common *common)
{
  static struct bench b;
  struct rows_input rows = {0};
  b = (struct bench){.o = o, .common = common};
  TRY(bench_open(&b, &rows));
  if (is_gpu(&b)) TRY(repeat_run(&b, 0)); /* compiles the kernels, converts dictionaries */
  b.dictionary = b.problems[CASE_RANDOM].filtered.filter.seconds[SCREEN_ATOMS];
  for (int which = 0; which < CASES; which++)
    b.problems[which].filtered.filter = (struct screen_counts){0};
  for (int r = 0; r < common->repeats; r++) TRY(repeat_run(&b, r));
  table_print(&b);
  if (is_gpu(&b)) TRY(gpu_print(&b));
  for (int which = 0; which < CASES; which++) problem_close(&b.problems[which]);
  if (o->rows) rows_input_close(&rows);
  arena_free(&b.arena);
  return OK;
}
