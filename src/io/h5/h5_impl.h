/* SPDX-License-Identifier: BSD-3-Clause
 * What all .c files of this folder share: HDF5's header, its errors, and access to files.
 *
 * Floor: io; included by src/io/h5/ and tests only.  See also dataset.h, chunks.h and
 * vlen_text.h. */
#ifndef IO_H5_H5_IMPL_H
#define IO_H5_H5_IMPL_H

#define H5Dread_chunk_vers 1 /* version 1 of H5Dread_chunk(); HDF5 2 has a later version, too */
/* Use the functions and structs of HDF5 1.10 with later versions too. */
#define H5_USE_110_API
#include <hdf5.h>

#include "io/h5/error.h"
#include "io/h5/h5.h"

enum { BLOCK_BYTES = 1 << 20 }; /* approximate size of a block of data in memory */

/* h5_access(): a new property list of this class (link or dataset access) with which HDF5 follows
 * no link to another file.  h5_links(): such a list for link access, made once and shared. */
hid_t h5_access(hid_t class);
hid_t h5_links(void);

/* Write or replace an attribute of n values, or with n < 0 a scalar; negative on failure. */
herr_t h5_attribute_put(hid_t object, const char *name, hid_t stored, hid_t memory, int n,
                        const void *value);
/* The same for 64 hexadecimal digits, as a text of fixed length. */
herr_t h5_attribute_put_hash(hid_t object, const char *name, const char *digits);

/* Values of an entry of the first dimension. */
gidx h5_entry_values(const struct h5_array *a);

/* Create the missing groups of a path; is_whole: the last name of the path is a group too. */
int h5_groups_create(const struct h5_file *f, const char *object, int is_whole);

#endif
