/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta synth --systems: systems.h5 with arrow systems of given shapes, some of them indefinite
 * or ill-conditioned.
 *
 * Floor: cli. */
#ifndef CLI_SYNTH_SYSTEMS_H
#define CLI_SYNTH_SYSTEMS_H

#include "cli/command.h"

struct systems_options {
  gidx systems, system_rows;
  const char *lengths;
  idx border;
  real indefinite, ill;
  int mixed;
};
enum { SYSTEMS_ROWS = 7 };
extern const struct option_row systems_rows[SYSTEMS_ROWS];

/* Make systems.h5 in the folder of --output.  frame: rows and columns of a diagonal block.  With
 * dry_run print only its size and the memory.  Collective. */
int systems_make(struct run *run, const struct output_options *output,
                 const struct systems_options *o, idx frame, gidx seed, int dry_run);

#endif
