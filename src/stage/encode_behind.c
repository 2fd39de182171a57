/* SPDX-License-Identifier: BSD-3-Clause
 * Behind the routing of a block, in one thread: the lists of the other block in flight are merged,
 * the results of the block that ended are counted, the columns of the rows that are being routed
 * are summed.  No device, no other rank, no file. */
#include "base/fingerprint.h"
#include "base/status.h"
#include "stage/encode_inside.h"

/* Merge the lists of own rows and append them to the supports. */
static void lists_take(const struct encode *e, struct flight *f)
{
  int size = e->c->size;
  idx take = f->now - f->have;
  const struct entry *lists = size > 1 ? f->received.host : f->lists.host;
  struct entry merged[TOP_S_MOST];
  for (gidx i = 0; i < f->mine; i++) {
    gidx at = i * e->s + f->have;
    lists_merge(lists + i * take, size, (gidx)f->mine * take, take, merged);
    for (idx j = 0; j < take; j++) {
      f->atoms[at + j] = merged[j].atom;
      f->score[at + j] = entry_score(merged[j], e->d);
    }
  }
  f->routed = 0;
}

/* Counts, fingerprint and quality. */
static void block_count(struct encode *e, const struct support_block *b, idx qualities)
{
  gidx entries = (gidx)b->n * b->s, at = b->first * b->s;
  uint64_t *sum = &e->result->fingerprint;
  for (gidx i = 0; i < entries; i++) e->result->density[b->atoms[i]]++;
  *sum += fingerprint(b->atoms, entries, 4, at) + 3 * fingerprint(b->score, entries, 4, at);
  if (e->task->codes) *sum += 5 * fingerprint(b->codes, entries * b->d, 4, at * b->d);
  statistics_quality(&e->statistics, e->qualities, qualities);
}

static int behind_run(void *argument)
{
  struct behind_job *job = argument;
  struct phase *phases = job->e->result->phases;
  if (job->merge) {
    gidx lists = (gidx)job->merge->mine * (job->merge->now - job->merge->have) * job->e->c->size;
    phase_begin(&phases[PHASE_MERGE]);
    lists_take(job->e, job->merge);
    phase_end(&phases[PHASE_MERGE], (double)lists * (double)sizeof(struct entry));
  }
  if (job->collect.n > 0 || job->qualities > 0) {
    phase_begin(&phases[PHASE_METRICS]);
    block_count(job->e, &job->collect, job->qualities);
    phase_end(&phases[PHASE_METRICS], 0);
    job->collect.n = job->qualities = 0;
  }
  if (job->summed_count > 0) {
    phase_begin(&phases[PHASE_SUMS]);
    statistics_rows(&job->e->statistics, job->summed, job->summed_count, job->e->p);
    phase_end(&phases[PHASE_SUMS],
              (double)job->summed_count * job->e->p * (double)sizeof *job->summed);
    job->summed_count = 0;
  }
  return OK;
}

int behind_start(struct encode *e, struct flight *other)
{
  e->behind_job.e = e;
  e->behind_job.merge = other->routed ? other : NULL;
  return worker_start(&e->behind, behind_run, &e->behind_job);
}

int behind_wait(struct encode *e)
{
  struct phase *phase = &e->result->phases[PHASE_LATE];
  phase_begin(phase);
  TRY(worker_wait(&e->behind, 0)); /* it computes only: no deadline */
  phase_end(phase, 0);
  return OK;
}
