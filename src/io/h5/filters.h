/* SPDX-License-Identifier: BSD-3-Clause
 * The message for a dataset that needs a filter which this HDF5 library lacks.
 *
 * Floor: io; included by src/io/h5/ and tests only. */
#ifndef IO_H5_FILTERS_H
#define IO_H5_FILTERS_H

#include "io/h5/h5_impl.h"

/* Call this after reading a dataset failed.  Fail with that cause; if a filter is missing, the
 * message names it and says what to do. */
int h5_read_fail(hid_t dataset, const char *object, const char *path);

#endif
