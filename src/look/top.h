/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of supports in which each atom is strongest (N.23).
 *
 * Floor: look.  Knows no files.
 *
 * Every rank reads its share of the rows, some thousand at a time, and keeps lists for all atoms;
 * rank 0 merges those of all.  So memory grows with the atoms, and not with the rows. */
#ifndef LOOK_TOP_H
#define LOOK_TOP_H

#include "comm/comm.h"
#include "model/identity.h"
#include "model/supports.h"
#include "model/top.h"

struct top_result {
  struct top_rows top;    /* of all rows; on rank 0 */
  gidx dead, entries;     /* atoms without a row; codes that are not 0; on every rank the same */
  struct identity inputs; /* supports and codes, as read; the same on every rank */
  uint64_t fingerprint;   /* of the lists; on rank 0 */
  struct arena arena;
};

/* The `rows` strongest rows of every atom.  ERR_INPUT: the supports hold no codes, or are not as
 * they should be; ERR_MEMORY with the numbers, before anything is read.  Collective; the same
 * status on every rank. */
int top_find(struct comm *c, const struct support_source *source, idx rows, struct top_result *r);
void top_free(struct top_result *r);

#endif
