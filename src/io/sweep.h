/* SPDX-License-Identifier: BSD-3-Clause
 * sweep.h5: the state inside a sweep of refit or fit, written when a run stops between two atoms,
 * and from time to time in a long sweep.  A resumed run continues from it and from the files of the
 * sweep before.
 *
 * Floor: io.  Not collective.
 *
 * It has the frames, and the outcome of each atom that was done.  It has no residuals and codes,
 * since these follow from the state before the sweep and from the frames (refit/replay.h). */
#ifndef IO_SWEEP_H
#define IO_SWEEP_H

#include "io/fit_history.h"

extern const struct file_kind sweep_kind;

struct sweep_facts {
  gidx sweeps;              /* sweeps that were done before this one */
  gidx atoms;               /* atoms that were done in this sweep, in the order of the classes */
  uint64_t classes;         /* their hash */
  struct fit_start start;   /* of fit: only the hashes of rows and held-out rows */
  struct identity contents; /* of refit: the files from which the sweep began; 0: its inputs */
};

/* Begin the file of k frames of d vectors of p columns. */
int sweep_output_create(struct matrix_output *f, const char *path, idx k, idx d, idx p);
/* Write everything except /run, which is written when the file is published; frames[k][d][p],
 * steps[k]. */
int sweep_output_write(struct matrix_output *f, const struct sweep_facts *facts, const real *frames,
                       const struct atom_step *steps, idx k);

/* Read the facts.  ERR_INPUT: it is not a sweep.h5. */
int sweep_facts_read(const char *path, struct sweep_facts *facts);
/* frames[k][d][p], steps[k] <- the frames and outcomes in the file.  ERR_INPUT: they have other
 * shapes, or a value is not finite. */
int sweep_read(const char *path, idx k, idx d, idx p, real *frames, struct atom_step *steps);

#endif
