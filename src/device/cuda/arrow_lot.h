/* SPDX-License-Identifier: BSD-3-Clause
 * A lot of arrow systems: brought to the device, solved there, and their steps copied back, all on
 * a stream of its own, so that one lot is copied while another is solved.  The device fetches
 * systems from page-locked memory of the caller, and returns steps to such; other systems are
 * packed into memory of the lot, and other steps unpacked.
 *
 * Floor: device; included by arrow*.c only. */
#ifndef DEVICE_CUDA_ARROW_LOT_H
#define DEVICE_CUDA_ARROW_LOT_H

#include "device/cuda/arrow_size.h"

struct lot_entry {
  struct lot_form form;
  int octave; /* of its rows, so that the systems of a launch are of similar size */
  gidx item;
};

/* Entries that are solved by one launch, or one after another of the three kernels of long ones. */
struct lot_group {
  struct lot_form form;
  gidx first, count;           /* entries */
  gidx unit, segments, pieces; /* in the table of units: segments, then rows for arrow_step.cu */
  idx rows;                    /* of the longest */
};

/* Does the device fetch all systems of a job from the caller's memory, and return all steps to it?
 * It sees them so many bytes from where the host does. */
struct lot_mapping {
  int is_fetched, is_returned;
  ptrdiff_t numbers, step_t, step_b;
};

enum { LOT_SIDES = 3 };

struct cuda_lot {
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
  struct lot_mapping mapping;
  struct lot_entry *entries;
  struct lot_group *groups;
  gidx entries_capacity, groups_capacity, n_groups;
  struct lot_size size;
};

int lot_open(struct cuda_lot *lot);
void lot_close(struct cuda_lot *lot);

/* Let a lot have so many bytes; ERR_MEMORY.  Let one that is not under way have none. */
int lot_reserve(struct cuda_state *s, struct cuda_lot *lot, const struct lot_room *room);
void lot_release(struct cuda_lot *lot);

/* Begin an empty lot for at most `systems` of a job; add one, so that the lot's size is `with` it;
 * send all to the device and back, the systems behind those of the last lot that was started, or
 * NULL: one that is fetched alone is there sooner than two that share the bus. */
int lot_begin(struct cuda_lot *lot, struct arrow_job *job, gidx systems,
              const struct lot_mapping *mapping);
void lot_add(struct cuda_lot *lot, const struct lot_need *need, gidx item,
             const struct lot_size *with);
int lot_start(struct device *dev, struct cuda_lot *lot, const struct cuda_lot *last);

/* Wait for it; steps and outcomes of its systems are written, but for those that failed: failed[..]
 * <- their items, *count is how many were there before and are now. */
int lot_finish(struct cuda_lot *lot, gidx *failed, gidx *count);

/* Wait until nothing of it is under way, after a failure. */
void lot_wait(struct cuda_lot *lot);

/* Run the kernels again on what is there, twice, and measure the second time: they are queued while
 * the first ones run, as in a job, so that their way from the host is not in it, unless these are
 * over sooner. */
int lot_measure(struct device *dev, struct cuda_lot *lot, double *seconds);

#endif
