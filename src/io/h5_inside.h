/* SPDX-License-Identifier: BSD-3-Clause
 * What the h5*.c files share: HDF5's header, its error adaptor, opening datasets with care.
 *
 * Floor: io; included by h5*.c only. */
#ifndef IO_H5_INSIDE_H
#define IO_H5_INSIDE_H

#define H5Dread_chunk_vers 1 /* HDF5 2 has another one */
#include <hdf5.h>

#include "base/status.h"
#include "io/h5.h"

enum {
  BLOCK_BYTES = 1 << 20, /* of data that pass through memory at once */
  H5_SUM_BYTES = 4,      /* a checksum behind a chunk */
};

/* A failed HDF5 call becomes our code and the library's innermost message; a system error makes it
 * ERR_IO, a failed allocation ERR_MEMORY. */
#define TRY_H5(call, code, ...)                                                                    \
  do {                                                                                             \
    if ((call) < 0) return h5_fail((code), __FILE__, __LINE__, __VA_ARGS__);                       \
  } while (0)
int h5_fail(int code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* First of all in each thread: HDF5 without its printing, and without its exit handler, which
 * crashes after a failed close. */
int h5_begin(void);

/* A property list of a link, object or dataset access class that follows no external link. */
hid_t h5_access(hid_t class);

/* Create the missing groups of a path; the last name too when whole is set. */
int h5_groups_create(const struct h5_file *f, const char *object, int whole);

/* Open a dataset for reading: data in other files and shapes far larger than what is stored are
 * refused, the chunk cache holds a row of chunks (one at least). */
int h5_dataset_open(const struct h5_file *f, const char *object, hid_t *dataset);

/* Chunks that need not pass through HDF5's filters. */
struct h5_chunks {
  gidx rows, end;       /* of the first dimension: in a chunk, in the dataset */
  size_t bytes;         /* of a chunk, without its checksum */
  gidx taken;           /* chunks read so, up to now */
  gidx held;            /* the first entry of the chunk in room, or -1 */
  gidx refused;         /* of the last one that is left to HDF5, or -1 */
  unsigned char room[]; /* for one chunk and its checksum */
};
/* *chunks <- NULL when HDF5 has to read all of a dataset; the caller frees it. */
int h5_chunks_open(hid_t dataset, struct h5_chunks **chunks);
/* The block start, size of a dataset in a memory type; negative on failure.  c: of the dataset when
 * it stores this very type, else NULL. */
herr_t h5_block_read(hid_t dataset, hid_t type, struct h5_chunks *c, int rank, const hsize_t *start,
                     const hsize_t *size, void *out);
/* The chunk of a dataset of ours that begins at entry first: whole, in its stored type, and with
 * room for the checksum; negative on failure. */
herr_t h5_chunk_write(hid_t dataset, gidx first, unsigned char *chunk, size_t bytes);
/* The checksum of HDF5's Fletcher-32 filter. */
uint32_t h5_fletcher32(const unsigned char *data, size_t bytes);

/* Shape of a dataspace; dimensions that do not fit gidx are refused.  room: of shape. */
int h5_space_shape(hid_t space, const char *object, int room, int *rank, gidx *shape);

enum h5_type h5_type_of(hid_t type, int *swap);
size_t h5_type_bytes(enum h5_type type);
hid_t h5_type_native(enum h5_type type);

/* Descriptor of a variable-length text as it is stored: length, heap address, index. */
struct h5_text {
  unsigned char bytes[16];
};
/* The type that reads descriptors; negative on failure. */
hid_t h5_text_type(void);
/* *out <- the text with a NUL behind it, *length its bytes; the caller frees *out.  The heap has no
 * checksum and HDF5 copies what a damaged one says, so it is read and checked here. */
int h5_text_fetch(const struct h5_file *f, const struct h5_text *text, char **out, size_t *length);

#endif
