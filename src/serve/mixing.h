/* SPDX-License-Identifier: BSD-3-Clause
 * Makes the rows of a step from tokens of clients, with a gated delta net.
 *
 * Floor: serve.  Used by the main thread of rank 0, on CPUs.  Each stream has a slot for its state.
 * So the bits of a row do not depend on how the client divides the stream into requests
 * (model/gated_delta.h). */
#ifndef SERVE_MIXING_H
#define SERVE_MIXING_H

#include "base/memory.h"
#include "device/mixer.h"
#include "model/capture.h"
#include "serve/stream.h"

/* Tokens first .. first + n - 1 of a request, in one call of the mixer. */
struct mixing_piece {
  struct request *request;
  gidx first, n;
};

struct mixing {
  const struct mixer_source *source; /* its net and weights; borrowed; NULL: there is none */
  const struct streams *streams;     /* borrowed */
  struct device device;
  struct mixer mixer;
  struct buffer x, g, beta, conv, conv_bias, s, taps, o; /* as in struct mixer_job */
  struct mixing_piece *pieces;                           /* [streams] pieces of the call */
  gidx *start;   /* [streams + 1] first token of each piece in the call */
  idx *in, *out; /* [streams] slots of each piece, as in struct delta_slots */
  idx n;         /* pieces of the call */
  gidx most;     /* most tokens of a call */
  struct arena arena;
};

/* *bytes <- the memory for `streams` streams, and for a call with a piece of each stream. */
int mixing_memory(const struct mixer_source *source, idx streams, gidx *bytes);
/* threads, variant: as in struct device_options, for the CPU.  ERR_MEMORY; otherwise as
 * device_open() and mixer_open().  streams is borrowed. */
int mixing_open(struct mixing *m, const struct mixer_source *source, const struct streams *streams,
                int threads, const char *variant);
void mixing_close(struct mixing *m);

/* Add tokens first .. first + n - 1 of a request.  Their rows are in r->rows after mixing_end().  A
 * row that fails row_check() becomes zeros, and its request is refused. */
int mixing_add(struct mixing *m, struct request *r, gidx first, gidx n);
int mixing_end(struct mixing *m);

#endif
