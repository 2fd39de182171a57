/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of an encoding in memory.  The sink stores them, block by block.  Then the source reads
 * them.
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

/* Allocate memory for n rows with s codes each, of a dictionary of k atoms with d = 1.  ERR_MEMORY.
 * Call kept_codes_close() also after a failure. */
int kept_codes_open(struct kept_codes *kept, gidx n, idx s, idx k);
void kept_codes_close(struct kept_codes *kept);

#endif
