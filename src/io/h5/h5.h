/* SPDX-License-Identifier: BSD-3-Clause
 * The part of HDF5 that Sagitta needs: files, arrays read and written in blocks, attributes.
 *
 * Floor: io.  This folder is the only user of hdf5.h.  It uses a serial driver of its own
 * (driver.h), and nothing is collective.  See also listing.h (what a file holds), values.h (values
 * of any type) and array_write.h (several arrays at once).
 *
 * Datasets are written little-endian, in C order, in chunks with a Fletcher-32 checksum, without
 * times, in the format of HDF5 1.10.  So equal results are equal bytes, and a flipped bit is found
 * when it is read. */
#ifndef IO_H5_H5_H
#define IO_H5_H5_H

#include "base/phase.h"
#include "base/types.h"
#include "io/h5/slabs.h"
#include "io/input_file.h"

#define FORMAT_NAME "sagitta"
/* The present format version; the first one with hashes; the first one with hash trees
 * (digest.h). */
enum { FORMAT_VERSION = 4, H5_SEALED_FROM = 2, H5_TREE_FROM = 4 };
#define H5_LEAVES "/hashes" /* the group of the leaves of all hash trees */
enum { H5_SUM_BYTES = 4 };  /* size of the checksum after each chunk */

enum h5_type { TYPE_I32, TYPE_I64, TYPE_F32, TYPE_F64, TYPE_F16, TYPE_BF16, TYPE_OTHER };

struct h5_file {
  int64_t id;               /* 0: not open */
  const char *path;         /* borrowed */
  struct input_file *input; /* reading: notes that the file is read, and finds changes; owned */
  gidx version;             /* reading: format version of a file by Sagitta; 0: another program's */
  int is_hashed;            /* reading: all hashes were compared already, and are skipped */
  const void *disk;         /* writing: the handle of a file that another rank created (placed.h);
                             * NULL: this rank created it; owned */
};

/* text[capacity] <- the version of HDF5, as "1.10.8". */
void h5_library(char *text, size_t capacity);

/* Open for reading; path must outlive *f.  ERR_IO: the file is missing or unreadable, ERR_INPUT: it
 * is not HDF5 or is damaged.  If the file changes later, a read that fails because of that gives
 * ERR_IO, and so does closing the file after any read. */
int h5_open(struct h5_file *f, const char *path);
/* The same, but also opens a file of Sagitta whose format version is newer than this program's,
 * which h5_open() refuses with ERR_INPUT.  *newer <- is it newer?  If so, why[capacity] <- a
 * warning. */
int h5_open_newer(struct h5_file *f, const char *path, int *newer, char *why, int capacity);
/* Create a file, or replace an existing one.  ERR_CREATE. */
int h5_create(struct h5_file *f, const char *path);
/* h5_create_over(): create the HDF5 structure in an existing file of zeros and chunks that were
 * written without HDF5; these bytes and the length stay.  h5_whole(): call it when the file is
 * complete, so that closing cuts it to HDF5's length; does nothing for a file of h5_create(). */
int h5_create_over(struct h5_file *f, const char *path);
int h5_whole(const struct h5_file *f);
/* Write the data that HDF5 has buffered to the file. */
int h5_flush(const struct h5_file *f);
/* Close; safe on a zeroed struct.  ERR_IO: buffered data cannot be written, or the file changed
 * while it was read. */
int h5_close(struct h5_file *f);
/* Close a file after work on it that ended with `status`.  Returns `status`, or if that is OK the
 * status of closing.  Returns ERR_IO instead of ERR_INPUT if the file changed, since then its
 * content is not to blame. */
int h5_close_after(struct h5_file *f, int status);

/* *there <- whether the path leads to an object.  ERR_INPUT: the file is damaged, or a link of the
 * path is dangling or leads to another file.  An error must not be taken for an answer, since HDF5
 * may answer differently when it is asked again. */
int h5_exists(const struct h5_file *f, const char *object, int *there);

/* Create a group and its parents if they are missing. */
int h5_group_create(const struct h5_file *f, const char *object);

enum { H5_RANK = 4 };
/* A dataset opened for reading or writing in blocks of its first dimension. */
struct h5_array {
  int64_t id;
  enum h5_type type;
  int rank; /* as in the file; shape is known for 1 to H5_RANK */
  gidx shape[H5_RANK];
  int swap;                 /* values are stored in the other byte order */
  int is_native;            /* reading: the bytes of values are those of `type` in memory */
  const char *path;         /* borrowed: file */
  struct input_file *input; /* reading: borrowed from the file, which stays open */
  char object[256];
  gidx chunk_rows;          /* writing: entries of the first dimension in a chunk */
  int grows;                /* writing: its length grows with the entries written */
  gidx next, n_pending;     /* writing: entries given so far, and how many of them are in pending */
  unsigned char *pending;   /* writing: the chunk being filled; owned */
  const void *disk;         /* writing: the handle to write chunks without HDF5 (chunks.h); reading:
                             * the same if values are stored contiguously, NULL if not */
  gidx place;               /* reading: address of contiguous values */
  struct h5_chunks *chunks; /* reading: NULL when everything is read by HDF5; owned */
  struct h5_digest *digest; /* the hash of the bytes that are written or read; NULL: none; owned */
  const struct h5_slabs *slabs; /* writing: where chunks are to be; NULL: anywhere; borrowed */
  int slab_array;               /* writing: the index of this array in slabs */
  struct h5_placed *placed; /* writing: several ranks write the chunks (placed.h); NULL: only this
                             * one; owned */
  struct phase *hashing;    /* writing: gets the time spent on hashes; NULL: not measured;
                             * borrowed */
};
/* Open for reading.  ERR_INPUT: there is no such dataset, it is damaged, it keeps its data in other
 * files, or it claims far more data than it stores. */
int h5_array_open(const struct h5_file *f, const char *object, struct h5_array *a);
/* Create a dataset of rank 1 to H5_RANK for writing; type is any except TYPE_OTHER.  Missing groups
 * are created.  A chunk has rows_per_chunk entries of the first dimension.  With rows_per_chunk 0
 * the number is chosen so that a chunk has at most a megabyte, or a single entry.  If shape[0] is
 * H5_GROWS, the array grows with each write, in chunks of rows_per_chunk. */
enum { H5_GROWS = -1 };
int h5_array_create(const struct h5_file *f, const char *object, enum h5_type type, int rank,
                    const gidx *shape, struct h5_array *a);
int h5_array_create_chunked(const struct h5_file *f, const char *object, enum h5_type type,
                            int rank, const gidx *shape, gidx rows_per_chunk, struct h5_array *a);
/* Writing: shorten the array to the entries that were written so far. */
int h5_array_truncate(struct h5_array *a);
/* Write the pending entries and close; safe on a zeroed struct.  ERR_INTERNAL: fewer entries were
 * written than the shape has. */
int h5_array_close(struct h5_array *a);

/* Read entries first .. first + count - 1 of the first dimension.  `as` is the array's own type
 * (16-bit floats then come as raw bits in native byte order), TYPE_F32 for any float (rounded
 * once), TYPE_I32 for 64-bit integers that fit, or the 64-bit type of the same class for a 32-bit
 * one.  The array keeps its last chunk, so only one thread may read it at a time, unless it was
 * made a stream.  ERR_INPUT also if this call reads the last entries, all entries were read in
 * order, and the dataset's hash differs. */
int h5_array_read(const struct h5_array *a, gidx first, gidx count, enum h5_type as, void *out);
/* Reading: do not hash the values, since hashing takes longer than reading; `verify` compares the
 * hash.  Unexpected chunks of zeros are still an error.  Safe on a zeroed struct. */
void h5_array_stream(struct h5_array *a);
/* Bytes of all values. */
gidx h5_array_bytes(const struct h5_array *a);
/* Reading: entries of a chunk; 0: the array has no chunks, or only HDF5 can read them. */
gidx h5_array_unit(const struct h5_array *a);
/* The same also for chunks that only HDF5 can read; 0: the array has no chunks. */
gidx h5_array_chunk(const struct h5_array *a);
/* A file and an array of it, opened and closed while other threads read and write entries. */
int h5_open_beside(struct h5_file *f, const char *path, const char *object, struct h5_array *a);
int h5_close_beside(struct h5_file *f, struct h5_array *a);
/* Read all chunks on spare threads: is every chunk stored as expected, and does the hash agree?  0:
 * no, or not known; reading the array gives the cause. */
int h5_array_is_whole(const struct h5_array *a);
/* Hash entries that were read through another struct h5_array of the same dataset, in order from
 * the first on; ERR_INPUT as for h5_array_read().  Several threads may do so at once, each for
 * another array. */
int h5_array_hash(const struct h5_array *a, gidx first, gidx count, const void *values);
/* *leaves <- the hash of each chunk (base/sha256_tree.h), which the caller frees; NULL: the file
 * does not have them. */
int h5_array_leaves(const struct h5_file *f, const struct h5_array *a, unsigned char **leaves);
/* Were all entries hashed, and the hash compared? */
int h5_array_is_hashed(const struct h5_array *a);
/* ERR_INPUT: the hash of the dataset differs.  Other threads may read and write entries of arrays
 * meanwhile.  Datasets without a hash pass. */
int h5_array_confirm(const struct h5_file *f, const char *object);
/* Write the next entries, in the array's own type; first must be where the last call ended.  Every
 * NaN is written as nan_canonical().  Another thread may read entries of other files meanwhile. */
int h5_array_write(struct h5_array *a, gidx first, gidx count, const void *in);

/* Is this an attribute of a digest: `sha256_tree`, `sha256` or `zero_chunks` (digest.h)? */
int h5_hash_names(const char *attribute);
/* Is this object the group of leaves (leaves.h), or inside it? */
int h5_is_leaves(const struct h5_file *f, const char *object);
/* text[capacity] <- the hash of a dataset's values in the file; "": it has none. */
int h5_digest_text(const struct h5_file *f, const char *object, char *text, int capacity);

/* out[count] <- f32 of raw F16, BF16 or F64 values. */
void h5_to_f32(enum h5_type from, const void *in, gidx count, float *out);

/* Write an attribute of an object, "/" or a path; a missing group is created. */
int h5_attribute_text(const struct h5_file *f, const char *object, const char *name, const char *v);
/* The same for 64 hexadecimal digits; the object must exist.  They are stored at fixed length, and
 * so in the object's header, which has a checksum; other texts are in a heap without one. */
int h5_attribute_hash(const struct h5_file *f, const char *object, const char *name,
                      const char *digits);
int h5_attribute_long(const struct h5_file *f, const char *object, const char *name, gidx v);
int h5_attribute_longs(const struct h5_file *f, const char *object, const char *name, int n,
                       const gidx *v);
int h5_attribute_real(const struct h5_file *f, const char *object, const char *name, real v);
/* *there <- does the object exist and have the attribute? */
int h5_attribute_exists(const struct h5_file *f, const char *object, const char *name, int *there);
/* *same <- does the object have an attribute with this text? */
int h5_attribute_is(const struct h5_file *f, const char *object, const char *name, const char *text,
                    int *same);
/* Read an attribute.  ERR_INPUT: there is none, or it has another type or length. */
int h5_read_text(const struct h5_file *f, const char *object, const char *name, char *out,
                 int capacity);
/* The same of any length: the caller frees *text. */
int h5_read_text_any(const struct h5_file *f, const char *object, const char *name, char **text);
int h5_read_long(const struct h5_file *f, const char *object, const char *name, gidx *out);
int h5_read_longs(const struct h5_file *f, const char *object, const char *name, int n, gidx *out);
int h5_read_real(const struct h5_file *f, const char *object, const char *name, real *out);
/* The same for one number of any type, also an integer or a boolean of h5py, as other programs
 * store numbers. */
int h5_read_number(const struct h5_file *f, const char *object, const char *name, real *out);

#endif
