/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: if keys and values come to a GPU in pieces, lists and sums of attribution have the bits of
 * the CPU, for any memory of the GPU and any blocks of queries.  The same holds for a CPU that
 * takes pieces as a GPU does (pieces_made.h).
 * RUN: np=1 3 */
#include "harvest/attribute.h"

#include "pieces_made.h"

enum { ATOMS = 23, TOP = 5, MUTE = 4 /* the sequence whose rows have no atom */ };

/* A capture with supports and atoms, in memory. */
struct explained {
  struct made m;
  struct support_source supports;
  struct atom_source atoms;
  gidx *start;  /* [n + 1] */
  float *units; /* [ATOMS][p] */
};

/* The lists and sums that rank 0 gets. */
struct listed {
  gidx *row;   /* [pairs][TOP] */
  float *code; /* [pairs][TOP] */
  real *sum;   /* [pairs] */
  gidx pairs;  /* so far */
};

/* The number of atoms of a row; row i has atoms from 3 i on.  Most rows of the first sequence have
 * none, and some rows have more than a block of threads of a GPU takes. */
static gidx pairs_of(const struct made *m, gidx row)
{
  static const gidx counts[] = {4, 1, 17, 2};
  if (row >= m->start[MUTE] && row < m->start[MUTE + 1]) return 0;
  return row < m->start[1] && row % 5 ? 0 : counts[row % LENGTH(counts)];
}

static int starts_give(void *self, gidx first, gidx count, gidx *out)
{
  const struct explained *t = self;
  memcpy(out, t->start + first, (size_t)(count + 1) * sizeof *out);
  return OK;
}

static int entries_give(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes)
{
  const struct explained *t = self;
  gidx row = 0;
  for (gidx i = 0; i < count; i++) {
    while (t->start[row + 1] <= first + i) row++;
    atoms[i] = (idx)((3 * row + first + i - t->start[row]) % ATOMS);
    if (score) score[i] = codes[i] = 0;
  }
  return OK;
}

static int atoms_give(void *self, idx first, idx count, float *out)
{
  const struct explained *t = self;
  idx p = t->atoms.p;
  memcpy(out, t->units + (gidx)first * p, (size_t)((gidx)count * p) * sizeof *out);
  return OK;
}

static void explained_init(struct explained *t, struct attention a)
{
  made_init(&t->m, a);
  gidx n = t->m.source.n;
  idx p = a.heads * a.dv;
  t->units = floats_make((gidx)ATOMS * p, 4, 1);
  atoms_normalize(t->units, ATOMS, 1, p);
  t->start = calloc((size_t)n + 1, sizeof *t->start);
  for (gidx i = 0; i < n; i++) t->start[i + 1] = t->start[i] + pairs_of(&t->m, i);
  t->supports = (struct support_source){n, t->start[n], ATOMS,        1, 1, "supports",
                                        t, starts_give, entries_give, 0};
  t->atoms = (struct atom_source){
      .k = ATOMS, .d = 1, .p = p, .name = "atoms", .self = t, .read = atoms_give};
}

static void explained_free(struct explained *t)
{
  made_free(&t->m);
  free(t->start);
  free(t->units);
}

static int block_keep(void *self, const struct attributed_block *b)
{
  struct listed *l = self;
  size_t pairs = (size_t)b->pairs, values = pairs * TOP;
  if (!pairs) return OK;
  memcpy(l->row + l->pairs * TOP, b->top->row, values * sizeof *l->row);
  memcpy(l->code + l->pairs * TOP, b->top->code, values * sizeof *l->code);
  memcpy(l->sum + l->pairs, b->sum, pairs * sizeof *l->sum);
  l->pairs += b->pairs;
  return OK;
}

static struct listed listed_init(gidx pairs)
{
  size_t n = (size_t)pairs;
  return (struct listed){malloc(n * TOP * sizeof(gidx)), malloc(n * TOP * sizeof(float)),
                         malloc(n * sizeof(real)), 0};
}

static void listed_free(struct listed *l)
{
  free(l->row), free(l->code), free(l->sum);
}

static int listed_same(const struct listed *a, const struct listed *b)
{
  size_t n = (size_t)a->pairs, values = n * TOP;
  return a->pairs == b->pairs && !memcmp(a->row, b->row, values * sizeof *a->row) &&
         !memcmp(a->code, b->code, values * sizeof *a->code) &&
         !memcmp(a->sum, b->sum, n * sizeof *a->sum);
}

/* Run the attribution on a device whose memory has room for `shards` shards of keys and values. */
static int attribute_to(struct comm *c, struct explained *t, struct device *dev, idx block,
                        gidx shards, struct listed *out)
{
  const struct attribute_sink sink = {out, block_keep};
  const struct attribute_task task = {.capture = &t->m.source,
                                      .supports = &t->supports,
                                      .atoms = &t->atoms,
                                      .top = TOP,
                                      .threads = 2,
                                      .device = dev,
                                      .sink = &sink,
                                      .block = block};
  struct attribute_result result;
  fake.memory = memory_of(&t->m.source.attention, shards) + attribute_bytes(&task, c->size);
  fake.walks = fake.pieces = 0;
  out->pairs = 0;
  int status = attribute_run(c, &task, &result);
  if (status) printf("# %s\n", status_message());
  attribute_free(&result);
  return status;
}

static void kind_check(struct comm *c, struct device *cpu, struct device *gpu, struct attention a)
{
  static const struct {
    gidx shards;
    idx block;
  } uses[] = {{1000, 0}, {3, 0}, {2, 0}, {1, 100}, {1, 41}};
  struct explained t;
  explained_init(&t, a);
  gidx pairs = t.start[t.m.source.n];
  struct listed want = listed_init(pairs), got = listed_init(pairs);
  int good = !attribute_to(c, &t, cpu, 0, 0, &want);
  for (int i = is_small(); i < LENGTH(uses); i += 1 + 2 * is_small()) {
    memset(got.row, 0x7f, (size_t)pairs * TOP * sizeof *got.row);
    int ran = good && !attribute_to(c, &t, gpu, uses[i].block, uses[i].shards, &got);
    ok(ran && (c->rank || (want.pairs == pairs && listed_same(&want, &got))),
       "%s: heads %d over %d of %d and %d, causal %d, window %lld, cap %g: blocks of %d, %lld "
       "shards: %d pieces in %d walks",
       gpu->variant, a.heads, a.kv_heads, a.d, a.dv, a.causal, (long long)a.window, a.softcap,
       uses[i].block, (long long)uses[i].shards, fake.pieces, fake.walks);
  }
  listed_free(&want);
  listed_free(&got);
  explained_free(&t);
}

int main(void)
{
  struct comm c;
  struct device cpu = {0}, dev = {0};
  const struct device_options options = {.p = 1, .d = 1, .threads = 1, .variant = "auto"};
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  if (ok(!device_check_fma() && !device_open(&cpu, &options), "a CPU")) {
    if (ok(loops_open(&dev), "a device that walks by the plain loops"))
      for (int i = 0; i < LOOPS_KINDS; i++) kind_check(&c, &cpu, &dev, kinds[i]);
    device_close(&dev);
    if (gpu_present() && ok(gpu_open(&dev, &c), "a GPU is opened"))
      for (int i = 0; i < LENGTH(kinds); i++)
        if (!is_small() || i >= LOOPS_KINDS) kind_check(&c, &cpu, &dev, kinds[i]);
    device_close(&dev);
  }
  device_close(&cpu);
  int status = done_testing();
  return comm_close(&c) || status;
}
