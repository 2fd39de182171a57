/* SPDX-License-Identifier: BSD-3-Clause
 * The rows in which each atom of supports is strongest (N.23).
 *
 * Floor: look.  Knows no files.
 *
 * Every rank reads its share of the rows, some thousand at a time, and keeps lists for all atoms.
 * Rank 0 merges the lists of all ranks.  So memory grows with the atoms, not with the rows. */
#ifndef LOOK_TOP_H
#define LOOK_TOP_H

#include "comm/comm.h"
#include "model/identity.h"
#include "model/supports.h"
#include "model/top.h"

struct top_result {
  struct top_rows top;    /* of all rows; on rank 0 */
  gidx dead, entries;     /* atoms without a row; codes that are not 0; the same on every rank */
  struct identity inputs; /* supports and codes, as read; the same on every rank */
  uint64_t fingerprint;   /* of the lists; on rank 0 */
  struct arena arena;
};

/* Find the `rows` strongest rows of every atom.  ERR_INPUT: the supports have no codes, or are
 * invalid; ERR_MEMORY with the numbers, before anything is read.  Collective; the same status on
 * every rank. */
int top_find(struct comm *c, const struct support_source *source, idx rows, struct top_result *r);
void top_free(struct top_result *r);

#endif
