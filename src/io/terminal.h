/* SPDX-License-Identifier: BSD-3-Clause
 * terminal.h5: what the terminal pass gives.
 *
 * Floor: io.  Used by rank 0 alone; not collective.  Objects: doc/formats.md. */
#ifndef IO_TERMINAL_H
#define IO_TERMINAL_H

#include "io/outputs.h"
#include "model/terminal.h"

/* Write and publish. */
int terminal_write(const char *path, const struct terminal_result *r, real rho,
                   const struct run_fact *facts, int n_facts);

/* May the files of artifact_dump() be written?  ERR_CREATE when not, or when one is there already
 * and force is 0. */
int artifact_place(const char *path, int force);
/* Write the bytes that were hashed: the artifact's text to path, the atoms' texts one after another
 * to path + ".atoms"; a file that exists is complete.  ERR_CREATE, ERR_IO. */
int artifact_dump(const char *path, const struct artifact *a, const float *atoms, idx k, idx d,
                  idx p);

#endif
