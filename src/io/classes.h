/* SPDX-License-Identifier: BSD-3-Clause
 * Colour classes in a file of their own, classes.h5.
 *
 * Floor: io.  Not collective. */
#ifndef IO_CLASSES_H
#define IO_CLASSES_H

#include "io/outputs.h"
#include "model/classes.h"

/* Write and publish; lower_bound is the largest number of atoms in a row. */
int classes_write(const char *path, const struct classes *c, gidx lower_bound,
                  const struct run_fact *facts, int n_facts);

/* Read /class_offsets and /class_atoms, in any order inside a class, into *c (ascending).
 * ERR_INPUT: not the classes of k atoms, an atom twice, or /color, where it is there, differs. */
int classes_read(struct classes *c, const char *file, idx k);

#endif
