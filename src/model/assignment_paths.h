/* SPDX-License-Identifier: BSD-3-Clause
 * An optimal assignment when each row may only have the columns of its list.
 *
 * Floor: model. */
#ifndef MODEL_ASSIGNMENT_PATHS_H
#define MODEL_ASSIGNMENT_PATHS_H

#include "model/assignment_lists.h"

/* Match all rows; none is matched at the start.  a->v has start values for the dual variables of
 * columns, and is updated; a->u <- the dual variables of rows.  ERR_MEMORY. */
int paths_match(struct assignment *a, const struct lists *lists);

#endif
