/* SPDX-License-Identifier: BSD-3-Clause
 * The bytes behind artifact_sha256 as two plain files, for those who want to hash them themselves.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_ARTIFACT_DUMP_H
#define IO_ARTIFACT_DUMP_H

#include "model/artifact.h"

/* Where the dump goes: the artifact's text, and path + ".atoms", the atoms' texts. */
struct artifact_path {
  char path[2][4096];
};
/* Claim both files (place.h).  ERR_CREATE: one of them cannot be written, is there already and
 * force is 0, or has a name that only results and what lies beside them have. */
int artifact_dump_claim(struct artifact_path *place, const char *path, int force);
/* Write the bytes that were hashed: the artifact's text, and the atoms' texts one after another.  A
 * file that exists is complete.  ERR_CREATE, ERR_IO. */
int artifact_dump(const struct artifact_path *place, const struct artifact *a, const float *atoms,
                  idx k, idx d, idx p);

#endif
