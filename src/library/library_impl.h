/* SPDX-License-Identifier: BSD-3-Clause
 * A handle from inside: its device, and the memory of the rows at hand.
 *
 * Floor: library; included by src/library only.  Not collective. */
#ifndef LIBRARY_LIBRARY_IMPL_H
#define LIBRARY_LIBRARY_IMPL_H

#include <fenv.h>

#include "base/memory.h"
#include "device/device.h"
#include "device/preprocess.h"
#include "encode/active.h"
#include "encode/ragged.h"
#include "library/library.h"
#include "model/encoder.h"

enum { LIBRARY_ROWS = 4096 }; /* described at a time */

struct sagitta {
  struct sagitta_options options; /* borrowed arrays */
  int has_encoder;
  struct encoder encoder;
  float *silent; /* [k] 0: the bias of active atoms */
  struct device device;
  struct buffer table;          /* [k][p] the atoms, on the device */
  struct preprocess preprocess; /* of a GPU */
  struct arena arena;           /* of what stays */
  fenv_t *callers;              /* [threads] how each rounds outside of calls */

  /* Room for so many rows; 0: there is none yet. */
  idx rows;
  struct buffer x;                            /* [rows][p] less the mean */
  struct buffer raw;                          /* the same as they came; of an encoder */
  struct buffer lists, slot, residual, state; /* of rounds; a slot is an atom */
  struct buffer codes, score;                 /* [rows][s] */
  float *row;                                 /* [p] one that is to be named, of a GPU */
  idx *lengths;                               /* [rows] of each row, of an encoder */
  gidx *start;                                /* [rows + 1] where its entries begin in `piece` */
  struct ragged ragged;
  struct active active;
  struct arena room;

  struct entry_list piece, found; /* of rows at hand, and of a call; owned, as is the next */
  int64_t *all_start;             /* [start_capacity] */
  gidx start_capacity;
};

#endif
