/* SPDX-License-Identifier: BSD-3-Clause
 * While a block is routed, the background worker merges the lists of the other block in flight,
 * counts the results of the finished block, and sums the columns of the rows being routed.  It
 * talks to no other rank and uses no file.  With a GPU, the GPU sums the columns, since it has the
 * rows. */
#include "encode/background.h"

#include "base/fingerprint.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "encode/encode_impl.h"

enum { MAX_PARTS = 16 }; /* parts of a block's rows, for the spare threads */

static gidx parts_of(gidx rows)
{
  return imax(1, imin(rows, imin(team_spare(), MAX_PARTS)));
}

/* The lists of a block, to be merged in parts. */
struct merging {
  const struct encode *e;
  const struct block_in_flight *b;
  gidx parts;
};

static void part_merge(void *self, gidx part)
{
  const struct merging *m = self;
  const struct encode *e = m->e;
  const struct block_in_flight *b = m->b;
  int size = e->group.size;
  idx top_k = b->entries_end - b->entries_begin;
  const struct entry *lists = size > 1 ? b->received.host : b->lists.host;
  const idx *power = e->d > 1 ? (const idx *)b->power.host + b->mine_first : NULL;
  struct entry merged[MAX_TOP_S];
  gidx end = b->mine * (part + 1) / m->parts;
  for (gidx i = b->mine * part / m->parts; i < end; i++) {
    gidx at = i * e->s + b->entries_begin;
    lists_merge(lists + i * top_k, size, (gidx)b->mine * top_k, top_k, merged);
    for (idx j = 0; j < top_k; j++) {
      b->atoms[at + j] = merged[j].atom;
      b->score[at + j] = entry_score(merged[j], e->d, power ? power[i] : 0);
    }
  }
}

/* Merge the lists of this rank's rows that all ranks of the group made, and append them to the
 * supports. */
static void lists_append(const struct encode *e, struct block_in_flight *b)
{
  struct merging m = {e, b, parts_of(b->mine)};
  spare_run(m.parts, part_merge, &m);
  b->routed = 0;
}

/* The results of a block, to be counted. */
struct counting {
  struct encode *e;
  const struct support_block *b;
  idx qualities;
  gidx parts;
  struct counted {
    uint64_t fingerprint;
    struct code_counts codes;
    gidx tiny;
  } of[MAX_PARTS];
};

static void density_count(const struct counting *c)
{
  gidx *density = c->e->result->density, entries = (gidx)c->b->n * c->b->s;
  for (gidx i = 0; i < entries; i++) density[c->b->atoms[i]]++;
}

/* Is this a row with codes whose gates are all 0, so that rounding decides the order of its
 * frames? */
static int row_is_tiny(const struct support_block *b, gidx row)
{
  const float *score = b->score + row * b->s, *codes = b->codes + row * b->s * b->d;
  int any = 0;
  for (idx j = 0; j < b->s; j++)
    if (score[j] != 0) return 0;
  for (idx v = 0; v < b->s * b->d; v++) any |= codes[v] != 0;
  return any;
}

static void part_count(struct counting *c, gidx part)
{
  const struct support_block *b = c->b;
  struct counted *of = &c->of[part];
  gidx row = b->n * part / c->parts, begin = row * b->s;
  gidx count = (b->n * (part + 1) / c->parts - row) * b->s, at = b->first * b->s + begin;
  of->fingerprint =
      fingerprint(b->atoms + begin, count, 4, at) + 3 * fingerprint(b->score + begin, count, 4, at);
  if (!c->e->task->codes) return;
  const float *codes = b->codes + begin * b->d;
  of->fingerprint += 5 * fingerprint(codes, count * b->d, 4, at * b->d);
  codes_count(&of->codes, codes, count * b->d);
  gidx end = b->n * (part + 1) / c->parts;
  for (; b->d > 1 && row < end; row++) of->tiny += row_is_tiny(b, row);
}

/* Sums whose order matters are made by one thread. */
static void count_run(void *self, gidx i)
{
  struct counting *c = self;
  struct encode *e = c->e;
  const struct chains chains = {e->out_ended, e->groups, e->group.size, e->ended_blocks};
  if (i == 0)
    density_count(c);
  else if (i == 1)
    statistics_join(&e->statistics, e->qualities, c->qualities, &chains);
  else
    part_count(c, i - 2);
}

void results_count(struct encode *e, const struct support_block *b, idx qualities)
{
  struct counting c = {.e = e, .b = b, .qualities = qualities, .parts = parts_of(b->n)};
  spare_run(2 + c.parts, count_run, &c);
  for (gidx i = 0; i < c.parts; i++) {
    const struct code_counts *codes = &c.of[i].codes;
    e->result->fingerprint += c.of[i].fingerprint;
    e->result->tiny += c.of[i].tiny;
    e->statistics.codes.all += codes->all;
    e->statistics.codes.negative += codes->negative;
    e->statistics.codes.zero += codes->zero;
  }
}

static int background_run(void *argument)
{
  struct background_job *job = argument;
  struct phase *phases = job->e->result->phases;
  if (job->merge) {
    gidx lists = (gidx)job->merge->mine * (job->merge->entries_end - job->merge->entries_begin) *
                 job->e->group.size;
    phase_begin(&phases[PHASE_MERGE]);
    lists_append(job->e, job->merge);
    phase_end(&phases[PHASE_MERGE], (double)lists * (double)sizeof(struct entry));
  }
  if (job->counted.n > 0 || job->qualities > 0) {
    phase_begin(&phases[PHASE_METRICS]);
    results_count(job->e, &job->counted, job->qualities);
    phase_end(&phases[PHASE_METRICS], 0);
    job->counted.n = job->qualities = 0;
  }
  if (job->summed) {
    const struct block_in_flight *b = job->summed;
    struct preprocess *preprocess = &job->e->preprocess;
    phase_begin(&phases[PHASE_SUMS]);
    if (preprocess->device)
      TRY(preprocess_sums(preprocess, b->rows, b->first, b->n, b->ended));
    else
      statistics_rows(&job->e->statistics, b->rows->host, b->first, b->n, b->ended);
    phase_end(&phases[PHASE_SUMS], (double)b->n * job->e->p * (double)sizeof(float));
    job->summed = NULL;
  }
  return OK;
}

int background_start(struct encode *e, struct block_in_flight *other)
{
  e->background_job.e = e;
  e->background_job.merge = other->routed ? other : NULL;
  return worker_start(&e->background, background_run, &e->background_job);
}

int background_wait(struct encode *e)
{
  struct phase *phase = &e->result->phases[PHASE_WAIT_BACKGROUND];
  phase_begin(phase);
  TRY(worker_wait(&e->background));
  phase_end(phase, 0);
  return OK;
}
