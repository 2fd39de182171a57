/* SPDX-License-Identifier: BSD-3-Clause
 * Colour classes: classes.h5.
 *
 * Floor: io.  Not collective. */
#ifndef IO_CLASSES_H
#define IO_CLASSES_H

#include "io/identity.h"
#include "io/outputs.h"
#include "io/schema.h"
#include "model/classes.h"

extern const struct file_kind classes_kind;

/* Write and publish.  lower_bound is the largest number of atoms in a row; no colouring has fewer
 * classes. */
int classes_write(const char *path, const struct classes *c, gidx lower_bound,
                  const struct identity *inputs, const struct run_fact *facts, int n_facts);

/* Read /class_offsets and /class_atoms into *c.  The file may list the atoms of a class in any
 * order; in *c they ascend.  ERR_INPUT: these are not classes of k atoms, an atom occurs twice, or
 * /color exists and disagrees. */
int classes_read(struct classes *c, const struct h5_file *file, idx k);

#endif
