/* SPDX-License-Identifier: BSD-3-Clause
 * The bytes behind artifact_sha256 as two plain files, for those who want to hash them themselves.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_ARTIFACT_DUMP_H
#define IO_ARTIFACT_DUMP_H

#include "model/artifact.h"

/* Can the files of artifact_dump() be written?  ERR_CREATE when not, or when one is there already
 * and force is 0. */
int artifact_dump_check(const char *path, int force);
/* Write the bytes that were hashed: the artifact's text to path, the atoms' texts one after another
 * to path + ".atoms".  A file that exists is complete.  ERR_CREATE, ERR_IO. */
int artifact_dump(const char *path, const struct artifact *a, const float *atoms, idx k, idx d,
                  idx p);

#endif
