/* SPDX-License-Identifier: BSD-3-Clause
 * Arrays that several ranks write, each its own chunks, where slabs.h says that they are, past
 * HDF5; in the end the rank that has made the file lets HDF5 know of them.
 *
 * Floor: io; included by src/io only.  Not collective.
 *
 * A rank that has not made it opens the file (h5_placed_open()), and creates the same arrays in it
 * as the one that has, which makes nothing there. */
#ifndef IO_H5_PLACED_H
#define IO_H5_PLACED_H

#include "base/sha256.h"
#include "io/h5/h5.h"

/* What is known of the chunks that are written so. */
struct h5_placed {
  gidx chunks;         /* how many there are in the array */
  gidx written, zeros; /* by this rank since ranks joined what they know, and how many of these are
                        * zero in every byte */
  gidx all_written, all_zeros; /* what they had joined by then */
  uint32_t *sums;              /* [chunks] checksums, of this rank's; owned with the struct */
  unsigned char leaves[][SHA256_BYTES]; /* [chunks] hashes; 0 of those of other ranks since */
};

/* Open a file that another rank has made, to write chunks of it; path must outlive *f.  0: it is
 * not seen here, errno says why. */
int h5_placed_open(struct h5_file *f, const char *path);
/* Close it; nothing on a file of this rank's. */
int h5_placed_close(struct h5_file *f);

/* An array without entries, which has slabs, is written so. */
int h5_placed_begin(struct h5_array *a);
/* The next write begins at this entry, where a chunk does. */
int h5_placed_seek(struct h5_array *a, gidx entry);
/* Has this rank written the chunk that begins at an entry? */
int h5_placed_has(const struct h5_array *a, gidx first);
/* What was written of a file's sum blocks first .. end - 1, those of all its arrays, begins to go
 * to the disk; and all of the file is there when this returns.  These and what reads may be called
 * beside a thread that writes.  ERR_IO. */
int h5_placed_push(const struct h5_array *a, gidx first, gidx end);
int h5_placed_sync(const struct h5_array *a);
/* out <- entries from `first` on, where a chunk begins, as chunks of this rank have them on the
 * disk; it has room for whole chunks, and a checksum.  ERR_IO: they cannot be read, or are not what
 * was written. */
int h5_placed_read(const struct h5_array *a, gidx first, gidx count, void *out);
/* Chunk i, whose hash is known, is that on the disk.  ERR_INPUT. */
int h5_placed_confirm(const struct h5_array *a, gidx i);
/* Entries up to `end` were written by the ranks together, and *a->placed has what all of them know:
 * *a becomes as if this rank had written all, if it is that which has made the file. */
int h5_placed_end(struct h5_array *a, gidx end);

/* Of the write: where the hash of the chunk is that begins at an entry; and that chunk has been
 * written, with this checksum. */
unsigned char *h5_placed_leaf(const struct h5_array *a, gidx first);
void h5_placed_note(struct h5_placed *p, const unsigned char *leaf, uint32_t sum);

#endif
