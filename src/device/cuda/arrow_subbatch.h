/* SPDX-License-Identifier: BSD-3-Clause
 * A sub-batch: some of the arrow systems of a job.  They are copied to the device and solved there;
 * their steps are copied back.  Each sub-batch has a stream of its own, so that one is copied while
 * another is solved.  If the caller's memory is page-locked, the device reads systems from it and
 * writes steps to it.  Otherwise systems and steps are copied through memory of the sub-batch.
 *
 * Floor: device; included by arrow*.c only. */
#ifndef DEVICE_CUDA_ARROW_SUBBATCH_H
#define DEVICE_CUDA_ARROW_SUBBATCH_H

#include "device/cuda/arrow_size.h"

struct subbatch_entry {
  struct subbatch_form form;
  int octave; /* log2 of its rows, rounded up, for launches of similar systems; otherwise 0 */
  gidx item;
};

/* The entries of one launch; for long systems, of one launch of each of the three kernels. */
struct subbatch_group {
  struct subbatch_form form;
  gidx first, count;           /* entries */
  gidx unit, segments, pieces; /* its units in the table: segments, then pieces for arrow_step.cu */
  idx rows;                    /* of its longest system */
};

/* is_fetched: the device reads all systems of a job from the caller's memory.  is_returned: it
 * writes all steps to the caller's memory.  numbers, step_t, step_b: device address minus host
 * address of the arrays of systems, of the steps of rows and of the steps of borders. */
struct subbatch_mapping {
  int is_fetched, is_returned;
  ptrdiff_t numbers, step_t, step_b;
};

enum { LOT_SIDES = 3 };

struct arrow_subbatch {
  cudaStream_t stream;
  /* Launches on different sides run at the same time, so that one uses the multiprocessors that the
   * end of another leaves idle.  events[i] marks the end of side i; the last event marks where the
   * sides begin. */
  cudaStream_t sides[LOT_SIDES];
  cudaEvent_t events[LOT_SIDES + 1];
  cudaEvent_t fetched; /* all systems are on the device */
  /* Page-locked host side: systems unless they are fetched, tables, outcomes, and steps unless they
   * are returned. */
  char *host;
  gidx host_bytes;
  struct cuda_work device, parts;
  struct arrow_job *job; /* borrowed; NULL: the sub-batch is not in use */
  struct subbatch_mapping mapping;
  struct subbatch_entry *entries;
  struct subbatch_group *groups;
  gidx entries_capacity, groups_capacity, n_groups;
  struct subbatch_size size;
};

int subbatch_open(struct arrow_subbatch *subbatch);
void subbatch_close(struct arrow_subbatch *subbatch);

/* subbatch_reserve(): reserve memory for a sub-batch; ERR_MEMORY.  subbatch_release(): release the
 * memory of a sub-batch that is not in use. */
int subbatch_reserve(struct cuda_state *s, struct arrow_subbatch *subbatch,
                     const struct subbatch_room *room);
void subbatch_release(struct arrow_subbatch *subbatch);

/* begin: make it an empty sub-batch for at most `systems` systems of a job.  add: add one system;
 * `with` is the size after that.  start: copy all to the device, solve, and copy back.  `last` is
 * the sub-batch that was started before; NULL: none.  Systems are fetched after those of `last`,
 * because two fetches that share the bus would both end later. */
int subbatch_begin(struct arrow_subbatch *subbatch, struct arrow_job *job, gidx systems,
                   const struct subbatch_mapping *mapping);
void subbatch_add(struct arrow_subbatch *subbatch, const struct subbatch_need *need, gidx item,
                  const struct subbatch_size *with);
int subbatch_start(struct device *dev, struct arrow_subbatch *subbatch,
                   const struct arrow_subbatch *last);

/* Wait for a sub-batch, and write the steps and outcomes of its systems.  For systems that failed,
 * it writes nothing and appends their items to failed[*count ..]; *count grows. */
int subbatch_finish(struct arrow_subbatch *subbatch, gidx *failed, gidx *count);

/* After a failure: wait until all work of the sub-batch has ended. */
void subbatch_wait(struct arrow_subbatch *subbatch);

/* Run the kernels twice more on the systems that are on the device, and measure the second run.
 * Its launches are queued while the first run works, as in a job.  So launch latency is not
 * measured, unless the first run ends before that. */
int subbatch_measure(struct device *dev, struct arrow_subbatch *subbatch, double *seconds);

#endif
