/* SPDX-License-Identifier: BSD-3-Clause
 * Why a dataset cannot be read: filters that packed it and are missing here.
 *
 * Floor: io; included by src/io/h5/ and tests only. */
#ifndef IO_H5_FILTERS_H
#define IO_H5_FILTERS_H

#include "io/h5/h5_impl.h"

/* Fail with the cause of the last failed call, which read a dataset; a filter that this library
 * lacks is named, with what to do. */
int h5_read_fail(hid_t dataset, const char *object, const char *path);

#endif
