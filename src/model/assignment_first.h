/* SPDX-License-Identifier: BSD-3-Clause
 * The rule for ties of an assignment, and the proof that it is optimal (N.22a).
 *
 * Floor: model. */
#ifndef MODEL_ASSIGNMENT_FIRST_H
#define MODEL_ASSIGNMENT_FIRST_H

#include "model/assignment_impl.h"

/* Check the duals against all pairs, and replace the matching by the optimal one that is the first
 * in lexicographic order of match[].  ERR_INTERNAL: they prove nothing; ERR_MEMORY. */
int assignment_first(struct assignment *a);

#endif
