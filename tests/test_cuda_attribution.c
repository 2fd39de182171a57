/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: lists and sums of attribution on a GPU have the bits of the reference, for all shapes,
 * masks and types.  Cells are contiguous or in any paged pool, and unused cells contain anything.
 * Rows have no atom, one atom, or more atoms than a block of threads takes. */
#include <unistd.h>

#include "attend_problem.h"
#include "base/rng.h"
#include "base/team.h"
#include "device/attribution.h"
#include "model/attribution.h"

enum { ATOMS = 61, MAX_HEADS = 16 };

/* Buffers on the device, besides those of struct problem. */
enum { SIDE_M, SIDE_L, SIDE_ATOMS, SIDE_ATOM_OF, SIDE_ROW, SIDE_CODE, SIDE_SUM, SIDES };

struct attributed {
  struct problem p;
  idx top;
  gidx *start; /* [queries + 1] */
  struct buffer sides[SIDES];
};

/* The number of atoms of a row; row i has atoms from 3 i on, modulo ATOMS. */
static gidx pairs_of(gidx row)
{
  static const gidx counts[] = {4, 0, 1, 16, 17, 33, 8, 9};
  return counts[row % LENGTH(counts)];
}

static idx atom_of(gidx row, gidx place)
{
  return (idx)((3 * row + place) % ATOMS);
}

static float *atoms_of(const struct attributed *t)
{
  return t->sides[SIDE_ATOMS].host;
}

static int attributed_make(struct device *dev, struct attributed *t)
{
  const struct attention *a = &t->p.z.a;
  gidx n = t->p.start[t->p.z.streams], p = (gidx)a->heads * a->dv, sums = n * a->heads * 4;
  t->start = calloc((size_t)n + 1, sizeof *t->start);
  for (gidx i = 0; i < n; i++) t->start[i + 1] = t->start[i] + pairs_of(i);
  gidx pairs = t->start[n];
  const gidx bytes[SIDES] = {
      sums, sums, ATOMS * p * 4, pairs * 4, pairs * t->top * 8, pairs * t->top * 4, pairs * 8};
  for (int i = 0; i < SIDES; i++) {
    TRY(buffer_alloc(dev, &t->sides[i], bytes[i]));
    memset(t->sides[i].host, 0xff, (size_t)t->sides[i].bytes);
  }
  for (gidx i = 0; i < ATOMS * p; i++) {
    float x = (float)random_normal(5, 1, (uint64_t)i);
    atoms_of(t)[i] = !t->p.z.coarse ? x : x < 0 ? -1 : 1;
  }
  for (gidx i = 0; i < n; i++)
    for (gidx e = 0; e < pairs_of(i); e++)
      ((idx *)t->sides[SIDE_ATOM_OF].host)[t->start[i] + e] = atom_of(i, e);
  for (int i = 0; i < SIDES; i++) TRY(device_put(dev, &t->sides[i], 0, t->sides[i].bytes));
  return OK;
}

static void attributed_free(struct device *dev, struct attributed *t)
{
  for (int i = 0; i < SIDES; i++) buffer_free(dev, &t->sides[i]);
  problem_free(dev, &t->p);
  free(t->start);
}

/* Run attention, and then the attribution twice; but only once if is_small(), because sanitizers
 * are slow. */
static int plan_run(struct attend *w, const struct attributed *t)
{
  const struct buffer *s = t->sides;
  struct attend_job walk = job_of(&t->p);
  walk.m = &s[SIDE_M], walk.l = &s[SIDE_L];
  const struct attribute_job job = {.q = walk.q,
                                    .k = walk.k,
                                    .v = walk.v,
                                    .m = walk.m,
                                    .l = walk.l,
                                    .atoms = &s[SIDE_ATOMS],
                                    .pairs = t->start[t->p.start[t->p.z.streams]],
                                    .start = t->start,
                                    .end = t->start + 1,
                                    .atom_of = &s[SIDE_ATOM_OF],
                                    .top = t->top,
                                    .row = &s[SIDE_ROW],
                                    .code = &s[SIDE_CODE],
                                    .sum = &s[SIDE_SUM]};
  TRY(attend_run(w, &walk));
  for (int i = is_small(); i < 2; i++) TRY(attend_attribute(w, &job));
  for (int i = 0; i < SIDES; i++) TRY(device_get(w->device, &s[i], 0, s[i].bytes));
  return OK;
}

static int attributed_run(struct device *dev, struct attributed *t)
{
  const struct attend_plan plan = plan_of(&t->p);
  struct attend w;
  int status = attend_open(&w, dev, &plan);
  if (!status) status = sides_make(dev, &t->p, &w);
  if (!status) status = attributed_make(dev, t);
  if (!status) status = plan_run(&w, t);
  attend_close(&w);
  if (status) printf("# %s\n", status_message());
  return status;
}

/* m, l <- the reference's sums of a query.  Returns whether the GPU's sums have their bits. */
static int sums_same(const struct attributed *t, const struct attention_cells *cells,
                     const struct attributed_query *query, gidx row, float *m, float *l)
{
  const struct attention *a = &t->p.z.a;
  float acc[MAX_HEAD_COLUMNS];
  for (idx h = 0; h < a->heads; h++) {
    struct attention_sum sum = {.acc = acc};
    attention_row_sum(a, cells, query->q + (gidx)h * a->d, h, query->from, query->end, &sum);
    m[h] = sum.m, l[h] = sum.l;
  }
  size_t bytes = (size_t)a->heads * sizeof *m;
  const float *got_m = t->sides[SIDE_M].host, *got_l = t->sides[SIDE_L].host;
  return query->from == query->end ||
         (!memcmp(m, got_m + row * a->heads, bytes) && !memcmp(l, got_l + row * a->heads, bytes));
}

/* How many pairs of query i of stream s differ; one more if its sums do. */
static int query_differs(const struct attributed *t, int s, gidx i)
{
  const struct problem *p = &t->p;
  const struct attention *a = &p->z.a;
  const struct attention_cells cells = {.k = p->k + p->first[s] * a->kv_heads * a->d,
                                        .v = p->v + p->first[s] * a->kv_heads * a->dv};
  gidx row = p->start[s] + i;
  float m[MAX_HEADS], l[MAX_HEADS];
  struct attributed_query query = {p->q + row * a->heads * a->d, m, l, 0, 0};
  struct arena arena = {0};
  struct top_rows top;
  attention_seen(a, p->at[s] + i, p->z.n_kv[s], &query.from, &query.end);
  int bad = !sums_same(t, &cells, &query, row, m, l);
  if (top_init(&top, &arena, 1, t->top)) return 1;
  for (gidx e = t->start[row]; e < t->start[row + 1]; e++) {
    const float *atom = atoms_of(t) + (gidx)atom_of(row, e - t->start[row]) * a->heads * a->dv;
    real sum;
    for (idx r = 0; r < t->top; r++) top.row[r] = -1, top.code[r] = 0;
    attribution_row(a, &cells, &query, atom, &top, 0, &sum);
    const gidx *rows = (const gidx *)t->sides[SIDE_ROW].host + e * t->top;
    const float *codes = (const float *)t->sides[SIDE_CODE].host + e * t->top;
    bad += memcmp(rows, top.row, (size_t)t->top * sizeof *rows) ||
           memcmp(codes, top.code, (size_t)t->top * sizeof *codes) ||
           memcmp((const real *)t->sides[SIDE_SUM].host + e, &sum, sizeof sum);
  }
  arena_free(&arena);
  return bad;
}

/* Compare about `most` queries of each stream, including the first and the last. */
static int queries_differ(const struct attributed *t, int most)
{
  int bad = 0;
  for (int s = 0; s < t->p.z.streams; s++) {
    gidx n = t->p.z.n_q[s], step = imax(n / most, 1);
    for (gidx i = 0; i < n; i = i + step < n || i == n - 1 ? i + step : n - 1)
      bad += query_differs(t, s, i);
  }
  return bad;
}

/* Shapes are collected first.  Then threads check them, each with its own device. */
struct check {
  struct shape z;
  idx top;
  int most, good, bad;
};
static struct check *checks;
static int n_checks;

static void shape_check(const struct shape *z, idx top, int most)
{
  checks = realloc(checks, (size_t)(n_checks + 1) * sizeof *checks);
  checks[n_checks++] = (struct check){*z, top, most, 0, 0};
}

static void check_run(struct device *dev, struct check *c)
{
  struct attributed t = {.top = c->top};
  problem_make(&t.p, &c->z);
  int ran = !attributed_run(dev, &t);
  c->bad = ran ? queries_differ(&t, c->most) : 0;
  c->good = ran && (c->z.layout == SWAPPED) == (c->bad > 0);
  attributed_free(dev, &t);
}

/* The work of a thread: check shapes that no other thread has taken. */
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

static void streams_fill(struct shape *z, gidx queries, gidx longest)
{
  static const gidx lengths[] = {1, 15, 16, 17, 31, 33, 255, 256, 257, 1000, 1300};
  z->streams = 0;
  for (int i = 0; i < LENGTH(lengths) && lengths[i] <= longest; i++) {
    if (is_small() && i % 3 != 2) continue;
    z->n_kv[z->streams] = lengths[i];
    z->n_q[z->streams++] = imin(queries, lengths[i]);
  }
}

/* Contiguous cells, and pools of every kind.  If two blocks are swapped the result changes. */
static void layouts_check(void)
{
  static const struct {
    enum layout layout;
    idx size;
  } uses[] = {{PLAIN, 0},     {IDENTITY, 16}, {PERMUTED, 16}, {PERMUTED, 32},
              {PERMUTED, 24}, {PERMUTED, 1},  {SHARED, 16}};
  struct shape z = {.a = {.heads = 4, .kv_heads = 2, .d = 64, .dv = 64, .causal = 1}};
  for (int i = 0; i < LENGTH(uses); i++)
    for (int type = 0; type < 3; type++) {
      if (is_small() && (i + type) % 3) continue;
      z.layout = uses[i].layout;
      z.size = uses[i].size;
      z.type = (enum attend_type)type;
      streams_fill(&z, i % 2 ? is_small() ? 3 : 70 : 1, is_small() ? 33 : 1300);
      shape_check(&z, 10, 9);
    }
  z = (struct shape){.a = z.a, .streams = 1, .layout = SWAPPED, .size = 16};
  z.n_q[0] = is_small() ? 5 : 40, z.n_kv[0] = 100;
  shape_check(&z, 10, 100);
}

/* Groups of heads, masks that begin anywhere, numbers of columns that fill no tile, and lists of
 * any length. */
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
      {.heads = 2, .kv_heads = 1, .d = 256, .dv = 256, .causal = 1},
      {.heads = 16, .kv_heads = 1, .d = 33, .dv = 129, .causal = 1}};
  static const idx tops[] = {1, 3, 10, 31, 32, 33, 100, 1024};
  static const gidx queries[] = {1, 7, 61, 1200};
  for (int i = 0; i < LENGTH(kinds); i++)
    for (int q = 0; q < LENGTH(queries); q++) {
      if (is_small() && (i + q) % 4) continue;
      struct shape z = {.a = kinds[i], .streams = 2, .type = (enum attend_type)((i + q) % 3)};
      gidx n = is_small() ? imin(queries[q], 3) : queries[q];
      z.n_q[0] = z.n_q[1] = n;
      z.n_kv[0] = !is_small() ? 2100 : i == 4 ? 301 : 40; /* several shards, or spans of weights */
      z.n_kv[1] = is_small() ? 5 : 29;                    /* some queries see nothing */
      z.layout = q % 2 ? PERMUTED : PLAIN;
      z.size = q % 2 ? 7 : 0;
      shape_check(&z, tops[(i + 3 * q) % LENGTH(tops)], 11);
    }
}

/* Weights that are all nearly equal, and few different values: many contributions are equal, or
 * 0. */
static void ties_check(void)
{
  static const idx tops[] = {1, 7, 33, 200};
  for (int i = 0; i < LENGTH(tops); i++) {
    struct shape z = {.a = {.heads = 4, .kv_heads = 2, .d = 16, .dv = 4, .causal = 1},
                      .streams = 2,
                      .type = (enum attend_type)(i % 3),
                      .layout = i % 2 ? PERMUTED : PLAIN,
                      .size = i % 2 ? 16 : 0,
                      .big = 1e-30f,
                      .coarse = 1};
    z.n_q[0] = z.n_q[1] = is_small() ? 2 : 9;
    z.n_kv[0] = is_small() ? 40 : 300, z.n_kv[1] = 40;
    shape_check(&z, tops[i], 9);
  }
}

static const struct {
  const char *text;
  void (*collect)(void);
} claims[] = {
    {"types, streams and paged pools: the reference's bits", layouts_check},
    {"masks, groups, soft caps, widths, lengths of lists: the reference's bits", kinds_check},
    {"equal contributions are in order, and those of 0 are left out", ties_check}};

int main(void)
{
  if (!gpu_present()) return done_testing();
  int ends[LENGTH(claims)], at = 0;
  for (int i = 0; i < LENGTH(claims); i++) {
    claims[i].collect();
    ends[i] = n_checks;
  }
  int left = n_checks, threads = is_small() ? 1 : (int)sysconf(_SC_NPROCESSORS_ONLN);
  team_run(threads, threads, checks_take, &left);
  for (int i = 0; i < LENGTH(claims); i++) {
    claim_begin("%s", claims[i].text);
    for (; at < ends[i]; at++) shape_say(&checks[at].z, checks[at].good, checks[at].bad);
    claim_end();
  }
  free(checks);
  return done_testing();
}
