/* SPDX-License-Identifier: BSD-3-Clause
 * The cuts by which all rows together have a mean number of codes (N.58).
 *
 * Floor: encode; included by src/encode only.
 *
 * Every rank counts the scores of its share of all rows, by the bits of their values: so the cuts
 * depend on no division of the rows.  A choice takes one pass over the rows where a few of them
 * tell about where its cut is, else three; one more where scores that equal the cut are left out.
 * A choice that follows others of ENCODER_ACTIVE describes the rows by those first. */
#ifndef ENCODE_CUTS_H
#define ENCODE_CUTS_H

#include "encode/encode.h"

struct encode;

/* Is there anything to be found? */
static inline int cuts_wanted(const struct encode_task *t)
{
  return t->cuts && !t->cuts->n;
}

/* The memory for that. */
int cuts_alloc(struct encode *e);
/* *e->task->cuts <- the cuts.  Collective.  ERR_STOPPED where it is asked to stop: nothing is
 * saved. */
int cuts_find(struct encode *e);

#endif
