/* SPDX-License-Identifier: BSD-3-Clause
 * How rows are shared out to threads where their lists are taken and their codes solved, which is
 * active_solve() of active.h.
 *
 * Floor: encode; included by src/encode/active*.c only. */
#ifndef ENCODE_ACTIVE_SOLVE_H
#define ENCODE_ACTIVE_SOLVE_H

#include "base/num.h"
#include "base/team.h"
#include "encode/active.h"

/* A task has the rows ACTIVE_CHUNK part .. active_end(a, part) - 1 of those at hand. */
enum { ACTIVE_CHUNK = 128 };

static inline idx active_end(const struct active *a, gidx part)
{
  return (idx)imin((part + 1) * ACTIVE_CHUNK, a->n);
}

static inline void active_share(struct active *a, void (*task)(void *self, gidx part))
{
  team_run((int)imax(a->threads, 1), ceil_div(a->n, ACTIVE_CHUNK), task, a);
}

#endif
