/* SPDX-License-Identifier: BSD-3-Clause
 * sweep.h5: a sweep of refit or fit that was ended between two atoms, or what a long one has done
 * so far, from which a resumed run goes on beside the files of the sweep before.
 *
 * Floor: io.  Not collective.
 *
 * It has the frames and what became of the atoms that were done.  Residuals and codes are not in
 * it: they follow from the sweep's beginning and from these frames (refit/replay.h). */
#ifndef IO_SWEEP_H
#define IO_SWEEP_H

#include "io/fit_history.h"

extern const struct file_kind sweep_kind;

struct sweep_facts {
  gidx sweeps;              /* done before this one */
  gidx atoms;               /* done in it, in the order of the classes */
  uint64_t classes;         /* their hash */
  struct fit_start start;   /* of fit: its rows and those that it is judged by alone */
  struct identity contents; /* of refit: what the sweep began with; 0: the inputs */
};

/* Begin the file of k frames of d vectors of p columns. */
int sweep_output_create(struct matrix_output *f, const char *path, idx k, idx d, idx p);
/* Write all of it but what is published with it; frames[k][d][p], steps[k]. */
int sweep_output_write(struct matrix_output *f, const struct sweep_facts *facts, const real *frames,
                       const struct atom_step *steps, idx k);

/* Read the facts.  ERR_INPUT: it is no such file. */
int sweep_facts_read(const char *path, struct sweep_facts *facts);
/* frames[k][d][p] and steps[k] <- those of the file.  ERR_INPUT: they have other shapes, or are no
 * numbers. */
int sweep_read(const char *path, idx k, idx d, idx p, real *frames, struct atom_step *steps);

#endif
