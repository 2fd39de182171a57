/* SPDX-License-Identifier: BSD-3-Clause
 * An assignment over lists of columns, exact for these.
 *
 * Floor: model. */
#ifndef MODEL_ASSIGNMENT_PATHS_H
#define MODEL_ASSIGNMENT_PATHS_H

#include "model/assignment_lists.h"

/* Match all rows, of which none is matched; v is a beginning, and u is found.  ERR_MEMORY. */
int paths_match(struct assignment *a, const struct lists *lists);

#endif
