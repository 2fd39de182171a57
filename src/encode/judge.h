/* SPDX-License-Identifier: BSD-3-Clause
 * How well given codes describe rows, whatever found them.
 *
 * Floor: encode.  Knows no files.  Not collective: one rank, all its threads. */
#ifndef ENCODE_JUDGE_H
#define ENCODE_JUDGE_H

#include "base/memory.h"
#include "comm/comm.h"
#include "model/results.h"
#include "model/rows.h"
#include "model/supports.h"

struct evaluate_task {
  const struct row_source *rows;
  const struct support_source *supports; /* of these rows, with codes */
  const real *mean;                      /* [p]; NULL: none */
  const float *atoms;                    /* [k][d][p], of any norm */
  idx k, d, p;
  int threads;
};

/* Fill in all metrics except the decoder's cosine (doc/numerics.md section 7).  m->density lives in
 * the arena.  c: a communicator of one rank.  ERR_INPUT names what is wrong with the supports. */
int codes_metrics(const struct evaluate_task *task, struct comm *c, struct arena *arena,
                  struct metrics *m);

#endif
