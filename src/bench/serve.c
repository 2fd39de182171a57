/* SPDX-License-Identifier: BSD-3-Clause
 * First measures `encode` of the rows.  Then measures a server in this process: with clients alone,
 * with clients and a backlog under each policy, and with a backlog alone. */
#include "bench/serve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "bench/serve_load.h"
#include "bench/serve_report.h"
#include "model/dictionary.h"
#include "net/net.h"

#define AT(member) offsetof(struct bench_serve_options, member)

const struct option_row bench_serve_rows[BENCH_SERVE_ROWS] = {
    {"streams", OPTION_INT, AT(streams), "64", 1, 1000, NULL, "COUNT",
     "number of clients; each request has one row", .effect = OPTION_BITS},
    {"rate", OPTION_REAL, AT(rate), "50", 0.01, 1e6, NULL, "ROWS",
     "rows per second of each client, at the times of a Poisson process", .effect = OPTION_BITS},
    {"seconds", OPTION_REAL, AT(seconds), "5", 0.1, 1e6, NULL, "SECONDS",
     "how long each case is measured", .effect = OPTION_RUN},
    {"target-ms", OPTION_REAL, AT(target_ms), "1.5", 0.001, 1e6, NULL, "MS",
     "how long a step of the dynamic policy should take", .effect = OPTION_RUN},
    {"quantum", OPTION_INT, AT(quantum), "0", 0, 1 << 20, NULL, "ROWS",
     "smallest number of backlog rows in a step of the dynamic policy; 0: 512, or --n-rows if "
     "that is less",
     .effect = OPTION_RUN},
    {"budget", OPTION_INT, AT(budget), "0", 0, 1 << 20, NULL, "ROWS",
     "number of backlog rows in a step of the static policy; 0: --quantum", .effect = OPTION_RUN},
};

enum { POOL = 4096 }; /* number of different rows */

struct bench {
  const struct bench_serve_options *o;
  const struct bench_route_options *shape;
  const struct bench_common *common;
  struct comm *c;
  float *rows; /* [POOL][p] */
  struct atom_source atoms;
  struct row_source source;
  struct encode_task encode;
  struct support_sink sink;
  char folder[64], path[80];
  double begun, ended; /* when encode wrote its first and its last block, in seconds */
  gidx written, first; /* rows that encode wrote in all, and in its first block */
  enum serve_case which;
  struct serve_load load;
  struct serve_measured results[CASES];
  const char *variant;
  struct arena arena;
};

static int rows_read(void *self, gidx first, idx count, float *out)
{
  const struct bench *b = self;
  idx p = b->shape->columns;
  while (count > 0) {
    gidx at = first % POOL, n = imin(POOL - at, count);
    memcpy(out, b->rows + at * p, (size_t)n * (size_t)p * sizeof *out);
    out += n * p;
    first += n, count -= (idx)n;
  }
  return OK;
}

static int atoms_read(void *self, idx first, idx count, float *out)
{
  const struct bench *b = self;
  idx p = b->shape->columns;
  for (gidx v = 0; v < (gidx)count * p; v++)
    out[v] = (float)random_normal(1, 2, (uint64_t)((gidx)first * p + v));
  return OK;
}

static int block_count(void *self, const struct support_block *block)
{
  struct bench *b = self;
  b->ended = log_seconds();
  if (!b->written) b->begun = b->ended, b->first = block->n;
  b->written += block->n;
  return OK;
}

/* Stop encode --seconds after its first block, when there is a second one. */
static uint64_t encode_asked(void *self)
{
  const struct bench *b = self;
  return b->written > b->first && b->ended - b->begun >= b->o->seconds;
}

static void stopped(void *self, uint64_t asked)
{
  (void)self, (void)asked;
}

static void task_fill(struct bench *b)
{
  const struct bench_route_options *s = b->shape;
  b->atoms = (struct atom_source){.k = s->atoms,
                                  .d = 1,
                                  .p = s->columns,
                                  .name = "random atoms",
                                  .self = b,
                                  .read = atoms_read,
                                  .is_shared = 1};
  b->source = (struct row_source){.n = s->n_rows,
                                  .p = s->columns,
                                  .name = "random rows",
                                  .row_bytes = 4. * s->columns,
                                  .self = b,
                                  .read = rows_read,
                                  .is_shared = 1};
  b->sink = (struct support_sink){b, block_count};
  b->encode = (struct encode_task){.rows = &b->source,
                                   .atoms = &b->atoms,
                                   .sink = &b->sink,
                                   .top_s = s->top_s,
                                   .rounds = 1,
                                   .groups = 1,
                                   .block = s->n_rows,
                                   .threads = b->common->threads,
                                   .device = b->common->device,
                                   .variant = b->common->cpu_variant,
                                   .kernels = b->common->kernels,
                                   .filter = "auto",
                                   .codes = 1,
                                   .normalize = 1};
  encode_cut_choose(&b->encode, 1);
}

static int encode_measure(struct bench *b)
{
  static struct encode_result result;
  struct encode_task task = b->encode;
  struct row_source all = b->source;
  all.n = (gidx)1 << 34;
  task.rows = &all;
  task.block = 0; /* encode_cut_choose() sets it, as for `sagitta encode` */
  encode_cut_choose(&task, 1);
  task.stops = (struct stops){encode_asked, stopped, b};
  TRY(encode_run(&task, b->c, &result));
  CHECK(b->written > b->first, ERR_USAGE,
        "encode wrote only one block in this time: give more --seconds");
  b->results[ENCODE].backlog = (double)(b->written - b->first) / (b->ended - b->begun);
  encode_free(&result);
  return OK;
}

static uint64_t serve_asked(void *self)
{
  const struct bench *b = self;
  return (uint64_t)__atomic_load_n(&b->load.is_over, __ATOMIC_ACQUIRE);
}

static int ready(void *self, const struct serve_facts *facts)
{
  struct bench *b = self;
  b->results[b->which].target = facts->target;
  return serve_load_begin(&b->load);
}

static int real_order(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The quantile `part` (0 < part <= 1) of n values, NaN if n is 0.  Sorts the values. */
static double percentile(double *values, gidx n, double part)
{
  if (!n) return nan_canonical();
  qsort(values, (size_t)n, sizeof *values, real_order);
  return values[(gidx)ceil(part * (double)n) - 1];
}

static void result_take(struct bench *b)
{
  struct serve_load *l = &b->load;
  struct serve_measured *m = &b->results[b->which];
  m->requests = l->requests;
  m->refused = l->refused;
  m->lost = l->requests - l->answered - l->refused;
  m->p50 = percentile(l->latency, l->answered, 0.5);
  m->p99 = percentile(l->latency, l->answered, 0.99);
  m->most = percentile(l->latency, l->answered, 1);
  m->status = percentile(l->status, l->statuses, 1);
  m->backlog = l->has_backlog ? l->backlog : nan_canonical();
  m->steps = l->steps;
}

static struct admission_knobs knobs_of(const struct bench *b)
{
  gidx m = b->shape->n_rows, standard = imin(512, m);
  gidx quantum = b->o->quantum ? b->o->quantum : standard;
  static const enum admission_policy policies[CASES] = {
      [STATIC] = ADMISSION_STATIC, [DYNAMIC] = ADMISSION_DYNAMIC, [UNWATCHED] = ADMISSION_DYNAMIC};
  return (struct admission_knobs){.policy = policies[b->which],
                                  .step_rows = m,
                                  .quantum = quantum,
                                  .budget = b->o->budget ? b->o->budget : quantum,
                                  .file_period = 8};
}

static int case_measure(struct bench *b, enum serve_case which)
{
  struct serve *server;
  b->which = which;
  b->load = (struct serve_load){.path = b->path,
                                .streams = which == UNWATCHED ? 0 : b->o->streams,
                                .has_backlog = which != ALONE,
                                .rate = b->o->rate,
                                .warm = fmin(1, b->o->seconds),
                                .seconds = b->o->seconds,
                                .rows = b->rows,
                                .n_rows = POOL,
                                .p = b->shape->columns,
                                .piece = ceil_div(b->shape->n_rows, 4096) * 4096};
  const struct serve_task task = {.encode = &b->encode,
                                  .knobs = knobs_of(b),
                                  .target_ms = b->o->target_ms,
                                  .linger_ms = 1000,
                                  .drain_seconds = 10,
                                  .live_rows = 1,
                                  .bulk_rows = 1,
                                  .credit = 4096,
                                  .queue_bytes = (gidx)1 << 30,
                                  .unread_bytes = (gidx)1 << 30,
                                  .address = b->path,
                                  .ready = ready,
                                  .self = b,
                                  .files = {serve_load_feed, &b->load},
                                  .stops = {serve_asked, stopped, b}};
  struct admission_knobs check = task.knobs;
  check.target = 1;
  TRY(admission_check(&check));
  TRY(serve_run(&task, b->c, &server));
  TRY(serve_load_end(&b->load));
  result_take(b);
  serve_free(server);
  serve_load_free(&b->load);
  return OK;
}

static int bench_run(struct bench *b)
{
  TRY(arena_alloc(&b->arena, &b->rows, (gidx)POOL * b->shape->columns, sizeof *b->rows));
  for (gidx v = 0; v < (gidx)POOL * b->shape->columns; v++)
    b->rows[v] = (float)random_normal(1, 1, (uint64_t)v);
  task_fill(b);
  b->results[ENCODE].p50 = b->results[ENCODE].p99 = b->results[ENCODE].most = nan_canonical();
  b->results[ENCODE].status = nan_canonical();
  TRY(encode_measure(b));
  for (int i = ALONE; i < CASES; i++) TRY(case_measure(b, (enum serve_case)i));
  serve_report(b->o, b->shape, b->common, b->results);
  return OK;
}

int bench_serve(const struct bench_serve_options *o, const struct bench_route_options *shape,
                const struct bench_common *common, struct comm *c)
{
  static struct bench b;
  b = (struct bench){.o = o, .shape = shape, .common = common, .c = c};
  TRY(net_check());
  strcpy(b.folder, "/tmp/sagitta-bench-XXXXXX");
  CHECK(mkdtemp(b.folder), ERR_CREATE, "cannot create the folder '%s' for a socket", b.folder);
  snprintf(b.path, sizeof b.path, "%s/live", b.folder);
  int status = bench_run(&b);
  unlink(b.path);
  rmdir(b.folder);
  arena_free(&b.arena);
  return status;
}
