/* SPDX-License-Identifier: BSD-3-Clause
 * Datasets as HDF5 has them: opened with care, their shapes, and the names of their types.
 *
 * Floor: io; included by src/io/h5/ and tests only. */
#ifndef IO_H5_DATASET_H
#define IO_H5_DATASET_H

#include "io/h5/h5_impl.h"

/* Open a dataset for reading, foreign or hostile ones too.  Data in other files and shapes far
 * larger than what is stored are refused.  The chunk cache holds a row of chunks, and one chunk at
 * least. */
int h5_dataset_open(const struct h5_file *f, const char *object, hid_t *dataset);

/* *rank and shape[capacity] <- those of a dataspace, as many dimensions as shape holds; sizes that
 * do not fit gidx are refused. */
int h5_space_shape(hid_t space, const char *object, int capacity, int *rank, gidx *shape);

/* Our name of an HDF5 type; *swap <- whether its byte order is not the machine's. */
enum h5_type h5_type_of(hid_t type, int *swap);
/* The same for who reads numbers: unsigned integers of 64 bits are read as signed ones, of which
 * HDF5 makes those that are too large the largest. */
enum h5_type h5_number_type(hid_t type, int *swap);
/* Size of a value, and HDF5's type of it in memory (negative for the 16-bit floats). */
size_t h5_type_bytes(enum h5_type type);
hid_t h5_type_native(enum h5_type type);

#endif
