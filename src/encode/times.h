/* SPDX-License-Identifier: BSD-3-Clause
 * How long an encode job takes, by the rates of a machine.
 *
 * Floor: encode.  Not collective. */
#ifndef ENCODE_TIMES_H
#define ENCODE_TIMES_H

#include "encode/encode.h"
#include "model/rates.h"

/* Routing and codes of n rows, and the exchanges among the ranks of a group.  columns: of a row;
 * atoms: of the dictionary, each of d vectors. */
struct encode_shape_of_rows {
  double n, columns, atoms;
  idx d, top_s, rounds, group_ranks;
  int codes, nonnegative;
};
void encode_rows_times(const struct encode_shape_of_rows *s, const struct rates *r,
                       struct times *t);

/* The whole job of a task without an encoder, whose grid is chosen. */
void encode_times(const struct encode_task *task, int ranks, const struct rates *r,
                  struct times *t);

#endif
