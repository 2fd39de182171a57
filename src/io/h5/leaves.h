/* SPDX-License-Identifier: BSD-3-Clause
 * The leaves of a dataset's hash tree: kept in the file, and made anew by threads side by side.
 *
 * Floor: io; included by src/io/h5/ and tests only.
 *
 * Where a dataset PATH has several leaves, `/hashes/PATH`, i64 (leaves, 4), has the 32 bytes of
 * each, one after another.  It has no hash of its own: they give the root that PATH names. */
#ifndef IO_H5_LEAVES_H
#define IO_H5_LEAVES_H

#include "io/h5/digest.h"

/* Write the leaves of a dataset that is complete. */
int h5_leaves_write(const struct h5_digest *digest, const char *path, const char *object,
                    int64_t dataset);

/* *leaves <- all of them, which the caller frees.  ERR_INPUT: they are missing, or give another
 * root than the digest of their dataset, which is open. */
int h5_leaves_read(const struct h5_file *f, const char *object, const struct h5_digest *digest,
                   unsigned char **leaves);

/* Read all chunks past HDF5 on threads that are spare: is each stored as expected, and are they
 * what the digest says?  0: also when that is not known, as of files without a tree.  Other threads
 * may do so with other datasets at once. */
int h5_leaves_agree(const struct h5_digest *digest, struct h5_chunks *chunks, int64_t dataset);

#endif
