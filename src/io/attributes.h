/* SPDX-License-Identifier: BSD-3-Clause
 * The hashes of a file's attributes.  The hash of each dataset is itself an attribute
 * (io/h5/digest.h), so these hashes cover the whole file.
 *
 * Floor: io.  Not collective.
 *
 * The attribute `attributes_sha256` of "/" is the hash of all attributes outside /run.  The
 * attribute `attributes_sha256` of "/run" is the hash of all attributes in /run.  Attributes are
 * sorted by path, then by name, byte by byte.  The hashed bytes of an attribute are the path of its
 * object, a zero byte, its name, a zero byte, and its items: a text of variable length followed by
 * a zero byte, any other item as it is stored.  Both attributes `attributes_sha256` are left
 * out. */
#ifndef IO_ATTRIBUTES_H
#define IO_ATTRIBUTES_H

#include "io/h5/h5.h"

/* Write both hashes, as the last step of writing a file. */
int attributes_digest(const struct h5_file *f);
/* ERR_INPUT: a hash is missing, or the attributes have another hash. */
int attributes_check(const struct h5_file *f);

/* Is this attribute a hash of attributes, or of a dataset? */
int hash_names(const char *attribute);
/* Is this attribute a hash of contents (model/identity.h), which is an integer that is shown in
 * hexadecimal digits?  Its name ends in _hash. */
int name_is_hash(const char *attribute);
/* Is this path /run or below it: the part of a file that may differ between equal runs? */
int path_is_run(const char *path);

#endif
