/* SPDX-License-Identifier: BSD-3-Clause
 * What a dataset of ours says about its own bytes: two attributes, kept while the dataset is
 * written and compared when it is read from the first byte to the last.
 *
 * Floor: io; included by src/io/h5/ and tests only.
 *
 * `sha256_tree`: root of the tree (base/sha256_tree.h) whose leaf i is of the values that chunk i
 * has, in C order as they are stored, as hexadecimal digits; leaves.h keeps the leaves.
 * `sha256`, instead, before format version 4: SHA-256 of all values.
 * `zero_chunks`: how many chunks are zero in every byte.  A lost write or a hole leaves such a
 * chunk, and the Fletcher-32 of zeros is 0; where none was written, one that is read is refused.
 * All are of fixed length, so that they lie in the object's header, which has a checksum. */
#ifndef IO_H5_DIGEST_H
#define IO_H5_DIGEST_H

#include "base/sha256_tree.h"
#include "io/h5/chunks.h"

struct h5_digest {
  int is_tree;             /* 0: one hash of all bytes */
  int is_compared;         /* reading: bytes are hashed, and are to be what was written */
  struct sha256 hash;      /* reading: of the leaf so far; none between leaves */
  struct sha256_tree tree; /* of the leaves so far */
  unsigned char *leaves;   /* [tree.leaves + what is reserved][SHA256_BYTES], writing; owned */
  gidx capacity;
  char wanted[SHA256_HEX]; /* as the file says */
  gidx zero_chunks;        /* writing: so far; reading: as the file says */
  gidx leaf;               /* reading: bytes of a leaf but the last, at least 1 */
  gidx next, end;          /* reading: bytes hashed so far, of all */
};

/* Begin the digest of a dataset that is being written.  The caller frees it with
 * h5_digest_free(). */
int h5_digest_begin(struct h5_digest **digest);
/* *leaves <- room for the next n, which the caller fills in and then adds to the tree. */
int h5_digest_reserve(struct h5_digest *digest, gidx n, unsigned char **leaves);
int h5_digest_add(struct h5_digest *digest, gidx n);
/* Write the attributes and the leaves of a dataset of which all chunks were given. */
int h5_digest_end(struct h5_digest *digest, const char *path, const char *object, int64_t dataset);

/* *digest <- that of a dataset of this many bytes, which is opened for reading; NULL when it has
 * none, as in files of others and of format version 1. */
int h5_digest_open(const struct h5_file *f, const char *object, int64_t dataset, gidx bytes,
                   struct h5_digest **digest);
/* How many leaves the tree has when it is complete. */
gidx h5_digest_leaves(const struct h5_digest *digest);
/* Let the chunks be read as the digest says; safe on NULL. */
void h5_digest_chunks(const struct h5_digest *digest, struct h5_chunks *chunks);
/* Bytes first .. first + length - 1 were read, as they are stored.  Nothing is compared once they
 * leave some out.  ERR_INPUT: these were the last, and the hash is another.  Safe on NULL. */
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
