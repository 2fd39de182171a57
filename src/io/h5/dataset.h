/* SPDX-License-Identifier: BSD-3-Clause
 * HDF5 datasets: open them safely, and get their shapes and types.
 *
 * Floor: io; included by src/io/h5/, io/schema.c and tests only. */
#ifndef IO_H5_DATASET_H
#define IO_H5_DATASET_H

#include "io/h5/h5_impl.h"

/* Open a dataset for reading, also of a foreign or hostile file.  Datasets with data in other files
 * are refused, and so are shapes far larger than the stored data.  The chunk cache holds all chunks
 * of one row if these have at most 256 MiB, and at least one chunk. */
int h5_dataset_open(const struct h5_file *f, const char *object, hid_t *dataset);

/* *rank <- the rank of a dataspace; shape[capacity] <- its shape, of which at most `capacity`
 * dimensions are stored; sizes that do not fit gidx are refused. */
int h5_space_shape(hid_t space, const char *object, int capacity, int *rank, gidx *shape);

/* Our name of an HDF5 type; *swap <- whether its byte order is not the machine's. */
enum h5_type h5_type_of(hid_t type, int *swap);
/* The same for reading numbers: unsigned 64-bit integers count as signed ones.  HDF5 then converts
 * a value that is too large to the largest signed integer. */
enum h5_type h5_number_type(hid_t type, int *swap);
/* Size of a value, and HDF5's type of it in memory (negative for 16-bit floats and TYPE_OTHER). */
size_t h5_type_bytes(enum h5_type type);
hid_t h5_type_native(enum h5_type type);

#endif
