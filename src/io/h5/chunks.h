/* SPDX-License-Identifier: BSD-3-Clause
 * Chunks of the layout that Sagitta writes, read and written past HDF5's filters.
 *
 * Floor: io; included by src/io/h5/ and tests only. */
#ifndef IO_H5_CHUNKS_H
#define IO_H5_CHUNKS_H

#include <pthread.h>

#include "io/h5/h5_impl.h"

/* How the chunks of a dataset are read past HDF5's filters.  Entries are those of the first
 * dimension. */
struct h5_chunks {
  gidx rows, end;         /* entries of a chunk, entries of the dataset */
  size_t bytes;           /* size of a chunk without its checksum */
  _Atomic gidx n_direct;  /* chunks that were read past the filters so far */
  gidx buffered;          /* first entry of the chunk in buffer, or -1 */
  gidx refused;           /* first entry of the last chunk that was left to HDF5, or -1 */
  int is_sealed;          /* 1: every chunk is stored as expected, or it is an error (digest.h) */
  int has_zeros;          /* 0: so is a chunk that is zero in every byte */
  const void *handle;     /* of driver.h; NULL: chunks have to be read by HDF5 */
  unsigned char buffer[]; /* one chunk and its checksum */
};

/* *chunks <- how to read the dataset's chunks, which the caller frees; NULL when its layout is not
 * the one that we write, so that HDF5 has to read everything. */
int h5_chunks_open(hid_t dataset, struct h5_chunks **chunks);

/* out <- the block of shape size[rank] that begins at start[rank], in a memory type; negative on
 * failure.  c is NULL unless the dataset stores this very type.  When c is not NULL, the block has
 * whole rows. */
herr_t h5_block_read(hid_t dataset, hid_t type, struct h5_chunks *c, int rank, const hsize_t *start,
                     const hsize_t *size, void *out);

/* Who reads or writes entries holds this while it uses HDF5. */
extern pthread_mutex_t h5_one;

/* out <- the bytes, as stored, of as many of the n entries from `first` on as are stored as
 * expected.  Any threads may do so at once, while no other uses HDF5 without h5_one.  The caller
 * reads the rest by h5_block_read(), which says what is wrong. */
gidx h5_chunks_read(struct h5_chunks *c, hid_t dataset, gidx first, gidx n, void *out);

/* By what the driver may read or write the dataset's file past HDF5: NULL where it does not begin
 * with HDF5's part. */
const void *h5_chunks_disk(hid_t dataset);

/* Let HDF5 give the chunk of a dataset of ours that begins at entry first its place: *at <- where,
 * `wanted` unless that is HADDR_UNDEF.  Of chunk[bytes], whole and in the stored type, nothing is
 * written.  Negative on failure. */
herr_t h5_chunk_allocate(hid_t dataset, gidx first, const unsigned char *chunk, size_t bytes,
                         haddr_t wanted, haddr_t *at);
/* Write it there, and the checksum behind it: *sum <- that.  Any threads may do so at once.
 * Returns the system's error, or 0. */
int h5_chunk_write(const void *disk, haddr_t at, const unsigned char *chunk, size_t bytes,
                   uint32_t *sum);

/* The checksum that HDF5's Fletcher-32 filter computes; 0 for zeros alone. */
uint32_t h5_fletcher32(const unsigned char *data, size_t bytes);

#endif
