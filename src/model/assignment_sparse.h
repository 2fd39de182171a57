/* SPDX-License-Identifier: BSD-3-Clause
 * The fast solver of assignments: it is exact, and looks mostly at a few columns of each row
 * (N.22a).
 *
 * Floor: model. */
#ifndef MODEL_ASSIGNMENT_SPARSE_H
#define MODEL_ASSIGNMENT_SPARSE_H

#include "model/assignment_impl.h"

/* Match all rows; u and v <- dual variables that prove the matching optimal.  ERR_MEMORY. */
int assignment_sparse(struct assignment *a);

#endif
