/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of an encoding that are kept in memory: first a sink of blocks, then a source.
 *
 * Floor: look.  Not collective: rank 0 only. */
#ifndef LOOK_KEPT_CODES_H
#define LOOK_KEPT_CODES_H

#include "base/memory.h"
#include "model/results.h"
#include "model/supports.h"

struct kept_codes {
  gidx n;       /* rows */
  idx s;        /* atoms per row */
  idx *atoms;   /* [n][s] */
  float *codes; /* [n][s] */
  struct support_sink sink;
  struct support_source source;
  struct arena arena;
};

/* Allocate for n rows of s of k atoms, d = 1.  ERR_MEMORY. */
int kept_codes_open(struct kept_codes *kept, gidx n, idx s, idx k);
void kept_codes_close(struct kept_codes *kept);

#endif
