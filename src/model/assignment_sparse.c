/* SPDX-License-Identifier: BSD-3-Clause
 * Each row has a list of columns.  Over the lists the assignment is solved: a row takes its best
 * column if the next best lets it (Jonker, Volgenant 1987), and the rest shortest augmenting paths.
 * Then all pairs are priced: where the duals do not fit a pair, it joins the list, and the lists
 * are solved again, until all fit.  Column i is on the list of row i, so that the lists always have
 * an assignment. */
#include "model/assignment_sparse.h"

#include <string.h>

#include "base/status.h"
#include "model/assignment_lists.h"
#include "model/assignment_paths.h"

/* Of the square problem any v is a beginning; else a column without a row has to have v = 0. */
static void matching_clear(struct assignment *a)
{
  for (idx i = 0; i < a->k; i++) a->match[i] = -1;
  for (idx j = 0; j < a->l; j++) a->owner[j] = -1;
  if (a->k < a->l) memset(a->v, 0, (size_t)a->l * sizeof *a->v);
}

int assignment_sparse(struct assignment *a)
{
  struct lists lists = {.a = a};
  gidx added;
  int status = lists_price(&lists, &added);
  while (!status && added > 0) {
    matching_clear(a);
    status = paths_match(a, &lists);
    if (!status) status = lists_price(&lists, &added);
  }
  lists_free(&lists);
  return status;
}
