/* SPDX-License-Identifier: BSD-3-Clause
 * What a dataset of ours says about its own bytes: two attributes, kept while the dataset is
 * written and compared when it is read from the first byte to the last.
 *
 * Floor: io; included by src/io/h5/ and tests only.
 *
 * `sha256`: SHA-256 of the values in C order as they are stored, as hexadecimal digits.
 * `zero_chunks`: how many chunks are zero in every byte.  A lost write or a hole leaves such a
 * chunk, and the Fletcher-32 of zeros is 0; where none was written, one that is read is refused.
 * Both are of fixed length, so that they lie in the object's header, which has a checksum. */
#ifndef IO_H5_DIGEST_H
#define IO_H5_DIGEST_H

#include "base/sha256.h"
#include "io/h5/chunks.h"

struct h5_digest {
  struct sha256 hash;      /* of the bytes so far; none when they are not compared (any more) */
  char wanted[SHA256_HEX]; /* reading: as the file says */
  gidx zero_chunks;        /* writing: so far; reading: as the file says */
  gidx next, end;          /* bytes hashed so far; reading: of all */
};

/* Begin the digest of a dataset that is being written.  The caller frees it with
 * h5_digest_free(). */
int h5_digest_begin(struct h5_digest **digest);
/* The next bytes. */
int h5_digest_write(struct h5_digest *digest, const void *bytes, size_t length);
/* Write the attributes of a dataset of which all bytes were given. */
int h5_digest_end(struct h5_digest *digest, const char *path, const char *object, int64_t dataset);

/* *digest <- that of a dataset of this many bytes, which is opened for reading; NULL when it has
 * none, as in files of others and of format version 1. */
int h5_digest_open(const struct h5_file *f, const char *object, gidx bytes,
                   struct h5_digest **digest);
/* Let the chunks be read as the digest says; safe on NULL. */
void h5_digest_chunks(const struct h5_digest *digest, struct h5_chunks *chunks);
/* Bytes first .. first + length - 1 were read, as they are stored.  Nothing is compared once they
 * leave some out.  ERR_INPUT: these were the last, and the hash is another.  Safe on NULL. */
int h5_digest_read(struct h5_digest *digest, const char *path, const char *object, gidx first,
                   size_t length, const void *bytes);
/* Are bytes that are read still hashed? */
static inline int h5_digest_hashes(const struct h5_digest *digest)
{
  return digest && digest->hash.context;
}
void h5_digest_free(struct h5_digest **digest);

#endif
