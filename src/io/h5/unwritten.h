/* SPDX-License-Identifier: BSD-3-Clause
 * Entries of a dataset that were never written, and are read as its fill value.
 *
 * Floor: io; included by src/io/h5/ only. */
#ifndef IO_H5_UNWRITTEN_H
#define IO_H5_UNWRITTEN_H

#include "io/h5/h5_impl.h"

/* Warn if some or all values of an opened array have no storage.  The warning says how many entries
 * of the first dimension these are.  Rank 0 warns once per dataset.  There is no warning if HDF5
 * cannot tell which chunks have storage. */
void h5_unwritten_warn(const struct h5_array *a);

#endif
