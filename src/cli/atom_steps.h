/* SPDX-License-Identifier: BSD-3-Clause
 * Steps of atoms as a refit has them, one struct each, and as files have them, arrays.
 *
 * Floor: cli.  Not collective. */
#ifndef CLI_ATOM_STEPS_H
#define CLI_ATOM_STEPS_H

#include "base/memory.h"
#include "io/fit_history.h"
#include "refit/refit.h"

/* The arrays come from the arena. */
int atom_steps_split(struct arena *arena, const struct atom_step *steps, idx k,
                     struct fit_atoms *out);
void atom_steps_join(const struct fit_atoms *atoms, struct atom_step *steps);

#endif
