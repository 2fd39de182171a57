/* SPDX-License-Identifier: BSD-3-Clause
 * Hashes of contents in result files: attributes of a group, one for each hash that is known.
 *
 * Floor: io.  Not collective.
 *
 * They are integers, since a text has no checksum in HDF5. */
#ifndef IO_IDENTITY_H
#define IO_IDENTITY_H

#include "io/h5/h5.h"
#include "model/identity.h"

#define INPUTS_GROUP "/inputs"     /* what a result was made from */
#define CONTENTS_GROUP "/contents" /* what the two files of a sweep of refit hold */

/* Nothing is written of what is not known. */
int identity_write(const struct h5_file *f, const char *group, const struct identity *identity);
/* What the file does not say is 0. */
int identity_read(const struct h5_file *f, const char *group, struct identity *identity);

#endif
