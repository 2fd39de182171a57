/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: lists and sums of attribute_run() have the bits of the reference, for every kind of
 * attention, several sequences, rows with any number of atoms, and any blocks and ranks.  A paged
 * pool gives the same bits, and the contributions to the score of a row and an atom add up to this
 * score.
 * RUN: np=1 5, full=1 2 3 5 */
#include "attention_data.h"
#include "base/num.h"
#include "base/status.h"
#include "harvest/attribute.h"
#include "tap.h"
#include "variants.h"

enum { SEQUENCES = 4, ATOMS = 11, MOST = 5 };

static const gidx n_q[SEQUENCES] = {1, 70, 0, 33}, n_kv[SEQUENCES] = {1, 70, 9, 1100};

/* A capture, supports and atoms in memory, and what the sink has counted. */
struct problem {
  struct attention a;
  struct sequence sequence[SEQUENCES];
  gidx start[SEQUENCES + 1];
  float *atoms; /* [ATOMS][p] */
  idx p, top;
  gidx *row_start; /* [n + 1] */
  gidx bad, seen;  /* differences from the reference; number of pairs */
};

static int queries_give(void *self, gidx first, idx count, float *q)
{
  const struct problem *t = self;
  gidx width = (gidx)t->a.heads * t->a.d;
  for (idx i = 0; i < count; i++) {
    idx s = 0;
    while (t->start[s + 1] <= first + i) s++;
    memcpy(q + i * width, t->sequence[s].q + (first + i - t->start[s]) * width,
           (size_t)width * sizeof *q);
  }
  return OK;
}

static int positions_give(void *self, gidx sequence, gidx first, idx count, float *k, float *v)
{
  const struct problem *t = self;
  const struct sequence *s = &t->sequence[sequence];
  gidx wide_k = (gidx)t->a.kv_heads * t->a.d, wide_v = (gidx)t->a.kv_heads * t->a.dv;
  memcpy(k, s->k + first * wide_k, (size_t)(count * wide_k) * sizeof *k);
  memcpy(v, s->v + first * wide_v, (size_t)(count * wide_v) * sizeof *v);
  return OK;
}

/* Row i has i mod MOST atoms: 3 i, 3 i + 1, ..., modulo ATOMS. */
static idx atom_of(gidx row, gidx place)
{
  return (idx)((3 * row + place) % ATOMS);
}

static int starts_give(void *self, gidx first, gidx count, gidx *out)
{
  const struct problem *t = self;
  memcpy(out, t->row_start + first, (size_t)(count + 1) * sizeof *out);
  return OK;
}

static int entries_give(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes)
{
  const struct problem *t = self;
  gidx row = 0;
  for (gidx i = 0; i < count; i++) {
    while (t->row_start[row + 1] <= first + i) row++;
    atoms[i] = atom_of(row, first + i - t->row_start[row]);
    if (score) score[i] = codes[i] = 0;
  }
  return OK;
}

static int atoms_give(void *self, idx first, idx count, float *out)
{
  const struct problem *t = self;
  memcpy(out, t->atoms + (gidx)first * t->p, (size_t)count * (size_t)t->p * sizeof *out);
  return OK;
}

static void problem_make(struct problem *t, struct attention a, idx top)
{
  if (a.scale == 0) a.scale = 1 / sqrt(a.d);
  *t = (struct problem){.a = a, .p = a.heads * a.dv, .top = top};
  for (idx s = 0; s < SEQUENCES; s++) {
    t->sequence[s] = sequence_make(a, n_q[s], n_kv[s], 1 + (float)s);
    t->start[s + 1] = t->start[s] + n_q[s];
  }
  t->atoms = normal_floats((gidx)ATOMS * t->p, 9, 1);
  atoms_normalize(t->atoms, ATOMS, 1, t->p);
  gidx n = t->start[SEQUENCES];
  t->row_start = calloc((size_t)n + 1, sizeof *t->row_start);
  for (gidx i = 0; i < n; i++) t->row_start[i + 1] = t->row_start[i] + i % MOST;
}

static void problem_free(struct problem *t)
{
  for (idx s = 0; s < SEQUENCES; s++) sequence_free(&t->sequence[s]);
  free(t->atoms);
  free(t->row_start);
}

/* The reference of a row: the sums of its heads, then its atoms one after another. */
static void row_reference(const struct problem *t, gidx row, const struct attention_cells *cells,
                          idx s, struct top_rows *top, real *sum)
{
  const struct attention *a = &t->a;
  float m[16], l[16], acc[MAX_HEAD_COLUMNS];
  gidx i = row - t->start[s];
  struct attributed_query query = {t->sequence[s].q + i * a->heads * a->d, m, l, 0, 0};
  sequence_seen(&t->sequence[s], i, &query.from, &query.end);
  for (idx h = 0; h < a->heads; h++) {
    struct attention_sum head = {.acc = acc};
    attention_row_sum(a, cells, query.q + (gidx)h * a->d, h, query.from, query.end, &head);
    m[h] = head.m, l[h] = head.l;
  }
  for (idx e = 0; e < row % MOST; e++)
    attribution_row(a, cells, &query, t->atoms + (gidx)atom_of(row, e) * t->p, top, e, sum + e);
}

static void lists_clear(struct top_rows *t)
{
  for (gidx i = 0; i < (gidx)t->k * t->r; i++) t->row[i] = -1, t->code[i] = 0;
}

/* Do `bytes` bytes differ?  The pointers of a block without pairs may be NULL. */
static int differ(const void *a, const void *b, size_t bytes)
{
  return bytes && memcmp(a, b, bytes) != 0;
}

/* The sink: compare every row of a block with its reference. */
static int block_compare(void *self, const struct attributed_block *b)
{
  struct problem *t = self;
  struct arena arena = {0};
  struct top_rows want;
  real sum[MOST];
  gidx pair = 0;
  TRY(top_init(&want, &arena, MOST, t->top));
  for (gidx i = 0; i < b->rows; i++) {
    gidx row = b->first + i, s = b->sequence[i], pairs = row % MOST, values = pairs * t->top;
    const struct attention_cells cells = sequence_cells(&t->sequence[s]);
    lists_clear(&want);
    row_reference(t, row, &cells, (idx)s, &want, sum);
    t->bad += row < t->start[s] || row >= t->start[s + 1];
    t->bad += differ(b->top->row + pair * t->top, want.row, (size_t)values * sizeof *want.row);
    t->bad += differ(b->top->code + pair * t->top, want.code, (size_t)values * sizeof *want.code);
    t->bad += differ(b->sum + pair, sum, (size_t)pairs * sizeof *sum);
    pair += pairs;
  }
  t->bad += pair != b->pairs;
  t->seen += pair;
  arena_free(&arena);
  return OK;
}

static void problem_check(struct comm *c, struct problem *t, idx block, int threads,
                          const char *variant)
{
  gidx n = t->start[SEQUENCES];
  struct device device = {0};
  const struct device_options options = {.p = 1, .d = 1, .threads = threads, .variant = variant};
  const struct capture_source capture = {.attention = t->a,
                                         .n = n,
                                         .sequences = SEQUENCES,
                                         .start = t->start,
                                         .length = n_kv,
                                         .name = "capture.h5",
                                         .self = t,
                                         .queries = queries_give,
                                         .positions = positions_give};
  const struct support_source supports = {n, t->row_start[n], ATOMS,        1, 1, "supports",
                                          t, starts_give,     entries_give, 0};
  const struct atom_source atoms = {
      .k = ATOMS, .d = 1, .p = t->p, .name = "atoms", .self = t, .read = atoms_give};
  const struct attribute_sink sink = {t, block_compare};
  const struct attribute_task task = {.capture = &capture,
                                      .supports = &supports,
                                      .atoms = &atoms,
                                      .top = t->top,
                                      .threads = threads,
                                      .device = &device,
                                      .sink = &sink,
                                      .block = block};
  struct attribute_result result = {0};
  t->bad = t->seen = 0;
  int status = device_open(&device, &options);
  if (!status) status = attribute_run(c, &task, &result);
  ok(!status && t->bad == 0 && (c->rank || t->seen == t->row_start[n]) && result.error < 1e-6,
     "%d heads of %d, D %d and %d, causal %d, window %lld, cap %g, top %d, block %d, %d threads, "
     "%s: %lld differ, error %.2g %s",
     t->a.heads, t->a.kv_heads, t->a.d, t->a.dv, t->a.causal, (long long)t->a.window, t->a.softcap,
     t->top, block, threads, variant, (long long)t->bad, result.error,
     status ? status_message() : "");
  attribute_free(&result);
  device_close(&device);
}

static int variant_runs(const char *variant)
{
  struct device device = {0};
  const struct device_options options = {.p = 1, .d = 1, .threads = 1, .variant = variant};
  int status = device_open(&device, &options);
  if (status) status_clear();
  device_close(&device);
  return !status;
}

static void job_check(struct comm *c)
{
  const struct attention kinds[] = {
      {.heads = 4, .kv_heads = 2, .d = 24, .dv = 20, .causal = 1},
      {.heads = 3, .kv_heads = 3, .d = 16, .dv = 7, .causal = 0},
      {.heads = 2, .kv_heads = 1, .d = 140, .dv = 12, .causal = 1},
      {.heads = 2, .kv_heads = 1, .d = 32, .dv = 64, .causal = 1, .window = 90},
      {.heads = 6, .kv_heads = 2, .d = 8, .dv = 3, .causal = 0, .window = 5},
      {.heads = 2, .kv_heads = 2, .d = 64, .dv = 16, .causal = 1, .softcap = 3, .scale = 0.3}};
  static const idx blocks[] = {0, 1, 7, 50}, tops[] = {3, 1, 3, 10, 200, 4};
  struct problem t;
  claim_begin("the job's lists and sums have the bits of the reference");
  for (int k = 0; k < LENGTH(kinds); k++) {
    problem_make(&t, kinds[k], tops[k]);
    for (int b = 0; b < LENGTH(blocks); b++) problem_check(c, &t, blocks[b], 1 + b % 3, "auto");
    for (int v = 0; v < LOOP_VARIANTS; v++)
      if (variant_runs(loop_variants[v])) problem_check(c, &t, 40, 2, loop_variants[v]);
    problem_free(&t);
  }
  claim_end();
}

/* out <- the cells of a sequence in blocks of a pool, the last block first. */
static void pool_make(const struct sequence *s, struct attention_cells *out, float **k, float **v,
                      idx **table)
{
  gidx blocks = ceil_div(s->n_kv, 16), wide_k = (gidx)s->a.kv_heads * s->a.d;
  gidx wide_v = (gidx)s->a.kv_heads * s->a.dv;
  *k = calloc((size_t)(blocks * 16 * wide_k), sizeof **k);
  *v = calloc((size_t)(blocks * 16 * wide_v), sizeof **v);
  *table = calloc((size_t)blocks, sizeof **table);
  for (gidx b = 0; b < blocks; b++) {
    gidx n = imin(16, s->n_kv - 16 * b), to = 16 * (blocks - 1 - b);
    (*table)[b] = (idx)(blocks - 1 - b);
    memcpy(*k + to * wide_k, s->k + 16 * b * wide_k, (size_t)(n * wide_k) * sizeof **k);
    memcpy(*v + to * wide_v, s->v + 16 * b * wide_v, (size_t)(n * wide_v) * sizeof **v);
  }
  *out = (struct attention_cells){*k, *v, *table, 16};
}

static void reference_check(void)
{
  struct problem t;
  struct arena arena = {0};
  struct top_rows top, other;
  real sum[MOST], more[MOST];
  float *k, *v;
  idx *table;
  struct attention_cells cells;
  claim_begin("the reference: a pool gives the same bits, and contributions sum to the score");
  problem_make(&t, (struct attention){.heads = 4, .kv_heads = 2, .d = 24, .dv = 20, .causal = 1},
               2000);
  ok(!top_init(&top, &arena, MOST, t.top) && !top_init(&other, &arena, MOST, t.top), "memory");
  const struct attention_cells plain = sequence_cells(&t.sequence[3]);
  pool_make(&t.sequence[3], &cells, &k, &v, &table);
  for (gidx row = t.start[3]; row < t.start[4]; row += 3) {
    gidx places = (gidx)MOST * t.top;
    lists_clear(&top), lists_clear(&other);
    row_reference(&t, row, &plain, 3, &top, sum);
    row_reference(&t, row, &cells, 3, &other, more);
    ok(!memcmp(top.row, other.row, (size_t)places * sizeof *top.row) &&
           !memcmp(top.code, other.code, (size_t)places * sizeof *top.code) &&
           !memcmp(sum, more, (size_t)(row % MOST) * sizeof *sum),
       "row %lld, pool", (long long)row);
    for (idx e = 0; e < row % MOST; e++) {
      float out[MAX_HEAD_COLUMNS], lse;
      const float *atom = t.atoms + (gidx)atom_of(row, e) * t.p;
      real score = 0;
      for (idx h = 0; h < t.a.heads; h++) {
        sequence_row(&t.sequence[3], &plain, row - t.start[3], h, out, &lse);
        for (idx c = 0; c < t.a.dv; c++) score += (real)out[c] * (real)atom[h * t.a.dv + c];
      }
      ok(fabs(score - sum[e]) < 2e-6, "row %lld: %g, not %g", (long long)row, sum[e], score);
    }
  }
  claim_end();
  free(k), free(v), free(table);
  arena_free(&arena);
  problem_free(&t);
}

int main(void)
{
  struct comm c = {0};
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  if (device_check_fma()) {
    status_clear();
    ok(1, "# SKIP no fused multiply-add here");
  } else {
    job_check(&c);
    if (c.rank == 0) reference_check();
  }
  int status = done_testing();
  return comm_close(&c) || status;
}
