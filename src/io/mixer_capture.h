/* SPDX-License-Identifier: BSD-3-Clause
 * Captures of a gated delta net: tokens of sequences, and a pool of states.
 *
 * Floor: io.  Reading is not collective: every rank opens the file itself and reads its own part.
 * doc/formats.md has what a capture holds. */
#ifndef IO_MIXER_CAPTURE_H
#define IO_MIXER_CAPTURE_H

#include "base/memory.h"
#include "io/h5/h5.h"
#include "model/capture.h"

struct mixer_input {
  struct mixer_source source;
  char path[4096];
  struct h5_file h5;
  struct h5_array x, q, k, v, g, beta, s, taps; /* x, or q, k and v */
  struct arena arena;
  float *piece; /* [piece_floats] of q, k and v; owned */
  gidx piece_floats;
};
/* Open a capture by name; a folder stands for its capture.h5.  mixer_input_close() follows also
 * when it fails.  ERR_INPUT: as capture_input_open(). */
int mixer_input_open(struct mixer_input *c, const char *name);
void mixer_input_close(struct mixer_input *c);

#endif
