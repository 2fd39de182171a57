/* SPDX-License-Identifier: BSD-3-Clause
 * The digest of a dataset that Sagitta writes: two of the attributes below, which describe its
 * bytes.  They are computed while the dataset is written.  The hash is compared when the dataset is
 * read from the first byte to the last.
 *
 * Floor: io; included by src/io/h5/ and tests only.
 *
 * `sha256_tree`: the root of a hash tree (base/sha256_tree.h), in hexadecimal digits.  Leaf i is
 * the hash of the values in chunk i, in C order, as they are stored; leaves.h stores the leaves.
 * `sha256`: SHA-256 of all values; files of format versions 2 and 3 have it instead of the tree.
 * `zero_chunks`: how many chunks are zero in every byte.  A lost write or a hole in the file leaves
 * such a chunk.  Fletcher-32 does not detect it, since the checksum of zeros is 0.  So if
 * zero_chunks is 0, reading such a chunk is an error.  The attributes have a fixed length, so that
 * HDF5 stores them in the object's header, which has a checksum. */
#ifndef IO_H5_DIGEST_H
#define IO_H5_DIGEST_H

#include "base/sha256_tree.h"
#include "io/h5/chunks.h"

struct h5_digest {
  int is_tree;             /* 0: one hash of all bytes */
  int is_compared;         /* reading: bytes are hashed, and the hash will be compared */
  struct sha256 hash;      /* reading: of the bytes read so far that the current leaf is to cover;
                            * not begun between leaves */
  struct sha256_tree tree; /* over the leaves so far */
  unsigned char *leaves;   /* writing: [capacity][SHA256_BYTES]; owned */
  gidx capacity;
  char wanted[SHA256_HEX]; /* as the file says */
  gidx zero_chunks;        /* writing: so far; reading: as the file says */
  gidx leaf;               /* reading: bytes that each leaf except the last covers, at least 1 */
  gidx next, end;          /* reading: bytes hashed so far; bytes in all */
};

/* Begin the digest of a dataset that is being written.  The caller frees it with
 * h5_digest_free(). */
int h5_digest_begin(struct h5_digest **digest);
/* *leaves <- room for the next n leaves; the caller fills them in, then calls h5_digest_add(). */
int h5_digest_reserve(struct h5_digest *digest, gidx n, unsigned char **leaves);
int h5_digest_add(struct h5_digest *digest, gidx n);
/* Write the attributes and the leaves of a dataset whose leaves were all added. */
int h5_digest_end(struct h5_digest *digest, const char *path, const char *object, int64_t dataset);

/* *digest <- the digest of a dataset of `bytes` bytes that is being opened for reading; NULL if it
 * has none, as in files of other programs and of format version 1. */
int h5_digest_open(const struct h5_file *f, const char *object, int64_t dataset, gidx bytes,
                   struct h5_digest **digest);
/* Number of leaves of the complete tree. */
gidx h5_digest_leaves(const struct h5_digest *digest);
/* Set is_sealed and has_zeros of the chunks from the digest, which may be NULL. */
void h5_digest_chunks(const struct h5_digest *digest, struct h5_chunks *chunks);
/* Call this after bytes first .. first + length - 1 were read, as they are stored.  If bytes were
 * skipped, hashing stops and nothing is compared.  ERR_INPUT: these were the last bytes, and the
 * hash differs.  Safe on NULL. */
int h5_digest_read(struct h5_digest *digest, const char *path, const char *object, gidx first,
                   size_t length, const void *bytes);
/* Are bytes that are read still hashed? */
static inline int h5_digest_hashes(const struct h5_digest *digest)
{
  return digest && digest->is_compared;
}
/* Hash nothing from now on; safe on NULL. */
void h5_digest_stop(struct h5_digest *digest);
void h5_digest_free(struct h5_digest **digest);

#endif
