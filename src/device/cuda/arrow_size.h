/* SPDX-License-Identifier: BSD-3-Clause
 * The form in which the kernels solve an arrow system, and the memory that it takes in a sub-batch
 * (arrow_subbatch.h).
 *
 * Floor: device; included by arrow*.c only. */
#ifndef DEVICE_CUDA_ARROW_SIZE_H
#define DEVICE_CUDA_ARROW_SIZE_H

#include "device/cuda/cuda.h"

/* A form: which kernels solve a system, and how. */
struct subbatch_form {
  idx d, k;
  int team;   /* threads of a system; LOT_LONG: three kernels; LOT_DECLINED: left to the CPU */
  int blocks; /* arrow.cu: blocks of a cluster */
  int held;   /* arrow.cu: rows per thread whose factors are in registers; 0: none are */
  int rounds; /* arrow_lanes.cu: its rounds; 0: another kernel */
  int mma;    /* as in struct kernel_shape */
};
enum { LOT_LONG = 0, LOT_DECLINED = -1 };
enum { LOT_KERNELS = 3 }; /* the most kernels of a form */

/* A system of a job: its form, and its space in a sub-batch. */
struct subbatch_need {
  struct subbatch_form form;
  gidx in, out, units; /* numbers read; numbers written; units of a long system (see below) */
};

/* The numbers, systems and units of a sub-batch. */
struct subbatch_size {
  gidx in, out, systems, units;
  int is_fetched,
      is_returned; /* as in struct subbatch_mapping; 1: no systems, or no steps, on the host side */
};

/* Bytes of a sub-batch, on the device and on its page-locked host side. */
struct subbatch_room {
  gidx device, host;
};

/* in: numbers that are read, rounded up to cache lines of LOT_LINE numbers.  out: numbers that are
 * written, rounded up to an even number, so that kernels can copy 16 bytes at a time.  The units of
 * a long system are its segments (arrow_sum.cu), then pieces of its rows (arrow_step.cu). */
enum { LOT_LINE = 16 };
gidx subbatch_reals_in(const struct arrow_system *a);
gidx subbatch_reals_out(const struct arrow_system *a);
gidx subbatch_segments(const struct arrow_system *a);
gidx subbatch_pieces(const struct arrow_system *a);

struct subbatch_need subbatch_need_of(const struct cuda_state *s, const struct arrow_system *a);
struct kernel_shape subbatch_shape_of(const struct subbatch_form *form);
/* recipes[LOT_KERNELS] <- the kernels of a form; returns their number. */
int subbatch_recipes(const struct subbatch_form *form, struct kernel_recipe *recipes);

/* The size of a sub-batch after one more system is added. */
struct subbatch_size subbatch_with(struct subbatch_size size, const struct subbatch_need *need);

/* Offsets of the arrays of a sub-batch, in bytes; `out` is a multiple of 16.  The host side has
 * host_begin .. host_end: the tables and the outcomes.  It also has systems and steps, unless the
 * device copies these itself. */
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
