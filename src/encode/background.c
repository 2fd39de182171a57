/* SPDX-License-Identifier: BSD-3-Clause
 * The background worker: while a block is routed it merges the lists of the other block in flight,
 * counts the results of the block that was finished, and sums the columns of the rows being routed.
 * It uses no other rank and no file; a GPU has the rows, so that it sums there. */
#include "encode/background.h"

#include "base/fingerprint.h"
#include "base/status.h"
#include "encode/encode_impl.h"

/* Merge the lists that the ranks made of this rank's rows, and append them to the supports. */
static void lists_append(const struct encode *e, struct block_in_flight *b)
{
  int size = e->group.size;
  idx top_k = b->entries_end - b->entries_begin;
  const struct entry *lists = size > 1 ? b->received.host : b->lists.host;
  struct entry merged[MAX_TOP_S];
  for (gidx i = 0; i < b->mine; i++) {
    gidx at = i * e->s + b->entries_begin;
    lists_merge(lists + i * top_k, size, (gidx)b->mine * top_k, top_k, merged);
    for (idx j = 0; j < top_k; j++) {
      b->atoms[at + j] = merged[j].atom;
      b->score[at + j] = entry_score(merged[j], e->d);
    }
  }
  b->routed = 0;
}

/* Add a block to density, fingerprint and quality. */
static void results_count(struct encode *e, const struct support_block *b, idx qualities)
{
  gidx entries = (gidx)b->n * b->s, at = b->first * b->s;
  uint64_t *sum = &e->result->fingerprint;
  for (gidx i = 0; i < entries; i++) e->result->density[b->atoms[i]]++;
  *sum += fingerprint(b->atoms, entries, 4, at) + 3 * fingerprint(b->score, entries, 4, at);
  if (e->task->codes) {
    *sum += 5 * fingerprint(b->codes, entries * b->d, 4, at * b->d);
    codes_count(&e->statistics.codes, b->codes, entries * b->d);
  }
  struct chains chains = {e->out_ended, e->groups, e->group.size, e->ended_blocks};
  statistics_join(&e->statistics, e->qualities, qualities, &chains);
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
    struct intake *intake = &job->e->intake;
    phase_begin(&phases[PHASE_SUMS]);
    if (intake->device)
      TRY(intake_sums(intake, b->rows, b->first, b->n, b->ended));
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
