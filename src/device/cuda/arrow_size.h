/* SPDX-License-Identifier: BSD-3-Clause
 * In which form the kernels solve an arrow system, and what it takes of a sub-batch of them.
 *
 * Floor: device; included by arrow*.c only. */
#ifndef DEVICE_CUDA_ARROW_SIZE_H
#define DEVICE_CUDA_ARROW_SIZE_H

#include "device/cuda/cuda.h"

/* How a system is solved. */
struct subbatch_form {
  idx d, k;
  int team;   /* threads of a system; LOT_LONG: by three kernels; LOT_DECLINED: not here */
  int blocks; /* of arrow.cu: of a cluster */
  int held;   /* of arrow.cu: rows of a thread whose factors are in registers; 0: in the rows */
  int rounds; /* of arrow_lanes.cu; 0: that is not the one */
  int mma;    /* as in struct kernel_shape */
};
enum { LOT_LONG = 0, LOT_DECLINED = -1 };
enum { LOT_KERNELS = 3 }; /* of a form, at most */

/* A system of a job: its form, and what it takes of a sub-batch. */
struct subbatch_need {
  struct subbatch_form form;
  gidx in, out, units; /* numbers read and written; units of a long one */
};

/* Numbers, systems and units of a sub-batch. */
struct subbatch_size {
  gidx in, out, systems, units;
  int is_fetched,
      is_returned; /* struct subbatch_mapping: the host's side has no numbers, no steps */
};

/* Bytes of a sub-batch, on the device and of its page-locked side. */
struct subbatch_room {
  gidx device, host;
};

/* Numbers that are read, in whole lines of the cache of LOT_LINE each, and written, an even number,
 * so that kernels can copy 16 bytes at a time; segments and pieces of a long system, its units. */
enum { LOT_LINE = 16 };
gidx subbatch_reals_in(const struct arrow_system *a);
gidx subbatch_reals_out(const struct arrow_system *a);
gidx subbatch_segments(const struct arrow_system *a);
gidx subbatch_pieces(const struct arrow_system *a);

struct subbatch_need subbatch_need_of(const struct cuda_state *s, const struct arrow_system *a);
struct kernel_shape subbatch_shape_of(const struct subbatch_form *form);
/* The kernels of a form: recipes[LOT_KERNELS]; returns how many. */
int subbatch_recipes(const struct subbatch_form *form, struct kernel_recipe *recipes);

/* What a sub-batch is with one system more. */
struct subbatch_size subbatch_with(struct subbatch_size size, const struct subbatch_need *need);

/* Where the parts of a sub-batch begin, in bytes; `out` at a multiple of 16; what the host's side
 * has of them: tables, what became of systems, and what is not copied past it. */
struct subbatch_offsets {
  gidx atoms, places, units, found, out, end;
  gidx host_begin, host_end;
};
struct subbatch_offsets subbatch_offsets_of(const struct subbatch_size *size);

struct subbatch_room subbatch_room_of(const struct subbatch_size *size);
static inline int subbatch_fits(const struct subbatch_size *size, const struct subbatch_room *room)
{
  struct subbatch_room r = subbatch_room_of(size);
  return r.device <= room->device && r.host <= room->host;
}

#endif
