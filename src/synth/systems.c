/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank makes a run of consecutive systems of a block.  Rank 0 gathers the block array by
 * array, and writes it. */
#include "synth/systems.h"

#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/worker.h"

enum { BLOCK_REALS = 1 << 22, ARRAYS = 5 };

struct making {
  const struct synthetic_systems *made;
  const struct systems_shape *shape;
  struct comm *c;
  const struct system_sink *sink;
  struct systems_block mine, all;
  struct worker worker;
  struct arena arena;
  idx *counts[ARRAYS];
};

/* sums_of(): where each system's entries begin in an array.  part_of(): the array of a block. */
static const gidx *sums_of(const struct systems_shape *s, int array)
{
  const gidx *const sums[ARRAYS] = {s->h, s->b, s->g, s->c, s->border};
  return sums[array];
}

static real **part_of(struct systems_block *b, int array)
{
  real **const parts[ARRAYS] = {&b->h, &b->b, &b->g, &b->c, &b->g_b};
  return parts[array];
}

/* The end of the block that begins with this system; the block has at least this one. */
static gidx block_end(const struct systems_shape *s, gidx first)
{
  gidx end = first + 1;
  while (end < s->count && systems_reals(s, first, end + 1) <= BLOCK_REALS) end++;
  return end;
}

/* max[ARRAYS] <- the most reals that any block has in each array. */
static void max_block(const struct systems_shape *s, gidx *max)
{
  for (gidx first = 0, end; first < s->count; first = end) {
    end = block_end(s, first);
    for (int i = 0; i < ARRAYS; i++) {
      max[i] = imax(max[i], sums_of(s, i)[end] - sums_of(s, i)[first]);
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

/* Allocate all arrays in m->arena.  A dry arena only counts their bytes. */
static int making_alloc(struct making *m)
{
  gidx max[ARRAYS] = {0};
  max_block(m->shape, max);
  for (int i = 0; i < ARRAYS; i++) {
    TRY(arena_alloc(&m->arena, part_of(&m->mine, i), max[i], sizeof(real)));
    TRY(arena_alloc(&m->arena, part_of(&m->all, i), m->c->rank ? 0 : max[i], sizeof(real)));
    TRY(arena_alloc(&m->arena, &m->counts[i], m->c->size, sizeof(idx)));
  }
  return OK;
}

int synth_systems_memory(const struct systems_shape *shape, int ranks, gidx *bytes)
{
  struct comm first = {.size = ranks};
  struct making m = {.shape = shape, .c = &first, .arena = {.is_dry = 1}};
  TRY(making_alloc(&m));
  *bytes = (gidx)m.arena.bytes;
  return OK;
}

struct write_job {
  struct system_sink sink;
  struct systems_block block;
};

static int write_run(void *argument)
{
  const struct write_job *job = argument;
  return job->sink.write(job->sink.self, &job->block);
}

static int block_write(struct making *m)
{
  if (m->c->rank) return OK;
  struct write_job job = {*m->sink, m->all};
  return worker_run(&m->worker, write_run, &job);
}

/* Make this rank's systems of the block begin .. end - 1; m->counts <- the reals of each rank. */
static void partition_make(struct making *m, gidx begin, gidx end, struct synth_systems_result *out)
{
  for (int r = 0; r < m->c->size; r++) {
    gidx first, count;
    comm_partition(end - begin, m->c->size, r, &first, &count);
    for (int i = 0; i < ARRAYS; i++) {
      const gidx *sums = sums_of(m->shape, i);
      m->counts[i][r] = (idx)(sums[begin + first + count] - sums[begin + first]);
    }
    if (r != m->c->rank) continue;
    m->mine.first = begin + first;
    m->mine.count = count;
  }
  for (gidx a = m->mine.first; a < m->mine.first + m->mine.count; a++) {
    synthetic_system(m->made, m->shape, a, &m->mine);
    out->kinds[synthetic_kind(m->made, m->shape, a)]++;
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
    partition_make(m, first, end, out);
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

int synth_systems_run(const struct synthetic_systems *made, const struct systems_shape *shape,
                      struct comm *c, const struct system_sink *sink,
                      struct synth_systems_result *result)
{
  struct making m = {.made = made, .shape = shape, .c = c, .sink = sink};
  *result = (struct synth_systems_result){0};
  int status = making_alloc(&m);
  if (!status) status = worker_open(&m.worker);
  TRY(comm_agree(c, status));
  result->memory = (gidx)m.arena.bytes;
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
