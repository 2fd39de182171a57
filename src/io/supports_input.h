/* SPDX-License-Identifier: BSD-3-Clause
 * Supports named on the command line.
 *
 * Floor: io.  Not collective: every rank opens the file itself and reads its own part. */
#ifndef IO_SUPPORTS_INPUT_H
#define IO_SUPPORTS_INPUT_H

#include "base/types.h"
#include "model/supports.h"

struct supports_input_state;

struct supports_input {
  struct support_source source;
  const char *file;  /* borrowed: the name without /group */
  idx top_s, rounds; /* as the file says; of a foreign file -1 and 1 */
  real rho;          /* penalty with which the codes were solved; 0 when not said */
  real *mean;        /* [mean_length] subtracted from the rows; NULL: nothing was; owned */
  gidx mean_length;
  gidx sweeps;                        /* of refit so far */
  real explained_variance;            /* as the file says; NaN: it does not */
  struct supports_input_state *state; /* owned */
};

/* Open FILE[:/GROUP], a CSR matrix as encode, scipy or AnnData write it; the default is /supports.
 * ERR_IO: cannot open; ERR_INPUT: no such group, missing or wrong arrays or attributes, damaged. */
int supports_open(struct supports_input *f, const char *name);
void supports_input_close(struct supports_input *f);

#endif
