/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: rows of a capture whose keys and values come to a GPU in pieces have the bits of the
 * CPU's, whatever room the GPU has, which queries go together, and what ranks share out; so have
 * those of a device that takes pieces as a GPU does and walks them by the plain loops.
 * RUN: np=1 3 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "device/backend.h"
#include "device_how.h"
#include "harvest/harvest.h"

enum { SEQUENCES = 7 };
static const gidx lengths[SEQUENCES] = {1100, 3, 5000, 0, 1024, 2100, 64};
static const gidx queries[SEQUENCES] = {1100, 5, 2, 2, 40, 60, 1};

/* A capture in memory. */
struct made {
  struct capture_source source;
  gidx start[SEQUENCES + 1], first[SEQUENCES + 1];
  float *q, *k, *v;
};

static float *floats_make(gidx count, uint64_t stream, float size)
{
  float *out = malloc((size_t)count * sizeof *out);
  for (gidx i = 0; i < count; i++) out[i] = size * (float)random_normal(7, stream, (uint64_t)i);
  return out;
}

static int queries_read(void *self, gidx first, idx count, float *q)
{
  struct made *m = self;
  gidx row = (gidx)m->source.attention.heads * m->source.attention.d;
  memcpy(q, m->q + first * row, (size_t)(count * row) * sizeof *q);
  return OK;
}

static int positions_read(void *self, gidx sequence, gidx first, idx count, float *k, float *v)
{
  struct made *m = self;
  const struct attention *a = &m->source.attention;
  gidx at = (m->first[sequence] + first) * a->kv_heads, n = (gidx)count * a->kv_heads;
  memcpy(k, m->k + at * a->d, (size_t)(n * a->d) * sizeof *k);
  memcpy(v, m->v + at * a->dv, (size_t)(n * a->dv) * sizeof *v);
  return OK;
}

/* What is too much to be held is not read. */
static int cells_read(void *self, gidx first, gidx count, void *k, void *v)
{
  (void)self, (void)first, (void)k, (void)v;
  FAIL(ERR_INTERNAL, "%lld cells are read", (long long)count);
}

static void made_init(struct made *m, struct attention a)
{
  a.scale = 1 / sqrt(a.d);
  *m = (struct made){0};
  for (int i = 0; i < SEQUENCES; i++) {
    m->start[i + 1] = m->start[i] + queries[i];
    m->first[i + 1] = m->first[i] + lengths[i];
  }
  m->q = floats_make(m->start[SEQUENCES] * a.heads * a.d, 1, 2);
  m->k = floats_make(m->first[SEQUENCES] * a.kv_heads * a.d, 2, 1);
  m->v = floats_make(m->first[SEQUENCES] * a.kv_heads * a.dv, 3, 1);
  m->source =
      (struct capture_source){.attention = a,
                              .n = m->start[SEQUENCES],
                              .sequences = SEQUENCES,
                              .start = m->start,
                              .length = lengths,
                              .name = "made",
                              .self = m,
                              .queries = queries_read,
                              .positions = positions_read,
                              .cells = {.units = (gidx)1 << 40, .size = 1, .read = cells_read}};
}

static void made_free(struct made *m)
{
  free(m->q);
  free(m->k);
  free(m->v);
}

/* A device that calls itself a GPU, has little memory, and walks pieces by the plain loops. */
static struct {
  struct backend backend;
  gidx memory;
  int walks, pieces; /* so far */
} fake;

static int fake_available(struct device *dev, gidx *bytes)
{
  (void)dev;
  *bytes = fake.memory;
  return OK;
}

/* A plan is kept as it is: what it points to stays. */
static int fake_open(struct attend *w, const struct attend_plan *plan)
{
  struct attend_plan *own = malloc(sizeof *own);
  *own = *plan;
  w->state = own;
  return OK;
}

static void fake_close(struct attend *w)
{
  free(w->state);
}

/* Query i of sequence s of a plan, in a head. */
static void fake_row(const struct attend_plan *p, const struct attend_job *job, idx s, gidx i,
                     idx head)
{
  const struct attention *a = p->attention;
  gidx from, end, at = (p->start[s] + i) * a->heads + head, place = p->at[s] + i;
  float *m = (float *)job->m->device + at, *l = (float *)job->l->device + at,
        part[MAX_HEAD_COLUMNS];
  struct attention_sum sum = {*m, *l, (float *)job->rows->device + at * attention_stride(a->dv)};
  struct attention_sum more = {.acc = part};
  const struct attention_cells cells = {
      .k = (float *)job->k->device + p->cell[s] * a->kv_heads * a->d,
      .v = (float *)job->v->device + p->cell[s] * a->kv_heads * a->dv};
  attention_seen(a, place, p->length[s], &from, &end);
  int begins = !p->goes_on[s] || (a->window && place - a->window + 1 >= 0);
  for (gidx next; from < end; from = next, begins = 0) {
    next = imin((from / ATTENTION_SHARD + 1) * ATTENTION_SHARD, end);
    attention_row_sum(a, &cells, (float *)job->q->device + at * a->d, head, from, next, &more);
    if (!begins)
      attention_sum_join(a, &sum, &more);
    else
      memcpy(sum.acc, part, (size_t)a->dv * sizeof *part), sum.m = more.m, sum.l = more.l;
  }
  *m = sum.m, *l = sum.l;
}

static int fake_run(struct attend *w, const struct attend_job *job)
{
  const struct attend_plan *p = w->state;
  for (idx s = 0; s < p->sequences; s++)
    for (gidx i = 0; i < p->start[s + 1] - p->start[s]; i++)
      for (idx head = 0; head < p->attention->heads; head++) fake_row(p, job, s, i, head);
  fake.walks++, fake.pieces += p->sequences;
  return OK;
}

/* Rows and their logarithms, on rank 0. */
struct written {
  float *rows, *lse;
  gidx n, width, heads;
};

static int rows_write(void *self, gidx first, gidx count, const float *rows, const float *lse)
{
  struct written *w = self;
  memcpy(w->rows + first * w->width, rows, (size_t)(count * w->width) * sizeof *rows);
  memcpy(w->lse + first * w->heads, lse, (size_t)(count * w->heads) * sizeof *lse);
  return OK;
}

static struct written written_init(const struct made *m)
{
  const struct attention *a = &m->source.attention;
  struct written w = {.n = m->source.n, .width = (gidx)a->heads * a->dv, .heads = a->heads};
  w.rows = calloc((size_t)(w.n * w.width), sizeof *w.rows);
  w.lse = calloc((size_t)(w.n * w.heads), sizeof *w.lse);
  return w;
}

static void written_free(struct written *w)
{
  free(w->rows);
  free(w->lse);
}

static int written_same(const struct written *a, const struct written *b)
{
  return !memcmp(a->rows, b->rows, (size_t)(a->n * a->width) * sizeof *a->rows) &&
         !memcmp(a->lse, b->lse, (size_t)(a->n * a->heads) * sizeof *a->lse);
}

static int harvest_to(struct comm *c, const struct made *m, struct device *dev, idx block,
                      enum harvest_cut cut, struct written *out)
{
  const struct harvest_sink sink = {out, rows_write};
  const struct harvest_task task = {&m->source, dev, &sink, block, cut};
  struct harvest_result result;
  int status = harvest_run(c, &task, &result);
  if (status) printf("# %s\n", status_message());
  return status;
}

/* Memory of which so many shards of keys and values are the part that they get. */
static gidx memory_of(const struct attention *a, gidx shards)
{
  return 4 * shards * ATTENTION_SHARD * a->kv_heads * (a->d + a->dv) * (gidx)sizeof(float);
}

static void kind_check(struct comm *c, struct device *cpu, struct device *gpu, struct attention a)
{
  static const struct {
    gidx shards;
    idx block;
    enum harvest_cut cut;
  } uses[] = {{1000, 0, HARVEST_QUERIES},
              {3, 0, HARVEST_QUERIES},
              {1, 100, HARVEST_QUERIES},
              {3, 0, HARVEST_POSITIONS},
              {1, 100, HARVEST_POSITIONS}};
  struct made m;
  made_init(&m, a);
  struct written want = written_init(&m), got = written_init(&m);
  int good = !harvest_to(c, &m, cpu, 0, HARVEST_QUERIES, &want);
  for (int i = 0; i < LENGTH(uses); i++) {
    fake.memory = memory_of(&a, uses[i].shards);
    fake.walks = fake.pieces = 0;
    memset(got.rows, 0xff, (size_t)(got.n * got.width) * sizeof *got.rows);
    int ran = good && !harvest_to(c, &m, gpu, uses[i].block, uses[i].cut, &got);
    ok(ran && (c->rank || written_same(&want, &got)),
       "%s: heads %d over %d of %d and %d, causal %d, window %lld: cut %d, blocks of %d, %lld "
       "shards: %d pieces in %d walks",
       gpu->variant, a.heads, a.kv_heads, a.d, a.dv, a.causal, (long long)a.window, uses[i].cut,
       uses[i].block, (long long)uses[i].shards, fake.pieces, fake.walks);
  }
  written_free(&want);
  written_free(&got);
  made_free(&m);
}

/* Memory that is too little is told with its numbers. */
static void refusal_check(struct device *gpu, struct attention a)
{
  struct made m;
  made_init(&m, a);
  fake.memory = memory_of(&a, 1) / 4;
  int status = harvest_device_check(&m.source, gpu, 0);
  ok(status == ERR_MEMORY && strstr(status_message(), "1024 positions of 'made'"), "refused: %s",
     status_message());
  status_clear();
  fake.memory = 500 << 20;
  ok(!harvest_device_check(&m.source, gpu, 0), "pieces are enough");
  ok(harvest_device_check(&m.source, gpu, 1) == ERR_MEMORY, "what is to be held is not");
  status_clear();
  made_free(&m);
}

/* Its memory is what `fake` says. */
static void memory_fake(struct device *dev)
{
  fake.backend = *dev->backend;
  fake.backend.bytes_available = fake_available;
  dev->backend = &fake.backend;
}

static const struct attention kinds[] = {
    {.heads = 2, .kv_heads = 1, .d = 5, .dv = 7, .causal = 1},
    {.heads = 2, .kv_heads = 1, .d = 5, .dv = 7},
    {.heads = 2, .kv_heads = 1, .d = 5, .dv = 7, .causal = 1, .window = 300},
    {.heads = 2, .kv_heads = 1, .d = 5, .dv = 7, .window = 1100, .softcap = 2},
    {.heads = 6, .kv_heads = 2, .d = 64, .dv = 64, .causal = 1}, /* from here on for a GPU alone */
    {.heads = 4, .kv_heads = 4, .d = 128, .dv = 128, .causal = 1, .window = 1500},
    {.heads = 3, .kv_heads = 1, .d = 40, .dv = 200, .softcap = 3}};

static void loops_check(struct comm *c, struct device *cpu)
{
  struct device dev;
  const struct device_options options = {.p = 1, .d = 1, .threads = 1, .variant = "auto"};
  if (!ok(!device_open(&dev, &options), "a device that walks by the plain loops")) return;
  memory_fake(&dev);
  fake.backend.attend_open = fake_open;
  fake.backend.attend_close = fake_close;
  fake.backend.attend_run = fake_run;
  dev.kind = "cuda", dev.variant = "plain loops";
  for (int i = 0; i < 4; i++) kind_check(c, cpu, &dev, kinds[i]);
  refusal_check(&dev, kinds[0]);
  device_close(&dev);
}

static void gpu_check(struct comm *c, struct device *cpu)
{
  struct device dev;
  struct device_options options = how_options(&how_cuda, 1, 1, 0);
  options.local_rank = c->local_rank;
  if (!ok(!device_open(&dev, &options), "a GPU is opened")) return;
  memory_fake(&dev);
  for (int i = 0; i < LENGTH(kinds); i++)
    if (!is_small() || i % 3 == 1) kind_check(c, cpu, &dev, kinds[i]);
  device_close(&dev);
}

int main(void)
{
  struct comm c;
  struct device cpu = {0};
  const struct device_options options = {.p = 1, .d = 1, .threads = 1, .variant = "auto"};
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  if (ok(!device_check_fma() && !device_open(&cpu, &options), "a CPU")) {
    loops_check(&c, &cpu);
    if (gpu_present()) gpu_check(&c, &cpu);
  }
  device_close(&cpu);
  int status = done_testing();
  return comm_close(&c) || status;
}
