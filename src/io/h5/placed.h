/* SPDX-License-Identifier: BSD-3-Clause
 * Arrays that several ranks write.  Each rank writes its own chunks without HDF5, at the addresses
 * that slabs.h computes.  At the end the rank that created the file registers all chunks with HDF5.
 *
 * Floor: io.  Not collective.
 *
 * The other ranks open the file with h5_placed_open(), and then create the same arrays as the
 * creating rank does, which for them changes nothing in the file. */
#ifndef IO_H5_PLACED_H
#define IO_H5_PLACED_H

#include "base/sha256.h"
#include "io/h5/h5.h"

/* The data about the chunks of an array that several ranks write. */
struct h5_placed {
  gidx chunks;         /* number of chunks of the array */
  gidx written, zeros; /* chunks that this rank has written since the ranks last exchanged hashes
                        * and counts; how many of these are zero in every byte */
  gidx all_written, all_zeros; /* the same for all ranks, up to that exchange */
  uint32_t *sums;              /* [chunks] checksums of this rank's chunks; owned with the struct */
  unsigned char leaves[][SHA256_BYTES]; /* [chunks] hashes; 0 for chunks that nobody has written, or
                                         * other ranks since that exchange */
};

/* Open a file that another rank has created, to write chunks of it; path must outlive *f.  Returns
 * 0 if this rank cannot open it; errno says why. */
int h5_placed_open(struct h5_file *f, const char *path);
/* Does the file still have its name? */
int h5_placed_is_named(const struct h5_file *f);
/* Close it; does nothing for a file that this rank created. */
int h5_placed_close(struct h5_file *f);

/* Let an array that has slabs and no entries yet be written in this way. */
int h5_placed_begin(struct h5_array *a);
/* The next write begins at this entry.  It must be the first of a chunk, or the entry where the
 * last write ended. */
int h5_placed_seek(struct h5_array *a, gidx entry);
/* Has this rank written the chunk that begins at an entry?  After an exchange of hashes, the answer
 * is 1 for the chunks of the other ranks, too. */
int h5_placed_has(const struct h5_array *a, gidx first);
/* h5_placed_push(): start writing sum blocks first .. end - 1 of all arrays of the file to the
 * disk, without waiting.  h5_placed_sync(): wait until the whole file is on the disk.  These two
 * and h5_placed_read() may be called while another thread writes.  ERR_IO. */
int h5_placed_push(const struct h5_array *a, gidx first, gidx end);
int h5_placed_sync(const struct h5_array *a);
/* out <- entries first .. first + count - 1, read from this rank's chunks in the file; a chunk
 * begins at `first`.  out needs room for whole chunks and one checksum.  ERR_IO: they cannot be
 * read, or differ from what was written. */
int h5_placed_read(const struct h5_array *a, gidx first, gidx count, void *out);
/* Compare chunk i in the file with its known hash.  ERR_INPUT: it differs, or the file is too
 * short.  ERR_IO: it cannot be read. */
int h5_placed_confirm(const struct h5_array *a, gidx i);
/* Call this after the ranks have written all entries before `end`, and *a->placed has the hashes
 * and counts of all ranks.  On the rank that created the file, *a becomes as if that rank had
 * written all of these entries. */
int h5_placed_end(struct h5_array *a, gidx end);

/* Two functions for the code that writes chunks.  h5_placed_leaf() returns the place for the hash
 * of the chunk that begins at entry `first`.  h5_placed_note() notes that the chunk whose hash is
 * at `leaf` was written, with the checksum `sum`. */
unsigned char *h5_placed_leaf(const struct h5_array *a, gidx first);
void h5_placed_note(struct h5_placed *p, const unsigned char *leaf, uint32_t sum);

#endif
