/* SPDX-License-Identifier: BSD-3-Clause
 * Captures of a gated delta net: tokens of sequences, and a pool of states.
 *
 * Floor: io.  Reading is not collective: every rank opens the file itself and reads its own part.
 * doc/formats.md lists the contents of a capture. */
#ifndef IO_MIXER_CAPTURE_H
#define IO_MIXER_CAPTURE_H

#include "base/memory.h"
#include "io/h5/h5.h"
#include "model/capture.h"

struct mixer_input {
  struct mixer_source source;
  char path[4096];
  struct h5_file h5;
  struct h5_array x, q, k, v, g, beta, s, taps; /* either x, or q, k and v */
  struct arena arena;
  float *piece; /* [piece_floats] part of q, k and v in memory; owned */
  gidx piece_floats;
};
/* Open a capture by name; a folder stands for its capture.h5.  Call mixer_input_close() also after
 * a failure.  ERR_IO, ERR_INPUT: as for capture_input_open(). */
int mixer_input_open(struct mixer_input *c, const char *name);
void mixer_input_close(struct mixer_input *c);

#endif
