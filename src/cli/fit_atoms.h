/* SPDX-License-Identifier: BSD-3-Clause
 * What is said of a fit's atoms when it has ended, beside the codes of rows: how well fits of other
 * seeds find them again (N.38), and their detectors (N.36, N.37), as `sagitta detect` makes them.
 * Nothing is done where --seeds and --detectors do not ask for it.
 *
 * Floor: cli.
 *
 * Those fits run one after another, with the same rows and options, and leave no files.
 * dictionary.h5 is written again after each, and with detectors: a run that is stopped goes on
 * behind the last one that ended. */
#ifndef CLI_FIT_ATOMS_H
#define CLI_FIT_ATOMS_H

#include "cli/fit_job.h"

/* cosine[k] <- of the atoms of two arrays in pairs; *mean <- their mean.  The names are for
 * messages.  Collective. */
int fit_atoms_pair(const struct fit_job *j, const struct atom_array *own, const char *name,
                   const struct atom_array *other, const char *other_name, float *cosine,
                   real *mean);

/* Before any work: is there memory, and what has an earlier run left?  Collective. */
int fit_seeds_open(struct fit_job *j);
/* The fit has ended: fit the other seeds, and write dictionary.h5 with what they say; without any,
 * only what the fit left open.  It may stop (j->run->stopped).  Collective. */
int fit_seeds_run(struct fit_job *j);
/* Rows are encoded, and so it is known how often atoms fire: count what the seeds say, and say it.
 * Rank 0; not collective. */
int fit_seeds_count(struct fit_job *j);
void fit_seeds_log(const struct fit_job *j);

/* Before any work: can there be some, and is there memory for them?  Collective. */
int fit_detectors_check(struct fit_job *j);
/* *bytes <- what this rank takes for them; 0: there are to be none.  Not collective. */
int fit_detectors_bytes(const struct fit_job *j, gidx *bytes);
/* supports.h5 is there: make them, and write dictionary.h5 again with them.  Collective. */
int fit_detectors_run(struct fit_job *j);

#endif
