/* SPDX-License-Identifier: BSD-3-Clause
 * Variable-length texts, which HDF5 stores as descriptors that point into a heap of the file.
 *
 * Floor: io; included by src/io/h5/ only. */
#ifndef IO_H5_VLEN_TEXT_H
#define IO_H5_VLEN_TEXT_H

#include "io/h5/h5_impl.h"

/* Descriptor of a variable-length text as it is stored: its length, the address of a heap
 * collection, and the index of the object there. */
struct h5_text {
  unsigned char bytes[16];
};
/* The memory type with which HDF5 reads texts as descriptors; negative on failure. */
hid_t h5_text_type(void);
/* *out <- the text, with a NUL at its end; *length <- its bytes; the caller frees *out.  The heap
 * has no checksum, and HDF5 trusts a damaged heap.  So the heap is read and checked here. */
int h5_text_fetch(const struct h5_file *f, const struct h5_text *text, char **out, size_t *length);

#endif
