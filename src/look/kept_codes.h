/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of an encoding that stay in memory: a sink of blocks, and then a source.
 *
 * Floor: look.  Not collective: of rank 0. */
#ifndef LOOK_KEPT_CODES_H
#define LOOK_KEPT_CODES_H

#include "base/memory.h"
#include "model/results.h"
#include "model/supports.h"

struct kept_codes {
  gidx n;       /* rows */
  idx s;        /* atoms of each */
  idx *atoms;   /* [n][s] */
  float *codes; /* [n][s] */
  struct support_sink sink;
  struct support_source source;
  struct arena arena;
};

/* Room for n rows of s of k atoms, d = 1.  ERR_MEMORY. */
int kept_codes_open(struct kept_codes *kept, gidx n, idx s, idx k);
void kept_codes_close(struct kept_codes *kept);

#endif
