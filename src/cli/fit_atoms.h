/* SPDX-License-Identifier: BSD-3-Clause
 * What a fit adds about its atoms at its end, besides the codes of rows.  With --seeds: how well
 * fits of other seeds find the atoms again (N.38).  With --detectors: the detectors of atoms (N.36,
 * N.37), as `sagitta detect` makes them.  Without these options nothing is done.
 *
 * Floor: cli.
 *
 * The fits of other seeds run one after another, with the same rows and options, and leave no
 * files.  dictionary.h5 is written again after each of them, and with the detectors.  A resumed run
 * continues after the last fit that ended. */
#ifndef CLI_FIT_ATOMS_H
#define CLI_FIT_ATOMS_H

#include "cli/fit_job.h"

/* cosine[k] <- the cosine of each atom of `own` and its pair in `other`; *mean <- their mean.  The
 * names are for messages.  Collective. */
int fit_atoms_pair(const struct fit_job *j, const struct atom_array *own, const char *name,
                   const struct atom_array *other, const char *other_name, float *cosine,
                   real *mean);

/* Before any work: check the memory, and find what an earlier run left.  Collective. */
int fit_seeds_open(struct fit_job *j);
/* After the fit: fit the other seeds, and write dictionary.h5 with their results.  If no other
 * seeds are asked for, write only what the fit left open.  It may be stopped (j->run->stopped).
 * Collective. */
int fit_seeds_run(struct fit_job *j);
/* After rows are encoded, when the frequencies of atoms are known: compute the figures of the other
 * seeds.  Rank 0; not collective. */
int fit_seeds_count(struct fit_job *j);
void fit_seeds_log(const struct fit_job *j);

/* Before any work: check that detectors are possible, and that there is memory for them.
 * Collective. */
int fit_detectors_check(struct fit_job *j);
/* *bytes <- the memory of this rank for detectors; 0 without --detectors.  Not collective. */
int fit_detectors_bytes(const struct fit_job *j, gidx *bytes);
/* After supports.h5 is written: make detectors, and write dictionary.h5 again with them.
 * Collective. */
int fit_detectors_run(struct fit_job *j);

#endif
