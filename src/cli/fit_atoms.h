/* SPDX-License-Identifier: BSD-3-Clause
 * What a fit adds about its atoms at its end, in addition to the codes of rows.  With --seeds: how
 * well fits of other seeds find the same atoms (N.38).  With --detectors: a detector for each atom,
 * as `sagitta detect` makes it (N.36, N.37).  The functions do nothing for an option that is not
 * given.
 *
 * Floor: cli.
 *
 * The fits of other seeds run one after another, with the same rows and options, and write no
 * files.  dictionary.h5 is written again after each of these fits, and after the detectors are
 * made.  A resumed run continues after the last fit whose results are in dictionary.h5. */
#ifndef CLI_FIT_ATOMS_H
#define CLI_FIT_ATOMS_H

#include "cli/fit_job.h"

/* cosine[k] <- the cosine of each atom of `own` and its pair in `other`, 0 for an atom without a
 * pair; *mean <- the mean of the cosines.  The names are for messages.  Collective. */
int fit_atoms_pair(const struct fit_job *j, const struct atom_array *own, const char *name,
                   const struct atom_array *other, const char *other_name, float *cosine,
                   real *mean);

/* Call this before any work: check the memory, and find the results that an earlier run left.
 * Collective. */
int fit_seeds_open(struct fit_job *j);
/* Call this after the fit: fit the other seeds, and write dictionary.h5 after each of them.  Before
 * the first of them, dictionary.h5 is also written if it lacks the lines of the last sweeps.  The
 * job may be stopped here (j->run->stopped).  Collective. */
int fit_seeds_run(struct fit_job *j);
/* Call this after rows are encoded, when it is known how many rows each atom has: compute the
 * figures of all other seeds.  Rank 0; not collective. */
int fit_seeds_count(struct fit_job *j);
void fit_seeds_log(const struct fit_job *j);

/* Call this before any work: check that detectors are possible, and that there is memory for them.
 * Collective. */
int fit_detectors_check(struct fit_job *j);
/* *bytes <- the memory that detectors take on this rank; 0 without --detectors.  Not collective. */
int fit_detectors_bytes(const struct fit_job *j, gidx *bytes);
/* Call this after supports.h5 is written: make the detectors, and write dictionary.h5 again with
 * them.  Collective. */
int fit_detectors_run(struct fit_job *j);

#endif
