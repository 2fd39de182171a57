/* SPDX-License-Identifier: BSD-3-Clause
 * The cuts for a given mean number of codes per row (N.58).  A cut is the least score that is a
 * code.
 *
 * Floor: encode; included by src/encode only.
 *
 * Every rank counts the scores of its share of the rows by key, the bits of a positive float
 * (model/cuts.h).  Counts are integers, so the cuts do not depend on how the rows are divided.  A
 * sample of the rows shows roughly where the cut is.  If that is right, a choice takes one pass
 * over all rows, otherwise at most three.  One more pass is needed if only some of the scores that
 * equal the cut are codes.  For ENCODER_ACTIVE each further choice first encodes the rows by the
 * choices before it. */
#ifndef ENCODE_CUTS_H
#define ENCODE_CUTS_H

#include "encode/encode.h"

struct encode;

/* Must the job find the cuts? */
static inline int cuts_wanted(const struct encode_task *t)
{
  return t->cuts && !t->cuts->n;
}

/* Allocate the memory for finding the cuts. */
int cuts_alloc(struct encode *e);
/* *e->task->cuts <- the cuts.  Collective.  ERR_STOPPED when the job is asked to stop: nothing is
 * saved. */
int cuts_find(struct encode *e);

#endif
