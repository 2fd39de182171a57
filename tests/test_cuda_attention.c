/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: attention on a GPU has the bits of its reference, for all shapes, masks and types, in each
 * of many launches.  Cells are contiguous or in any paged pool, and unused cells contain anything.
 * A table with wrong entries is refused. */
#include <math.h>
#include <unistd.h>

#include "attend_problem.h"
#include "base/team.h"
#include "model/attention.h"

/* Launch a problem on the GPU `launches` times; rows and lse are in p->sides.  All launches must
 * have the bits of the first, so each launch must leave counters as they were. */
static int problem_run(struct device *dev, struct problem *p, int launches)
{
  const struct buffer *rows = &p->sides[3], *lse = &p->sides[4];
  char *first = NULL;
  struct attend_plan plan = plan_of(p);
  struct attend w;
  const struct attend_job job = job_of(p);
  int status = attend_open(&w, dev, &plan);
  if (!status) status = sides_make(dev, p, &w);
  for (int i = 0; i < launches && !status; i++) {
    status = attend_run(&w, &job);
    if (!status) status = device_get(dev, &p->sides[3], 0, rows->bytes);
    if (!status) status = device_get(dev, &p->sides[4], 0, lse->bytes);
    if (!status && first &&
        (memcmp(first, rows->host, (size_t)rows->bytes) != 0 ||
         memcmp(first + rows->bytes, lse->host, (size_t)lse->bytes) != 0))
      status = status_fail(ERR_DEVICE, __FILE__, __LINE__, "launch %d has other bits", i);
    if (!status && !first) {
      first = malloc((size_t)(rows->bytes + lse->bytes));
      memcpy(first, rows->host, (size_t)rows->bytes);
      memcpy(first + rows->bytes, lse->host, (size_t)lse->bytes);
    }
  }
  free(first);
  attend_close(&w);
  if (status) printf("# %s\n", status_message());
  return status;
}

/* Does query i of stream s have the bits of the reference in a head? */
static int row_same(const struct problem *p, int s, gidx i, idx head)
{
  const struct attention *a = &p->z.a;
  const struct attention_cells cells = {.k = p->k + p->first[s] * a->kv_heads * a->d,
                                        .v = p->v + p->first[s] * a->kv_heads * a->dv};
  gidx from, end, at = (p->start[s] + i) * a->heads + head;
  float want[MAX_HEAD_COLUMNS], lse;
  attention_seen(a, p->at[s] + i, p->z.n_kv[s], &from, &end);
  attention_row(a, &cells, p->q + at * a->d, head, from, end, want, &lse);
  const float *rows = (const float *)p->sides[3].host + at * a->dv;
  const float *got = (const float *)p->sides[4].host + at;
  int good = !memcmp(want, rows, (size_t)a->dv * sizeof *rows);
  return good && (!memcmp(&lse, got, sizeof lse) || (isnan(lse) && isnan(*got)));
}

/* Compare about `most` rows of each stream, including the first and the last.  Returns how many
 * differ. */
static int rows_differ(const struct problem *p, int most)
{
  int bad = 0;
  for (int s = 0; s < p->z.streams; s++) {
    gidx rows = p->z.n_q[s] * p->z.a.heads, step = imax(rows / most, 1);
    for (gidx r = 0; r < rows; r = r + step < rows || r == rows - 1 ? r + step : rows - 1)
      bad += !row_same(p, s, r / p->z.a.heads, (idx)(r % p->z.a.heads));
  }
  return bad;
}

/* Shapes are collected first.  Then threads check them, each with its own device, because compiling
 * and the reference take most of the time. */
struct check {
  struct shape z;
  int most, launches, good, bad;
};
static struct check *checks;
static int n_checks;

static void shape_launch(const struct shape *z, int most, int launches)
{
  checks = realloc(checks, (size_t)(n_checks + 1) * sizeof *checks);
  checks[n_checks++] = (struct check){*z, most, launches, 0, 0};
}

static void shape_check(const struct shape *z, int most)
{
  shape_launch(z, most, 2);
}

static void check_run(struct device *dev, struct check *c)
{
  struct problem p;
  problem_make(&p, &c->z);
  int ran = !problem_run(dev, &p, c->launches);
  c->bad = ran ? rows_differ(&p, c->most) : 0;
  c->good = ran && (c->z.layout == SWAPPED) == (c->bad > 0);
  problem_free(dev, &p);
}

/* The work of a thread: check shapes that no other thread has taken.  The last ones come first,
 * because they are the largest. */
static void checks_take(void *left, gidx thread)
{
  struct device dev;
  struct device_options options = how_options(&how_cuda, 1, 1, 0);
  int opened = !device_open(&dev, &options);
  (void)thread;
  for (int i; opened && (i = __atomic_sub_fetch((int *)left, 1, __ATOMIC_RELAXED)) >= 0;)
    check_run(&dev, &checks[i]);
  device_close(&dev);
}

static void checks_run(int threads)
{
  int left = n_checks;
  team_run(threads, threads, checks_take, &left);
}

/* Check a shape with contiguous cells, and with pools of every kind. */
static void layouts_check(struct shape z, int most)
{
  static const struct {
    enum layout layout;
    idx size;
  } uses[] = {{PLAIN, 0},     {IDENTITY, 16}, {PERMUTED, 16},
              {PERMUTED, 32}, {PERMUTED, 24}, {SHARED, 16}};
  for (int i = 0; i < LENGTH(uses); i++) {
    if (is_small() && i % 2) continue;
    z.layout = uses[i].layout;
    z.size = uses[i].size;
    shape_check(&z, most);
  }
}

static const gidx lengths[] = {1, 15, 16, 17, 255, 256, 257, 1000, 4096};

/* Streams take the lengths in turn.  Each has `queries` queries, but at most one per position. */
static void streams_fill(struct shape *z, int streams, int first, gidx queries, gidx longest)
{
  z->streams = streams;
  for (int s = 0; s < streams; s++) {
    z->n_kv[s] = imin(lengths[(first + s) % LENGTH(lengths)], longest);
    z->n_q[s] = imin(queries, z->n_kv[s]);
  }
}

static void lengths_check(void)
{
  struct shape z = {.a = {.heads = 4, .kv_heads = 2, .d = 64, .dv = 64, .causal = 1}};
  gidx longest = is_small() ? 130 : 4096;
  for (int queries = 1; queries <= 70; queries += 69) {
    for (int l = 0; l < LENGTH(lengths) && !is_small(); l++) {
      streams_fill(&z, 1, l, queries, longest);
      layouts_check(z, 9);
    }
    streams_fill(&z, 4, 5, queries, longest);
    layouts_check(z, 9);
    streams_fill(&z, is_small() ? 9 : 32, 0, queries, longest);
    layouts_check(z, 5);
  }
}

static void widths_check(void)
{
  static const idx widths[] = {16, 32, 64, 80, 96, 128, 130, 192, 256};
  for (int w = 0; w < LENGTH(widths); w++)
    for (int type = 0; type < 3; type++)
      for (int queries = 1; queries <= 130; queries += 129) {
        if (is_small() && (w + type + queries) % 4) continue;
        gidx n = is_small() ? imin(queries, 34) : queries;
        struct shape z = {.a = {.heads = 8, .kv_heads = 2, .d = widths[w], .dv = widths[w]},
                          .type = (enum attend_type)type};
        z.a.causal = 1;
        z.layout = w % 2 ? PERMUTED : PLAIN;
        z.size = w % 2 ? 16 : 0;
        streams_fill(&z, is_small() ? 2 : 4, 5, n, is_small() ? 130 : 1300);
        shape_check(&z, 9);
      }
}

/* Groups of heads, few queries and many, masks that begin anywhere, and numbers of columns that
 * fill no tile. */
static void kinds_check(void)
{
  const struct attention kinds[] = {
      {.heads = 8, .kv_heads = 2, .d = 24, .dv = 40, .causal = 1},
      {.heads = 6, .kv_heads = 2, .d = 17, .dv = 5, .window = 70},
      {.heads = 5, .kv_heads = 1, .d = 64, .dv = 64, .causal = 1, .window = 1100},
      {.heads = 1, .kv_heads = 1, .d = 1, .dv = 1, .causal = 1},
      {.heads = 2, .kv_heads = 2, .d = 32, .dv = 32, .softcap = 1, .causal = 1},
      {.heads = 2, .kv_heads = 2, .d = 32, .dv = 32, .scale = 30},
      {.heads = 8, .kv_heads = 1, .d = 96, .dv = 48, .causal = 1, .window = 130, .softcap = 3},
      {.heads = 3, .kv_heads = 3, .d = 160, .dv = 200, .window = 200},
      {.heads = 16, .kv_heads = 1, .d = 33, .dv = 250, .causal = 1}};
  static const gidx queries[] = {1, 2, 7, 61, 2500};
  for (int i = 0; i < LENGTH(kinds); i++)
    for (int q = 0; q < LENGTH(queries); q++) {
      if (is_small() && (i + q) % 5) continue;
      struct shape z = {.a = kinds[i], .streams = 2, .type = (enum attend_type)((i + q) % 3)};
      gidx n = is_small() ? imin(queries[q], 20) : queries[q];
      z.n_q[0] = z.n_q[1] = n;
      z.n_kv[0] = n == 2500 ? 2100 : !is_small() ? 3001 : i % 4 ? 150 : 1090; /* several shards */
      z.n_kv[1] = is_small() ? 15 : 129;
      z.layout = q % 2 ? PERMUTED : PLAIN;
      z.size = q % 2 ? 7 : 0;
      shape_check(&z, 31);
    }
}

/* Few rows, with 64, 256 and 1,024 tasks, which give each number of stages of kernel attention_few
 * on a GPU with 100 to 150 multiprocessors.  One case, f32 with two rows per head, once caused a
 * warning of racecheck. */
static void stages_check(void)
{
  static const int streams[] = {4, 16, 64};
  for (int i = 0; i < LENGTH(streams); i++)
    for (int type = 0; type < 2; type++) {
      struct shape z = {.a = {.heads = 32, .kv_heads = 16, .d = 64, .dv = 64, .causal = 1},
                        .type = (enum attend_type)type};
      z.a.window = i == 1 ? 70 : 0;
      z.layout = type ? PERMUTED : PLAIN;
      z.size = type ? 16 : 0;
      streams_fill(&z, streams[i], 1, 1, is_small() ? 330 : 1300);
      shape_launch(&z, 9, is_small() ? 3 : 100);
    }
}

/* Weights far from 1, and values that are not finite. */
static void values_check(void)
{
  struct shape z = {.a = {.heads = 2, .kv_heads = 1, .d = 16, .dv = 16, .causal = 1}};
  static const float big[] = {1, 30, 1e4f, 1e18f, 1e38f};
  z.streams = 1;
  z.n_kv[0] = is_small() ? 70 : 1100;
  for (int i = 0; i < LENGTH(big); i += is_small() ? 4 : 1)
    for (int bad = 0; bad < 3; bad++)
      for (int few = 0; few < 2; few++) {
        z.big = big[i];
        z.bad = bad;
        z.n_q[0] = few ? 3 : z.n_kv[0];
        z.a.window = bad == WITH_NAN ? 90 : 0;
        shape_check(&z, 200);
      }
}

/* All queries of a stream at once have the bits of the same queries as sequences of one query. */
static void decode_check(struct device *dev)
{
  struct shape z = {.a = {.heads = 4, .kv_heads = 2, .d = 64, .dv = 64, .causal = 1}, .streams = 1};
  struct problem p;
  gidx n = is_small() ? 70 : 4096, wide = z.a.heads * z.a.dv;
  z.n_q[0] = z.n_kv[0] = n;
  problem_make(&p, &z);
  int good = !problem_run(dev, &p, 2);
  float *rows = malloc((size_t)(n * wide) * sizeof *rows);
  memcpy(rows, p.sides[3].host, (size_t)(n * wide) * sizeof *rows);
  gidx *start = malloc((size_t)(n + 1) * sizeof *start), *cell = calloc((size_t)n, sizeof *cell);
  gidx *length = malloc((size_t)n * sizeof *length);
  for (gidx i = 0; i <= n; i++) start[i] = i;
  for (gidx i = 0; i < n; i++) length[i] = n, cell[i] = p.cell[0];
  struct attend_plan plan = {&p.z.a, (idx)n, start,   start,      length, cell, NULL,
                             0,      0,      p.cells, ATTEND_F32, NULL,   NULL};
  struct attend w;
  const struct attend_job job = job_of(&p);
  good = good && !device_clear(dev, &p.sides[3], 0, p.sides[3].bytes) &&
         !attend_open(&w, dev, &plan) && !attend_run(&w, &job) &&
         !device_get(dev, &p.sides[3], 0, p.sides[3].bytes);
  if (good) attend_close(&w);
  ok(good && !memcmp(rows, p.sides[3].host, (size_t)(n * wide) * sizeof *rows),
     "%lld queries at once and one by one", (long long)n);
  free(rows);
  free(start);
  free(cell);
  free(length);
  problem_free(dev, &p);
}

/* So many parts of results that they take more than one launch. */
static void launches_check(void)
{
  struct shape z = {.a = {.heads = 32, .kv_heads = 8, .d = 16, .dv = 256, .causal = 1}};
  if (is_small()) return;
  z.streams = 2;
  z.n_q[0] = z.n_kv[0] = 4300;
  z.n_q[1] = z.n_kv[1] = 900;
  shape_check(&z, 40);
}

static void refusals_check(struct device *dev)
{
  static const struct {
    const char *said;
    int status;
  } cases[] = {{"entry (1, 2) of a table is 99", ERR_INPUT},
               {"entry (1, 2) of a table is -1", ERR_INPUT},
               {"sequence 1 has 200 positions, and its table 5 blocks of 16", ERR_INPUT},
               {"3 heads of q and 2 of k", ERR_INPUT},
               {"heads have 300 and 16 columns", ERR_DEVICE},
               {"sequence 0 has cells 60 .. 99, and there are 80", ERR_INPUT}};
  for (int i = 0; i < LENGTH(cases); i++) {
    struct shape z = {.a = {.heads = 4, .kv_heads = 2, .d = 16, .dv = 16},
                      .streams = 2,
                      .layout = PERMUTED,
                      .size = 16};
    struct problem p;
    struct attend w;
    z.n_q[0] = z.n_q[1] = 1;
    z.n_kv[0] = 40, z.n_kv[1] = 64;
    problem_make(&p, &z);
    struct attend_plan plan = plan_of(&p);
    if (i < 2) p.table[p.width + 2] = i ? -1 : 99;
    if (i == 2) p.z.n_kv[1] = 200;
    if (i == 3) p.z.a.heads = 3;
    if (i == 4) p.z.a.d = 300;
    if (i == 5) plan.table = NULL, plan.cells = 80, p.cell[0] = 60;
    int status = attend_open(&w, dev, &plan);
    ok(status == cases[i].status && strstr(status_message(), cases[i].said), "refused: %s",
       status ? status_message() : "not at all");
    status_clear();
    attend_close(&w);
    problem_free(dev, &p);
  }
}

/* If two blocks are swapped the result changes, because the order of positions matters. */
static void order_check(void)
{
  struct shape z = {.a = {.heads = 2, .kv_heads = 2, .d = 64, .dv = 64, .causal = 1},
                    .streams = 1,
                    .layout = SWAPPED,
                    .size = 16};
  z.n_q[0] = is_small() ? 9 : 40, z.n_kv[0] = 100;
  shape_check(&z, 100);
}

static const struct {
  const char *text;
  void (*collect)(void);
} claims[] = {
    {"lengths, streams and paged pools: the reference's bits", lengths_check},
    {"widths and types: the reference's bits", widths_check},
    {"masks, groups, soft caps, widths that fill no tile: the reference's bits", kinds_check},
    {"stages of copies, in many launches: the reference's bits", stages_check},
    {"weights far from 1, and values that are not finite: the reference's bits", values_check},
    {"parts of more than one launch: the reference's bits", launches_check},
    {"positions out of order change the result", order_check}};

int main(void)
{
  if (!gpu_present()) return done_testing();
  struct device dev;
  struct device_options options = how_options(&how_cuda, 1, 1, 0);
  if (!ok(!device_open(&dev, &options), "a GPU is opened")) return done_testing();
  int ends[LENGTH(claims)], at = 0;
  for (int i = 0; i < LENGTH(claims); i++) {
    claims[i].collect();
    ends[i] = n_checks;
  }
  checks_run(is_small() ? 1 : (int)sysconf(_SC_NPROCESSORS_ONLN));
  for (int i = 0; i < LENGTH(claims); i++) {
    if (at == ends[i]) continue;
    claim_begin("%s", claims[i].text);
    for (; at < ends[i]; at++) shape_say(&checks[at].z, checks[at].good, checks[at].bad);
    claim_end();
  }
  free(checks);
  decode_check(&dev);
  refusals_check(&dev);
  device_close(&dev);
  return done_testing();
}
