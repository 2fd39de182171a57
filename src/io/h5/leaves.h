/* SPDX-License-Identifier: BSD-3-Clause
 * The leaves of a dataset's hash tree (digest.h): store them in the file, and recompute them on
 * several threads.
 *
 * Floor: io; included by src/io/h5/ and tests only.
 *
 * If a dataset PATH has more than one leaf, `/hashes/PATH`, i64 (leaves, 4), has the 32 bytes of
 * each leaf.  It needs no hash of its own, since the leaves give the root in the attribute of
 * PATH. */
#ifndef IO_H5_LEAVES_H
#define IO_H5_LEAVES_H

#include "io/h5/digest.h"

/* Write the leaves of a dataset that is complete. */
int h5_leaves_write(const struct h5_digest *digest, const char *path, const char *object,
                    int64_t dataset);

/* *leaves <- all leaves of dataset `object`, which the caller frees.  `digest` is that of the
 * dataset, open for reading.  ERR_INPUT: the leaves are missing, or do not give the root in
 * `digest`. */
int h5_leaves_read(const struct h5_file *f, const char *object, const struct h5_digest *digest,
                   unsigned char **leaves);

/* Read all chunks, on this thread and spare ones and without HDF5's filters, and compare them with
 * the digest.  Returns 1 if every chunk is stored as expected and has its hash; 0: no, or not
 * known, as for files without a tree.  Other threads may call this for other datasets at once, if
 * none uses HDF5 without h5_one (chunks.h). */
int h5_leaves_agree(const struct h5_digest *digest, struct h5_chunks *chunks, int64_t dataset);

#endif
