/* SPDX-License-Identifier: BSD-3-Clause
 * Rows that a gated delta net makes of clients' tokens, before a step has them.
 *
 * Floor: serve.  Of the main thread, on its CPUs; bits are those of any device, wherever a stream
 * is cut in time (model/gated_delta.h).  States stay in slots, one for each stream. */
#ifndef SERVE_MIXING_H
#define SERVE_MIXING_H

#include "base/memory.h"
#include "device/mixer.h"
#include "model/capture.h"
#include "serve/stream.h"

/* Tokens of a request that a call takes. */
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
  struct mixing_piece *pieces; /* [streams] of the call */
  gidx *start;                 /* [streams + 1] */
  idx *in, *out;               /* [streams] */
  idx n;
  gidx most; /* tokens of a call */
  struct arena arena;
};

/* *bytes <- what so many streams take, and a call of them. */
int mixing_memory(const struct mixer_source *source, idx streams, gidx *bytes);
/* threads and variant: of the CPU.  ERR_MEMORY. */
int mixing_open(struct mixing *m, const struct mixer_source *source, const struct streams *streams,
                int threads, const char *variant);
void mixing_close(struct mixing *m);

/* Rows first .. first + n - 1 of a request are to be made; they are when mixing_end() is back.  A
 * row that a lane does not take gives the request up, and is zeros. */
int mixing_add(struct mixing *m, struct request *r, gidx first, gidx n);
int mixing_end(struct mixing *m);

#endif
