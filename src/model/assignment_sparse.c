/* SPDX-License-Identifier: BSD-3-Clause
 * Each row has a list of columns, and the assignment over these lists is solved: a row takes its
 * best column if the next best allows it (Jonker, Volgenant 1987); the other rows use shortest
 * augmenting paths.  Then all pairs are checked: a pair that violates the dual variables joins its
 * row's list.  This is repeated until no pair does.  Column i is in the list of row i, so that an
 * assignment over the lists always exists. */
#include "model/assignment_sparse.h"

#include <string.h>

#include "base/status.h"
#include "model/assignment_lists.h"
#include "model/assignment_paths.h"

/* For a square problem any v is a valid start; otherwise columns without a row must have v = 0. */
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
