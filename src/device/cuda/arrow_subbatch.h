/* SPDX-License-Identifier: BSD-3-Clause
 * A sub-batch of arrow systems: brought to the device, solved there, and their steps copied back,
 * all on a stream of its own, so that one sub-batch is copied while another is solved.  The device
 * fetches systems from page-locked memory of the caller, and returns steps to such; other systems
 * are packed into memory of the sub-batch, and other steps unpacked.
 *
 * Floor: device; included by arrow*.c only. */
#ifndef DEVICE_CUDA_ARROW_SUBBATCH_H
#define DEVICE_CUDA_ARROW_SUBBATCH_H

#include "device/cuda/arrow_size.h"

struct subbatch_entry {
  struct subbatch_form form;
  int octave; /* of its rows, so that the systems of a launch are of similar size */
  gidx item;
};

/* Entries that are solved by one launch, or one after another of the three kernels of long ones. */
struct subbatch_group {
  struct subbatch_form form;
  gidx first, count;           /* entries */
  gidx unit, segments, pieces; /* in the table of units: segments, then rows for arrow_step.cu */
  idx rows;                    /* of the longest */
};

/* Does the device fetch all systems of a job from the caller's memory, and return all steps to it?
 * It sees them so many bytes from where the host does. */
struct subbatch_mapping {
  int is_fetched, is_returned;
  ptrdiff_t numbers, step_t, step_b;
};

enum { LOT_SIDES = 3 };

struct arrow_subbatch {
  cudaStream_t stream;
  /* Launches that follow each other there are side by side, so that one fills what the end of
   * another leaves; the last event is that from which they begin. */
  cudaStream_t sides[LOT_SIDES];
  cudaEvent_t events[LOT_SIDES + 1];
  cudaEvent_t fetched; /* systems have come over the bus */
  /* Page-locked, as the device's side: systems unless they are fetched, tables, what became of
   * them, steps unless they are returned. */
  char *host;
  gidx host_bytes;
  struct cuda_work device, parts;
  struct arrow_job *job; /* borrowed; NULL: nothing is under way */
  struct subbatch_mapping mapping;
  struct subbatch_entry *entries;
  struct subbatch_group *groups;
  gidx entries_capacity, groups_capacity, n_groups;
  struct subbatch_size size;
};

int subbatch_open(struct arrow_subbatch *subbatch);
void subbatch_close(struct arrow_subbatch *subbatch);

/* Let a sub-batch have so many bytes; ERR_MEMORY.  Let one that is not under way have none. */
int subbatch_reserve(struct cuda_state *s, struct arrow_subbatch *subbatch,
                     const struct subbatch_room *room);
void subbatch_release(struct arrow_subbatch *subbatch);

/* Begin an empty sub-batch for at most `systems` of a job; add one, so that the sub-batch's size is
 * `with` it; send all to the device and back, the systems behind those of the last sub-batch that
 * was started, or NULL: one that is fetched alone is there sooner than two that share the bus. */
int subbatch_begin(struct arrow_subbatch *subbatch, struct arrow_job *job, gidx systems,
                   const struct subbatch_mapping *mapping);
void subbatch_add(struct arrow_subbatch *subbatch, const struct subbatch_need *need, gidx item,
                  const struct subbatch_size *with);
int subbatch_start(struct device *dev, struct arrow_subbatch *subbatch,
                   const struct arrow_subbatch *last);

/* Wait for it; steps and outcomes of its systems are written, but for those that failed: failed[..]
 * <- their items, *count is how many were there before and are now. */
int subbatch_finish(struct arrow_subbatch *subbatch, gidx *failed, gidx *count);

/* Wait until nothing of it is under way, after a failure. */
void subbatch_wait(struct arrow_subbatch *subbatch);

/* Run the kernels again on what is there, twice, and measure the second time: they are queued while
 * the first ones run, as in a job, so that their way from the host is not in it, unless these are
 * over sooner. */
int subbatch_measure(struct device *dev, struct arrow_subbatch *subbatch, double *seconds);

#endif
