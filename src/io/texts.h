/* SPDX-License-Identifier: BSD-3-Clause
 * The hashes of a file's texts, which HDF5 keeps in a heap without checksum.
 *
 * Floor: io.  Not collective.
 *
 * The attribute `text_sha256` of "/" is the hash of all texts outside /run, that of "/run" the hash
 * of those in it: attributes of variable length, sorted by path and then by name, byte by byte, and
 * of each its path, its name and its items, each with a zero byte behind it. */
#ifndef IO_TEXTS_H
#define IO_TEXTS_H

#include "io/h5/h5.h"

/* Write both hashes of a file that is complete but for them. */
int texts_seal(const struct h5_file *f);
/* ERR_INPUT: a hash is missing, or another than that of the texts. */
int texts_check(const struct h5_file *f);

/* Is this attribute a hash of texts, or of a dataset (io/h5/seal.h)? */
int hash_names(const char *attribute);
/* Is this path /run or below it: the part of a file that may differ between equal runs? */
int path_is_run(const char *path);

#endif
