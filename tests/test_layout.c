/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the memory that a job forecasts by a dry run is what it then takes.  This is exact for
 * arenas and buffers of encode, solve and synth, on the rank that takes most.  For the forms of a
 * dictionary that a CPU keeps, up to 4 KiB more may be taken.
 * RUN: np=1 3 */
#include <malloc.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "encode/encode.h"
#include "encode/shard.h"
#include "model/synth.h"
#include "solve/solve.h"
#include "synth/synth.h"
#include "synth/systems.h"
#include "tap.h"

static int rows_make(void *self, gidx first, idx count, float *out)
{
  const struct row_source *rows = self;
  for (gidx i = 0; i < count; i++) trig_row(first + i, rows->p, out + i * rows->p);
  return OK;
}

/* Vector m of an atom has a single 1, in its own column. */
static int atoms_make(void *self, idx first, idx count, float *out)
{
  const struct atom_source *atoms = self;
  gidx d = atoms->d, p = atoms->p;
  memset(out, 0, (size_t)(count * d * p) * sizeof *out);
  for (gidx a = 0; a < count; a++)
    for (gidx m = 0; m < d; m++) out[(a * d + m) * p + ((first + a) + m) % p] = 1;
  return OK;
}

static int supports_drop(void *self, const struct support_block *block)
{
  (void)self, (void)block;
  return OK;
}

struct setting {
  gidx n;
  idx k, d, p, s, rounds, block;
  int codes;
};

static int is_forecast(const struct encode_memory *said, const struct encode_memory *taken)
{
  return said->atoms == taken->atoms && said->rows == taken->rows && said->lists == taken->lists &&
         said->codes == taken->codes && said->places == taken->places && said->rows > 0 &&
         said->host == said->atoms + said->forms + said->rows + said->lists + said->codes +
                           said->places + said->fetched;
}

/* Encode, and compare what this rank took with its forecast.  A block of 0: encode_cut_choose()
 * chooses it. */
static int encode_right(struct comm *c, const struct setting *is, int groups)
{
  struct row_source rows = {.n = is->n,
                            .p = is->p,
                            .name = "rows",
                            .row_bytes = 4.0 * is->p,
                            .self = &rows,
                            .read = rows_make};
  struct atom_source atoms = {
      .k = is->k, .d = is->d, .p = is->p, .name = "atoms", .self = &atoms, .read = atoms_make};
  const struct support_sink sink = {NULL, supports_drop};
  struct encode_task task = {.rows = &rows,
                             .atoms = &atoms,
                             .sink = &sink,
                             .top_s = is->s,
                             .rounds = is->rounds,
                             .groups = groups,
                             .block = is->block,
                             .threads = 1,
                             .variant = "auto",
                             .codes = is->codes};
  struct encode_memory said;
  struct encode_result result;
  encode_cut_choose(&task, c->size);
  int right = encode_memory(&task, c->size, c->rank, &said) == OK;
  right = encode_run(&task, c, &result) == OK && right;
  right = right && is_forecast(&said, &result.memory);
  if (!right)
    printf("# rank %d: groups=%d n=%lld k=%d d=%d p=%d s=%d rounds=%d: %s\n", c->rank, groups,
           (long long)is->n, is->k, is->d, is->p, is->s, is->rounds, status_message());
  encode_free(&result);
  return right;
}

static void test_encode(struct comm *c)
{
  static const struct setting settings[] = {
      {100, 60, 1, 24, 8, 1, 32, 1}, {100, 60, 1, 24, 8, 3, 32, 1}, {37, 50, 3, 17, 4, 2, 64, 1},
      {37, 50, 2, 17, 4, 1, 7, 0},   {1, 2, 1, 1, 1, 1, 1, 1},      {0, 6, 1, 4, 2, 2, 4, 1},
      {3000, 90, 1, 30, 5, 2, 0, 1}, {9000, 90, 1, 30, 5, 2, 0, 1},
  };
  int right = 1;
  for (int i = 0; i < LENGTH(settings); i++)
    right &= encode_right(c, &settings[i], 1) && encode_right(c, &settings[i], c->size);
  ok(right, "encode takes what it forecasts");
}

#ifdef __SANITIZE_ADDRESS__
enum { HAS_OWN_HEAP = 1 };
#else
enum { HAS_OWN_HEAP = 0 };
#endif

/* The number of allocated bytes of the heap. */
static gidx heap_used(void)
{
  struct mallinfo2 info = mallinfo2();
  return (gidx)(info.uordblks + info.hblkhd);
}

/* A device takes its forecast, and up to OWN bytes more for its own state and headers of the
 * heap. */
static void test_forms(void)
{
  enum { OWN = 4096 };
  static const char *const filters[] = {"off", "on"};
  int right = 1;
  if (HAS_OWN_HEAP) {
    skip("a sanitizer has its own heap, whose bytes this test cannot count");
    return;
  }
  for (int i = 0; i < LENGTH(filters); i++) {
    struct device_options options = {
        .p = 40, .d = 2, .max_atoms = 1001, .threads = 1, .variant = "auto"};
    struct device dry, device;
    gidx forms, before = heap_used();
    options.filter = filters[i];
    device_open_dry(&dry, &options, &forms);
    right &= heap_used() == before;
    if (device_open(&device, &options)) {
      status_clear(); /* this processor cannot run the filter */
      device_close(&device);
      continue;
    }
    gidx taken = heap_used() - before;
    right &= forms > 1001 * 2 * 40 && taken >= forms && taken <= forms + OWN;
    device_close(&device);
  }
  ok(right, "the forms of a dictionary on a CPU take what a dry device forecasts");
}

/* A source of systems, which makes a system when it is read. */
struct made_source {
  struct synthetic_systems made;
  struct systems_shape shape;
  struct arena arena;
};

static int systems_read(void *self, const struct systems_block *to)
{
  const struct made_source *m = self;
  for (gidx a = to->first; a < to->first + to->count; a++)
    synthetic_system(&m->made, &m->shape, a, to);
  return OK;
}

static int solutions_drop(void *self, const struct solution_block *block)
{
  (void)self, (void)block;
  return OK;
}

static int systems_drop(void *self, const struct systems_block *block)
{
  (void)self, (void)block;
  return OK;
}

/* The forecast is the memory of the rank that takes most, plus memory_program(). */
static int solve_right(struct comm *c, struct made_source *m, gidx batch)
{
  const struct system_source source = {&m->shape, "made", m, systems_read};
  const struct solution_sink sink = {NULL, solutions_drop};
  struct solve_task task = {.systems = &source,
                            .sink = &sink,
                            .batch = batch ? batch : solve_batch_rows(&m->shape, c->size),
                            .threads = 1,
                            .variant = "auto"};
  struct solve_result said, result;
  gidx taken[8], max = 0;
  if (solve_plan(&task, c->size, &said) || solve_run(&task, c, &result)) return 0;
  if (comm_allgather_long(c, result.memory, taken)) return 0;
  for (int r = 0; r < c->size; r++) max = taken[r] > max ? taken[r] : max;
  return max + memory_program() == said.memory && max > 0 && result.batches == said.batches;
}

static int made_right(struct comm *c, const struct made_source *m)
{
  const struct system_sink sink = {NULL, systems_drop};
  struct synth_systems_result result;
  gidx said;
  if (synth_systems_memory(&m->shape, c->size, &said)) return 0;
  if (synth_systems_run(&m->made, &m->shape, c, &sink, &result)) return 0;
  return c->rank ? result.memory <= said : result.memory == said && said > 0;
}

static void test_systems(struct comm *c)
{
  static const struct synthetic_systems shapes[] = {
      {.seed = 1, .count = 1, .rows = 5, .d = 1, .k = 0},
      {.seed = 1, .count = 300, .rows = 9, .d = 2, .k = 8},
      {.seed = 2, .count = 77, .rows = 20, .d = 4, .k = 9, .mixed = 1, .lengths = LENGTHS_POWER},
  };
  static const gidx batches[] = {0, 1, 500};
  int solved = 1, made = 1;
  for (int i = 0; i < LENGTH(shapes); i++) {
    struct made_source m = {.made = shapes[i]};
    int status = systems_alloc(&m.shape, m.made.count, &m.arena);
    if (!status) synthetic_shape(&m.made, &m.shape);
    if (!status) status = systems_measure(&m.shape, "made");
    for (int j = 0; j < LENGTH(batches); j++) solved &= !status && solve_right(c, &m, batches[j]);
    made &= !status && made_right(c, &m);
    arena_free(&m.arena);
  }
  ok(solved, "solve takes what it forecasts");
  ok(made, "synth takes what it forecasts for systems");
}

static void test_synth(struct comm *c)
{
  struct synth_task task = {
      .planted = {.seed = 3, .k = 19, .d = 2, .p = 7, .s = 4}, .n = 23, .block = 5};
  int right = 1;
  for (int kept = 0; kept < 2; kept++)
    for (int trig = 0; trig < 2; trig++) {
      struct synth s;
      gidx said;
      task.max_keep = kept << 20;
      task.kind = trig ? SYNTH_TRIG : SYNTH_PLANTED;
      right &= !synth_memory(&task, c->size, &said) && !synth_open(&s, c, &task);
      right &= c->rank ? (gidx)s.arena.bytes <= said : (gidx)s.arena.bytes == said && said > 0;
      synth_close(&s);
    }
  ok(right, "synth takes what it forecasts for rows");
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  test_encode(&c);
  test_forms();
  test_systems(&c);
  test_synth(&c);
  int status = done_testing();
  return comm_close(&c) || status;
}
