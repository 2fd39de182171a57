/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: if keys and values of a capture come to a GPU in pieces, rows have the bits of the CPU,
 * for any memory in which a piece fits, any blocks of queries, and if ranks share queries or
 * positions.  The same holds for a CPU that takes pieces as a GPU does (pieces_made.h).
 * RUN: np=1 3 */
#include "pieces_made.h"

/* Rows, and the logarithms of their sums of exponentials, on rank 0. */
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

/* Too little memory is refused with a message that has its numbers. */
static void refusal_check(struct device *gpu, struct attention a)
{
  struct made m;
  made_init(&m, a);
  fake.memory = memory_of(&a, 1) / 4;
  int status = harvest_device_check(&m.source, gpu, 0, 0);
  ok(status == ERR_MEMORY && strstr(status_message(), "1024 positions of 'made'"), "refused: %s",
     status_message());
  status_clear();
  fake.memory = 500 << 20;
  ok(!harvest_device_check(&m.source, gpu, 0, 0), "pieces are enough");
  ok(harvest_device_check(&m.source, gpu, 0, fake.memory) == ERR_MEMORY &&
         strstr(status_message(), "0.0 MB are free"),
     "refused: %s", status_message());
  status_clear();
  made_free(&m);
}

static void loops_check(struct comm *c, struct device *cpu)
{
  struct device dev;
  if (!ok(loops_open(&dev), "a device that walks by the plain loops")) return;
  for (int i = 0; i < LOOPS_KINDS; i++) kind_check(c, cpu, &dev, kinds[i]);
  refusal_check(&dev, kinds[0]);
  device_close(&dev);
}

static void gpu_check(struct comm *c, struct device *cpu)
{
  struct device dev;
  if (!ok(gpu_open(&dev, c), "a GPU is opened")) return;
  for (int i = 0; i < LENGTH(kinds); i++)
    if (!is_small() || i >= LOOPS_KINDS) kind_check(c, cpu, &dev, kinds[i]);
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
