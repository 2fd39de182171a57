/* SPDX-License-Identifier: BSD-3-Clause
 * For every atom, the rows with the largest |code|: top.h5.
 *
 * Floor: io.  Not collective; rank 0 alone writes. */
#ifndef IO_TOP_H
#define IO_TOP_H

#include "io/outputs.h"
#include "io/schema.h"
#include "model/identity.h"
#include "model/top.h"

extern const struct file_kind top_kind;

/* Write and publish the lists, which were made from supports of n_rows rows. */
int top_write(const char *path, const struct top_rows *top, gidx n_rows,
              const struct identity *inputs, const struct run_fact *facts, int n_facts);

#endif
