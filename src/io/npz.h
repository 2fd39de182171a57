/* SPDX-License-Identifier: BSD-3-Clause
 * NumPy's .npz files: ZIP archives whose members are .npy files, read as tensors by name.
 *
 * Floor: io.  It reads archives of numpy.savez, whose members are not compressed, and refuses those
 * of numpy.savez_compressed.  Nothing in the file is trusted: the directory and the local header of
 * each member must agree, members must not overlap, and each must have the checksum in the
 * directory. */
#ifndef IO_NPZ_H
#define IO_NPZ_H

#include "io/safetensors.h"

/* Open a file and find its members; otherwise as tensors_open().  A member whose values are not
 * floats is in the table, and is refused only when it is read. */
int npz_open(struct flat_file *f, struct tensor_table *t, const char *path);

#endif
