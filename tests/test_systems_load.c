/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: several threads read the same blocks of systems as one thread, for any sizes of systems
 * and any first system.  If the file is damaged, the message is the same. */
#include "base/num.h"
#include "base/team.h"
#include "io/h5/chunks.h"
#include "io/systems.h"
#include "io_files.h"
#include "tap.h"

enum { COUNT = 3000, BLOCKS = 60 };

static const int threads[] = {2, 3, 8, 40};
static const char name[] = "systems.h5";

struct made {
  struct systems_shape shape;
  struct arena arena;
  idx *atom;
  real *values, *got; /* of all systems, array after array */
};

static gidx below(uint64_t stream, gidx i, gidx most)
{
  return (gidx)random_below(9, stream, (uint64_t)i, (uint64_t)most);
}

/* Some systems have no rows, and some no border. */
static int made_alloc(struct made *m)
{
  TRY(systems_alloc(&m->shape, COUNT, &m->arena));
  for (gidx a = 0; a < COUNT; a++) {
    m->shape.d[a] = (idx)(1 + below(0, a, 3));
    m->shape.k[a] = (idx)below(1, a, 9);
    m->shape.row[a + 1] = m->shape.row[a] + below(2, a, 200);
  }
  TRY(systems_measure(&m->shape, name));
  gidx reals = systems_reals(&m->shape, 0, COUNT);
  TRY(arena_alloc(&m->arena, &m->atom, COUNT, sizeof *m->atom));
  TRY(arena_alloc(&m->arena, &m->values, reals, sizeof *m->values));
  TRY(arena_alloc(&m->arena, &m->got, reals, sizeof *m->got));
  for (idx a = 0; a < COUNT; a++) m->atom[a] = a;
  for (gidx i = 0; i < reals; i++) m->values[i] = noise(3, (uint64_t)i);
  return OK;
}

static int file_make(const struct made *m)
{
  struct systems_output f;
  struct systems_block all = systems_block_at(&m->shape, 0, COUNT, m->values);
  TRY(systems_output_create(&f, name, &m->shape, m->atom, m->atom, 0));
  TRY(f.sink.write(f.sink.self, &all));
  return systems_output_finish(&f, &(struct identity){0}, NULL, run_facts, LENGTH(run_facts));
}

/* Is an array of a block the same as in the arrays of all systems? */
static int part_same(const real *got, const real *all, const gidx *sums, gidx first, gidx end)
{
  return !memcmp(got, all + sums[first], (size_t)(sums[end] - sums[first]) * sizeof *got);
}

static int block_same(const struct made *m, const struct systems_block *b, gidx first, gidx end)
{
  const struct systems_shape *s = &m->shape;
  struct systems_block all = systems_block_at(s, 0, COUNT, m->values);
  return part_same(b->h, all.h, s->h, first, end) && part_same(b->b, all.b, s->b, first, end) &&
         part_same(b->g, all.g, s->g, first, end) && part_same(b->c, all.c, s->c, first, end) &&
         part_same(b->g_b, all.g_b, s->border, first, end);
}

static void blocks_check(struct made *m)
{
  struct systems_input f;
  int wrong = systems_input_open(&f, name);
  for (gidx i = 0; i < BLOCKS && !wrong; i++) {
    gidx first = i ? below(4, i, COUNT) : 0, end = first + (i ? below(5, i, COUNT - first) : COUNT);
    struct systems_block b = systems_block_at(&m->shape, first, end, m->got);
    team_spare_set(threads[i % LENGTH(threads)]);
    memset(m->got, 0, (size_t)systems_reals(&m->shape, first, end) * sizeof *m->got);
    wrong = f.source.read(f.source.self, &b) || !block_same(m, &b, first, end);
  }
  gidx taken = wrong ? 0 : f.arrays[1].chunks->n_direct;
  ok(!wrong && taken > BLOCKS, "%d blocks, %lld chunks past HDF5 %s", BLOCKS, (long long)taken,
     status_message());
  status_clear();
  systems_input_close(&f);
}

/* Change the first byte of a system's numbers B in the file.  Returns 0 on success. */
static int byte_change(const struct made *m, gidx system)
{
  static char bytes[64 << 20];
  const real *wanted = systems_block_at(&m->shape, 0, COUNT, m->values).b + m->shape.b[system];
  FILE *f = fopen(name, "r+b");
  size_t length = f ? fread(bytes, 1, sizeof bytes, f) : 0, at = 0;
  while (at + 16 <= length && memcmp(bytes + at, wanted, 16)) at++;
  if (!f || at + 16 > length || fseek(f, (long)at, SEEK_SET)) return 1;
  fputc(bytes[at] ^ 4, f);
  return fclose(f);
}

static void messages_check(struct made *m)
{
  struct systems_block b = systems_block_at(&m->shape, 0, COUNT, m->got);
  char alone[2048] = "";
  for (int i = -1; i < LENGTH(threads); i++) {
    struct systems_input f;
    team_spare_set(i < 0 ? 1 : threads[i]);
    int status = systems_input_open(&f, name);
    if (!status) status = f.source.read(f.source.self, &b);
    if (i < 0) snprintf(alone, sizeof alone, "%s", status_message());
    ok(status == ERR_INPUT && !strcmp(alone, status_message()) && strstr(alone, "B_blocks"),
       "%d threads: %s", i < 0 ? 1 : threads[i], status_message());
    status_clear();
    systems_input_close(&f);
  }
}

int main(void)
{
  struct made m = {0};
  folder_enter();
  if (ok(!made_alloc(&m) && !file_make(&m), "a file: %s", status_message())) {
    blocks_check(&m);
    ok(!byte_change(&m, COUNT / 2) && !byte_change(&m, COUNT - 9), "two bytes are changed");
    messages_check(&m);
  }
  arena_free(&m.arena);
  folder_leave();
  return done_testing();
}
