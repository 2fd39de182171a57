/* SPDX-License-Identifier: BSD-3-Clause
 * Field by field. */
#include "cli/atom_steps.h"

#include "base/status.h"

int atom_steps_split(struct arena *arena, const struct atom_step *steps, idx k,
                     struct fit_atoms *out)
{
  idx *accepted, *status, *retries;
  real *ridge, *log_det, *mantissa;
  gidx *exponent;
  TRY(arena_alloc(arena, &accepted, k, sizeof *accepted));
  TRY(arena_alloc(arena, &status, k, sizeof *status));
  TRY(arena_alloc(arena, &retries, k, sizeof *retries));
  TRY(arena_alloc(arena, &ridge, k, sizeof *ridge));
  TRY(arena_alloc(arena, &log_det, k, sizeof *log_det));
  TRY(arena_alloc(arena, &mantissa, k, sizeof *mantissa));
  TRY(arena_alloc(arena, &exponent, k, sizeof *exponent));
  for (idx a = 0; a < k; a++) {
    accepted[a] = steps[a].accepted;
    status[a] = steps[a].status;
    retries[a] = steps[a].retries;
    ridge[a] = steps[a].ridge;
    log_det[a] = steps[a].log_det;
    mantissa[a] = steps[a].pair.m;
    exponent[a] = steps[a].pair.e;
  }
  *out = (struct fit_atoms){k, accepted, status, retries, ridge, log_det, mantissa, exponent};
  return OK;
}

void atom_steps_join(const struct fit_atoms *atoms, struct atom_step *steps)
{
  for (idx a = 0; a < atoms->k; a++)
    steps[a] = (struct atom_step){.accepted = atoms->accepted[a],
                                  .status = atoms->status[a],
                                  .retries = atoms->retries[a],
                                  .ridge = atoms->ridge[a],
                                  .pair = {atoms->mantissa[a], atoms->exponent[a]},
                                  .log_det = atoms->log_det[a]};
}
