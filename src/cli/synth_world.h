/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta synth --kind world: rows.h5, dictionary.h5 and truth.h5 of a synthetic world.
 *
 * Floor: cli. */
#ifndef CLI_SYNTH_WORLD_H
#define CLI_SYNTH_WORLD_H

#include "cli/command.h"

struct world_options {
  idx trees;
  real most, least; /* probabilities that the first and the last feature fire */
  gidx first_row;
};
enum { WORLD_ROWS = 4 };
extern const struct option_row world_rows_table[WORLD_ROWS];

/* Further options of `synth`; 0 stands for a default, except in seed. */
struct world_size {
  gidx n_rows, seed;
  idx atoms, columns, block;
};

/* Make the three files in the folder of --output.  With dry_run print only their sizes and the
 * memory.  Collective. */
int world_make(struct run *run, const struct output_options *output, const struct world_options *o,
               const struct world_size *size, int dry_run);

#endif
