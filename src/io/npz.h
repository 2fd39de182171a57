/* SPDX-License-Identifier: BSD-3-Clause
 * NumPy's .npz files: an archive of ZIP whose members are .npy files, as tensors by name.
 *
 * Floor: io.  Read are archives as numpy.savez writes them, where members are stored as they are;
 * those of numpy.savez_compressed are refused.  Nothing of the file is trusted: the directory and
 * what stands before each member have to agree, members must not overlap, and each has to have the
 * checksum that the directory says. */
#ifndef IO_NPZ_H
#define IO_NPZ_H

#include "io/safetensors.h"

/* Open a file, and find its members: as tensors_open().  A member whose values are not floats is in
 * the table, and only refused where it is read. */
int npz_open(struct flat_file *f, struct tensor_table *t, const char *path);

#endif
