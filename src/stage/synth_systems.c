/* SPDX-License-Identifier: BSD-3-Clause
 * A block of systems is dealt in consecutive runs, made, gathered array by array, and written. */
#include "stage/synth_systems.h"

#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "base/worker.h"
#include "stage/access.h"

enum { BLOCK_REALS = 1 << 22, ARRAYS = 5 };

struct making {
  const struct made_systems *made;
  const struct systems_shape *shape;
  struct comm *c;
  const struct system_sink *sink;
  struct systems_block mine, all;
  struct worker worker;
  struct arena arena;
  idx *counts[ARRAYS];
};

static const gidx *sums_of(const struct systems_shape *s, int array)
{
  const gidx *const sums[ARRAYS] = {s->h, s->b, s->g, s->c, s->border};
  return sums[array];
}

static real **part_of(struct systems_block *b, int array)
{
  real **const parts[ARRAYS] = {&b->h, &b->b, &b->g, &b->c, &b->hb};
  return parts[array];
}

static gidx block_end(const struct systems_shape *s, gidx first)
{
  gidx end = first + 1;
  while (end < s->count && systems_reals(s, first, end + 1) <= BLOCK_REALS) end++;
  return end;
}

/* Reals of the largest block, of each array. */
static void block_most(const struct systems_shape *s, gidx *most)
{
  for (gidx first = 0, end; first < s->count; first = end) {
    end = block_end(s, first);
    for (int i = 0; i < ARRAYS; i++) {
      gidx reals = sums_of(s, i)[end] - sums_of(s, i)[first];
      if (reals > most[i]) most[i] = reals;
    }
  }
}

int synth_systems_check(const struct systems_shape *s)
{
  for (gidx a = 0; a < s->count; a++)
    CHECK(systems_reals(s, a, a + 1) < INT32_MAX, ERR_USAGE,
          "system %lld would have %lld rows and %lld numbers, at most %d are possible",
          (long long)a, (long long)(s->row[a + 1] - s->row[a]),
          (long long)systems_reals(s, a, a + 1), INT32_MAX - 1);
  return OK;
}

gidx synth_systems_memory(const struct systems_shape *s, int ranks)
{
  gidx most[ARRAYS] = {0}, reals = 0;
  block_most(s, most);
  for (int i = 0; i < ARRAYS; i++) reals += most[i];
  return 8 * reals * (ranks > 1 ? 2 : 1) + 64 * s->count;
}

static int making_take(struct making *m)
{
  gidx most[ARRAYS] = {0};
  block_most(m->shape, most);
  for (int i = 0; i < ARRAYS; i++) {
    TRY(arena_take(&m->arena, part_of(&m->mine, i), most[i], sizeof(real)));
    TRY(arena_take(&m->arena, part_of(&m->all, i), m->c->rank ? 0 : most[i], sizeof(real)));
    TRY(arena_take(&m->arena, &m->counts[i], m->c->size, sizeof(idx)));
  }
  return worker_open(&m->worker);
}

/* Left behind after a deadline, so static. */
static struct write_job {
  const struct system_sink *sink;
  struct systems_block block;
} write_job;

static int write_run(void *argument)
{
  struct write_job *job = argument;
  return job->sink->write(job->sink->self, &job->block);
}

static int block_write(struct making *m)
{
  if (m->c->rank) return OK;
  write_job = (struct write_job){m->sink, m->all};
  return access_run(&m->worker, m->c->deadline, write_run, &write_job);
}

/* Make this rank's systems of the block; counts of all ranks. */
static void share_make(struct making *m, gidx begin, gidx end, struct synth_systems_result *out)
{
  for (int r = 0; r < m->c->size; r++) {
    gidx first, count;
    comm_share(end - begin, m->c->size, r, &first, &count);
    for (int i = 0; i < ARRAYS; i++) {
      const gidx *sums = sums_of(m->shape, i);
      m->counts[i][r] = (idx)(sums[begin + first + count] - sums[begin + first]);
    }
    if (r != m->c->rank) continue;
    m->mine.first = begin + first;
    m->mine.count = count;
  }
  for (gidx a = m->mine.first; a < m->mine.first + m->mine.count; a++) {
    made_system(m->made, m->shape, a, &m->mine);
    out->kinds[made_kind(m->made, m->shape, a)]++;
  }
  for (int i = 0; i < ARRAYS; i++)
    out->fingerprint += fingerprint(*part_of(&m->mine, i), m->counts[i][m->c->rank], sizeof(real),
                                    sums_of(m->shape, i)[m->mine.first] + ((gidx)i << 56));
}

static int blocks_run(struct making *m, struct synth_systems_result *out)
{
  struct progress progress;
  progress_start(&progress, "systems", "systems", m->shape->count);
  for (gidx first = 0, end; first < m->shape->count; first = end) {
    end = block_end(m->shape, first);
    share_make(m, first, end, out);
    for (int i = 0; i < ARRAYS; i++)
      TRY(comm_gather(m->c, *part_of(&m->mine, i), m->counts[i], sizeof(real),
                      *part_of(&m->all, i)));
    m->all.first = first;
    m->all.count = end - first;
    TRY(comm_agree(m->c, block_write(m)));
    progress_show(&progress, end);
  }
  return OK;
}

int synth_systems_run(const struct made_systems *made, const struct systems_shape *shape,
                      struct comm *c, const struct system_sink *sink,
                      struct synth_systems_result *result)
{
  struct making m = {.made = made, .shape = shape, .c = c, .sink = sink};
  *result = (struct synth_systems_result){0};
  TRY(comm_agree(c, making_take(&m)));
  TRY(blocks_run(&m, result));
  gidx fingerprint;
  memcpy(&fingerprint, &result->fingerprint, sizeof fingerprint);
  TRY(comm_sum(c, &fingerprint, 1));
  memcpy(&result->fingerprint, &fingerprint, sizeof fingerprint);
  TRY(comm_sum(c, result->kinds, LENGTH(result->kinds)));
  worker_close(&m.worker);
  arena_free(&m.arena);
  return OK;
}
