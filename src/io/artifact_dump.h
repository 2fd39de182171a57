/* SPDX-License-Identifier: BSD-3-Clause
 * Write the bytes from which artifact_sha256 is computed to two plain files, so that a user can
 * hash them with any program.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_ARTIFACT_DUMP_H
#define IO_ARTIFACT_DUMP_H

#include "model/artifact.h"

/* Where the dump goes.  path[0] is the file of the artifact's text.  path[1], the same with
 * ".atoms" at the end, is the file of the atoms' texts. */
struct artifact_path {
  char path[2][4096];
};
/* Claim both files (place.h).  ERR_CREATE: a file cannot be written, a file exists and force is 0,
 * or its name is reserved for results and the files beside them. */
int artifact_dump_claim(struct artifact_path *place, const char *path, int force);
/* Write the bytes that were hashed: the artifact's text, and the atoms' texts one after another.  A
 * file under its final name is complete.  ERR_CREATE, ERR_IO. */
int artifact_dump(const struct artifact_path *place, const struct artifact *a, const float *atoms,
                  idx k, idx d, idx p);

#endif
