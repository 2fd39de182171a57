/* SPDX-License-Identifier: BSD-3-Clause
 * The inside of a handle: its device, and memory for the current rows.
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

enum { LIBRARY_ROWS = 4096 }; /* rows described at a time */

struct sagitta {
  struct sagitta_options options; /* borrowed arrays */
  int has_encoder;
  struct encoder encoder;
  float *silent; /* [k] zeros: the bias of active atoms */
  struct device device;
  struct buffer table;          /* [k][p] the atoms, on the device */
  struct preprocess preprocess; /* on a GPU */
  struct arena arena;           /* of arrays that stay */
  fenv_t *callers;              /* [threads] rounding mode of each outside of calls */

  /* Memory for so many rows; 0: there is none yet. */
  idx rows;
  struct buffer x;                            /* [rows][p] rows less the mean */
  struct buffer raw;                          /* [rows][p] rows as they came; with an encoder */
  struct buffer lists, slot, residual, state; /* of routing rounds; a slot is an atom */
  struct buffer codes, score;                 /* [rows][s] */
  float *row;                                 /* [p] on a GPU: a row to be named in a message */
  idx *lengths;                               /* [rows] entries of each row, with an encoder */
  gidx *start;                                /* [rows + 1] where each row's entries begin in
                                               * `piece` */
  struct ragged ragged;
  struct active active;
  struct arena room;

  struct entry_list piece, found; /* of the current rows; of a call; owned */
  int64_t *all_start;             /* [start_capacity] owned */
  gidx start_capacity;
};

#endif
