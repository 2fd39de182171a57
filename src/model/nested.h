/* SPDX-License-Identifier: BSD-3-Clause
 * Nested widths: the first atoms of a dictionary must also describe rows without the other atoms
 * (N.47), after Bussmann and others 2025.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_NESTED_H
#define MODEL_NESTED_H

#include "base/types.h"

enum { NESTED_MOST = 16 };

/* Rising widths; block b has atoms end[b - 1] .. end[b] - 1.  count 0: one block of all atoms. */
struct nested {
  int count;
  idx end[NESTED_MOST]; /* [count]; the last one is K */
};

/* Read "128,512,4096".  ERR_USAGE unless the numbers rise to k. */
int nested_read(const char *text, idx k, struct nested *nested);

/* text <- "128,512,4096"; "" if there are no widths. */
void nested_text(const struct nested *nested, char text[256]);

/* nested_blocks() returns the number of blocks.  nested_block() gives the atoms *first .. *end - 1
 * of one block; k: number of all atoms. */
int nested_blocks(const struct nested *nested);
void nested_block(const struct nested *nested, idx k, int block, idx *first, idx *end);

/* z[blocks][p], the contribution of each block's codes to a row, becomes the error of each
 * width. */
void nested_errors(float *z, const float *x, int blocks, idx p);
/* e[blocks][p], these errors times a factor, becomes for each block the sum of the errors of all
 * widths that contain the block. */
void nested_suffix(float *e, int blocks, idx p);

#endif
