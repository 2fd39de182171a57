/* SPDX-License-Identifier: BSD-3-Clause
 * The fast solver of assignments: exact, and mostly over a few columns of each row (N.22a).
 *
 * Floor: model. */
#ifndef MODEL_ASSIGNMENT_SPARSE_H
#define MODEL_ASSIGNMENT_SPARSE_H

#include "model/assignment_impl.h"

/* Match all rows, with duals that prove it.  ERR_MEMORY. */
int assignment_sparse(struct assignment *a);

#endif
