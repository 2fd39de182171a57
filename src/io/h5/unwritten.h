/* SPDX-License-Identifier: BSD-3-Clause
 * Entries of a dataset that were never written, and are read as its fill value.
 *
 * Floor: io; included by src/io/h5/ only. */
#ifndef IO_H5_UNWRITTEN_H
#define IO_H5_UNWRITTEN_H

#include "io/h5/h5_impl.h"

/* Warn where chunks of an array that was opened have no storage, or all of it has none: entries of
 * the first dimension are counted.  Once for each dataset, from rank 0; what HDF5 cannot say gives
 * no warning. */
void h5_unwritten_warn(const struct h5_array *a);

#endif
