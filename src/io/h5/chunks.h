/* SPDX-License-Identifier: BSD-3-Clause
 * Read and write chunks of the layout that Sagitta writes, without HDF5's filters.
 *
 * Floor: io; included by src/io/h5/ and tests only. */
#ifndef IO_H5_CHUNKS_H
#define IO_H5_CHUNKS_H

#include <pthread.h>

#include "io/h5/h5_impl.h"

/* How the chunks of a dataset are read without HDF5's filters.  An entry is an index of the first
 * dimension with all of its values. */
struct h5_chunks {
  gidx rows, end;         /* entries of a chunk, entries of the dataset */
  size_t bytes;           /* size of a chunk without its checksum */
  _Atomic gidx n_direct;  /* chunks read without the filters so far */
  gidx buffered;          /* first entry of the chunk in buffer, or -1 */
  gidx refused;           /* first entry of the last chunk that was left to HDF5, or -1 */
  int is_sealed;          /* 1: a chunk that is not stored as expected is an error (digest.h) */
  int has_zeros;          /* 0: a chunk that is zero in every byte is an error */
  const void *handle;     /* the file, for driver.h; NULL: HDF5 must read the chunks */
  unsigned char buffer[]; /* one chunk and its checksum */
};

/* *chunks <- a description of the dataset's chunks; the caller frees it; NULL if its layout is not
 * the one that Sagitta writes, so that HDF5 must read all. */
int h5_chunks_open(hid_t dataset, struct h5_chunks **chunks);

/* out <- the block of shape size[rank] that begins at start[rank], in the memory type `type`;
 * negative on failure.  c must be NULL if the dataset stores another type; if c is not NULL, the
 * block must have whole rows. */
herr_t h5_block_read(hid_t dataset, hid_t type, struct h5_chunks *c, int rank, const hsize_t *start,
                     const hsize_t *size, void *out);

/* A thread that reads or writes entries holds this lock while it uses HDF5. */
extern pthread_mutex_t h5_one;

/* out <- the bytes, as stored, of entries first .. first + m - 1, and return m <= n.  If m < n, the
 * chunk of entry first + m is not stored as expected, or cannot be read without HDF5.  The caller
 * then reads the rest with h5_block_read(), whose message says what is wrong.  Several threads may
 * call this at once, if none uses HDF5 without holding h5_one. */
gidx h5_chunks_read(struct h5_chunks *c, hid_t dataset, gidx first, gidx n, void *out);

/* The handle with which driver.h reads and writes the dataset's file without HDF5; NULL if the file
 * begins with a user block. */
const void *h5_chunks_disk(hid_t dataset);

/* Let HDF5 allocate the chunk that begins at entry `first`, in a dataset that this program writes.
 * *at <- its address, which is `wanted` unless that is HADDR_UNDEF.  chunk[bytes] is whole and in
 * the stored type, but is not written.  Negative on failure. */
herr_t h5_chunk_allocate(hid_t dataset, gidx first, const unsigned char *chunk, size_t bytes,
                         haddr_t wanted, haddr_t *at);
/* Write a chunk at its address, followed by its checksum; *sum <- the checksum.  Several threads
 * may call this at once.  Returns errno of the failure, or 0. */
int h5_chunk_write(const void *disk, haddr_t at, const unsigned char *chunk, size_t bytes,
                   uint32_t *sum);

/* The checksum that HDF5's Fletcher-32 filter computes; 0 for zeros alone. */
uint32_t h5_fletcher32(const unsigned char *data, size_t bytes);

#endif
