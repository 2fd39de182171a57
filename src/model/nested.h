/* SPDX-License-Identifier: BSD-3-Clause
 * Nested widths: the first atoms alone have to describe rows, too (N.47), after Bussmann and others
 * 2025.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_NESTED_H
#define MODEL_NESTED_H

#include "base/types.h"

enum { NESTED_MOST = 16 };

/* Widths that rise; block b has atoms end[b - 1] .. end[b] - 1.  count 0: one block of all. */
struct nested {
  int count;
  idx end[NESTED_MOST]; /* [count]; the last one is K */
};

/* Read "128,512,4096".  ERR_USAGE where these are no sizes that rise to k. */
int nested_read(const char *text, idx k, struct nested *nested);

/* text <- "128,512,4096"; "" where there are none. */
void nested_text(const struct nested *nested, char text[256]);

/* How many blocks; the atoms of one, of k. */
int nested_blocks(const struct nested *nested);
void nested_block(const struct nested *nested, idx k, int block, idx *first, idx *end);

/* z[blocks][p], what the codes of each block of a row give, becomes the errors of the widths. */
void nested_errors(float *z, const float *x, int blocks, idx p);
/* e[blocks][p], these times the factor, becomes what each block's codes and atoms are moved by. */
void nested_suffix(float *e, int blocks, idx p);

#endif
