/* SPDX-License-Identifier: BSD-3-Clause
 * The digits of the cut are found one by one, the most significant first. */
#include "train/cut.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"

/* *tied <- the number of own scores that equal the cut; 0 if all positive scores are codes. */
static int cut_find(const struct cut_task *t, struct batch_cut *cut, gidx *tied)
{
  gidx own[BATCH_BINS] = {0}, all[BATCH_BINS];
  *tied = 0;
  while (cut->digits < BATCH_DIGITS) {
    if (!comm_failure(t->c)) comm_record(t->c, t->count(t->self, cut, own));
    memcpy(all, own, sizeof all);
    TRY(comm_sum(t->c, all, BATCH_BINS));
    int last = cut->digits == BATCH_DIGITS - 1;
    batch_cut_narrow(cut, all);
    if (last && cut->key > 0) *tied = own[cut->key & 1023];
  }
  return OK;
}

int cut_agree(const struct cut_task *t, struct batch_cut *cut, gidx *ties)
{
  gidx tied, left;
  TRY(cut_find(t, cut, &tied));
  memset(t->all, 0, (size_t)t->c->size * sizeof *t->all);
  t->all[t->c->rank] = tied;
  if (t->c->size > 1) TRY(comm_sum(t->c, t->all, t->c->size));
  left = cut->left;
  for (int r = 0; r < t->c->rank; r++) left -= imin(left, t->all[r]);
  *ties = imin(left, tied);
  return OK;
}
