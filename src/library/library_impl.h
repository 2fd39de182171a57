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

enum { LIBRARY_ROWS = 4096 }; /* largest number of rows that are encoded at a time */

struct sagitta {
  struct sagitta_options options; /* its arrays are borrowed */
  int has_encoder;
  struct encoder encoder;
  float *silent; /* [k] zeros: the bias of active atoms */
  struct device device;
  struct buffer table;          /* [k][p] the atoms, on the device */
  struct preprocess preprocess; /* on a GPU */
  struct arena arena;           /* of arrays that live as long as the handle */
  fenv_t *callers; /* [threads] each thread's floating-point environment outside of calls */

  /* The members below are for `rows` rows; 0: they are not allocated yet. */
  idx rows;
  struct buffer x;                            /* [rows][p] rows less the mean */
  struct buffer raw;                          /* [rows][p] rows as they came; with an encoder */
  struct buffer lists, slot, residual, state; /* of routing rounds; slot: [rows][s] atoms */
  struct buffer codes, score;                 /* [rows][s] of routing rounds */
  float *row;                                 /* [p] with a GPU: a row that a message is about */
  idx *lengths;                               /* [rows] entries of each row, with an encoder */
  gidx *start;                                /* [rows + 1] where each row's entries begin in
                                               * `piece` */
  struct ragged ragged; /* with an encoder on whose supports codes are solved */
  struct active active; /* with the encoder active */
  struct arena room;    /* owns row, lengths and start */

  struct entry_list piece, found; /* entries of the current rows; of all rows of a call; owned */
  int64_t *all_start;             /* [start_capacity] where each row's entries begin in `found`;
                                   * owned */
  gidx start_capacity;
};

#endif
