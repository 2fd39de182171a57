/* SPDX-License-Identifier: BSD-3-Clause
 * Hashes of contents in result files: attributes of a group, one per known hash.
 *
 * Floor: io.  Not collective.
 *
 * They are integers, since HDF5 stores a text of variable length without a checksum. */
#ifndef IO_IDENTITY_H
#define IO_IDENTITY_H

#include "base/json.h"
#include "io/h5/h5.h"
#include "model/identity.h"

#define INPUTS_GROUP "/inputs"     /* hashes of the inputs of a result */
#define CONTENTS_GROUP "/contents" /* hashes of the contents of the two files of a sweep of refit */

/* Unknown hashes (0) are not written. */
int identity_write(const struct h5_file *f, const char *group, const struct identity *identity);
/* Add the known hashes as entries of the open JSON object. */
void identity_json(const struct identity *identity, struct json *out);
/* A hash that the file lacks is read as 0. */
int identity_read(const struct h5_file *f, const char *group, struct identity *identity);

#endif
