/* SPDX-License-Identifier: BSD-3-Clause
 * For each atom, find the rows in which its codes are largest by magnitude (N.23).
 *
 * Floor: look.  Knows no files.
 *
 * Every rank reads its share of the rows in blocks, and keeps a list for each atom.  Rank 0 merges
 * the lists of all ranks.  So memory grows with the number of atoms, not with the number of
 * rows. */
#ifndef LOOK_TOP_H
#define LOOK_TOP_H

#include "comm/comm.h"
#include "model/identity.h"
#include "model/supports.h"
#include "model/top.h"

struct top_result {
  struct top_rows top;    /* lists over all rows; on rank 0 */
  gidx dead, entries;     /* atoms with an empty list; codes that are not 0; on every rank */
  struct identity inputs; /* hashes of supports and codes as read; on every rank */
  uint64_t fingerprint;   /* of the lists; on rank 0 */
  struct arena arena;
};

/* Find up to `rows` rows for every atom.  ERR_INPUT: the supports have no codes, or are invalid.
 * ERR_MEMORY, with the numbers, before anything is read.  Collective; the same status on every
 * rank. */
int top_find(struct comm *c, const struct support_source *source, idx rows, struct top_result *r);
void top_free(struct top_result *r);

#endif
