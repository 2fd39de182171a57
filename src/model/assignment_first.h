/* SPDX-License-Identifier: BSD-3-Clause
 * The rule for ties of an assignment, and the proof that it is optimal (N.22a).
 *
 * Floor: model. */
#ifndef MODEL_ASSIGNMENT_FIRST_H
#define MODEL_ASSIGNMENT_FIRST_H

#include "model/assignment_impl.h"

/* Check the dual variables against all pairs, and replace the matching by the optimal one with the
 * lexicographically first match[].  ERR_INTERNAL: they do not prove optimality; ERR_MEMORY. */
int assignment_first(struct assignment *a);

#endif
