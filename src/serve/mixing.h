/* SPDX-License-Identifier: BSD-3-Clause
 * Rows that a gated delta net makes of the tokens of clients, before a step takes them.
 *
 * Floor: serve.  Used by the main thread, on its CPUs.  The bits are the same on every device, and
 * do not depend on how a stream is cut into requests (model/gated_delta.h).  Each stream has a slot
 * for its state. */
#ifndef SERVE_MIXING_H
#define SERVE_MIXING_H

#include "base/memory.h"
#include "device/mixer.h"
#include "model/capture.h"
#include "serve/stream.h"

/* Tokens of a request in one call of the mixer. */
struct mixing_piece {
  struct request *request;
  gidx first, n;
};

struct mixing {
  const struct mixer_source *source; /* its net and weights; borrowed; NULL: there is none */
  const struct streams *streams;     /* borrowed */
  struct device device;
  struct mixer mixer;
  struct buffer x, g, beta, conv, conv_bias, s, taps, o;
  struct mixing_piece *pieces; /* [streams] pieces of the call */
  gidx *start;                 /* [streams + 1] */
  idx *in, *out;               /* [streams] */
  idx n;
  gidx most; /* most tokens of a call */
  struct arena arena;
};

/* *bytes <- the memory for so many streams, and for a call of all of them. */
int mixing_memory(const struct mixer_source *source, idx streams, gidx *bytes);
/* threads and variant: of the CPU.  ERR_MEMORY. */
int mixing_open(struct mixing *m, const struct mixer_source *source, const struct streams *streams,
                int threads, const char *variant);
void mixing_close(struct mixing *m);

/* Add rows first .. first + n - 1 of a request.  They are there when mixing_end() has returned.  A
 * row that a lane refuses becomes zeros, and its request is given up. */
int mixing_add(struct mixing *m, struct request *r, gidx first, gidx n);
int mixing_end(struct mixing *m);

#endif
