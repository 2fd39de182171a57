/* SPDX-License-Identifier: BSD-3-Clause
 * The hashes of a file's attributes.  With them goes the hash of each dataset (io/h5/digest.h), so
 * they are of all that the file says.
 *
 * Floor: io.  Not collective.
 *
 * The attribute `attributes_sha256` of "/" is the hash of all attributes outside /run, that of
 * "/run" the hash of those in it: sorted by path and then by name, byte by byte; of each its path
 * and its name with a zero byte behind each, and its items, texts of variable length with a zero
 * byte behind, others as they are stored.  It is not of itself. */
#ifndef IO_ATTRIBUTES_H
#define IO_ATTRIBUTES_H

#include "io/h5/h5.h"

/* Write both hashes of a file that is complete but for them. */
int attributes_digest(const struct h5_file *f);
/* ERR_INPUT: a hash is missing, or another than that of the attributes. */
int attributes_check(const struct h5_file *f);

/* Is this attribute a hash of attributes, or of a dataset? */
int hash_names(const char *attribute);
/* Is this attribute a hash of contents (model/identity.h), an integer that is shown in hexadecimal
 * digits: does its name end in _hash? */
int name_is_hash(const char *attribute);
/* Is this path /run or below it: the part of a file that may differ between equal runs? */
int path_is_run(const char *path);

#endif
