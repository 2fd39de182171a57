/* SPDX-License-Identifier: BSD-3-Clause
 * In which form the kernels solve an arrow system, and what it takes of a lot of them.
 *
 * Floor: device; included by arrow*.c only. */
#ifndef DEVICE_CUDA_ARROW_SIZE_H
#define DEVICE_CUDA_ARROW_SIZE_H

#include "device/cuda/cuda.h"

/* How a system is solved. */
struct lot_form {
  idx d, k;
  int team;   /* threads of a system; LOT_LONG: by three kernels; LOT_DECLINED: not here */
  int blocks; /* of arrow.cu: of a cluster */
  int held;   /* of arrow.cu: rows of a thread whose factors are in registers; 0: in the rows */
  int rounds; /* of arrow_lanes.cu; 0: that is not the one */
  int mma;    /* as in struct kernel_shape */
};
enum { LOT_LONG = 0, LOT_DECLINED = -1 };
enum { LOT_KERNELS = 3 }; /* of a form, at most */

/* A system of a job: its form, and what it takes of a lot. */
struct lot_need {
  struct lot_form form;
  gidx in, out, units; /* numbers read and written; units of a long one */
};

/* Numbers, systems and units of a lot. */
struct lot_size {
  gidx in, out, systems, units;
  int is_fetched, is_returned; /* struct lot_mapping: the host's side has no numbers, no steps */
};

/* Bytes of a lot, on the device and of its page-locked side. */
struct lot_room {
  gidx device, host;
};

/* Numbers that are read, in whole lines of the cache of LOT_LINE each, and written, an even number,
 * so that kernels can copy 16 bytes at a time; segments and pieces of a long system, its units. */
enum { LOT_LINE = 16 };
gidx lot_reals_in(const struct arrow_system *a);
gidx lot_reals_out(const struct arrow_system *a);
gidx lot_segments(const struct arrow_system *a);
gidx lot_pieces(const struct arrow_system *a);

struct lot_need lot_need_of(const struct cuda_state *s, const struct arrow_system *a);
struct kernel_shape lot_shape_of(const struct lot_form *form);
/* The kernels of a form: recipes[LOT_KERNELS]; returns how many. */
int lot_recipes(const struct lot_form *form, struct kernel_recipe *recipes);

/* What a lot is with one system more. */
struct lot_size lot_with(struct lot_size size, const struct lot_need *need);

/* Where the parts of a lot begin, in bytes; `out` at a multiple of 16; what the host's side has of
 * them: tables, what became of systems, and what is not copied past it. */
struct lot_places {
  gidx atoms, places, units, found, out, end;
  gidx host_begin, host_end;
};
struct lot_places lot_places_of(const struct lot_size *size);

struct lot_room lot_room_of(const struct lot_size *size);
static inline int lot_fits(const struct lot_size *size, const struct lot_room *room)
{
  struct lot_room r = lot_room_of(size);
  return r.device <= room->device && r.host <= room->host;
}

#endif
