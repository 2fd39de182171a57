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

static inline void active_parallel(struct active *a, void (*task)(void *self, gidx part))
{
  team_run((int)imax(a->threads, 1), ceil_div(a->n, ACTIVE_CHUNK), task, a);
}

/* What the device does for rows x[n][p] of a->n, and all atoms. */
struct train_codes_job active_job(const struct active *a, const float *x);
/* Lists of the scores above the cut, unless there is no room for them, which then is refused. */
int active_lists_get(struct active *a, struct train_codes_job job, const struct batch_cut *cut,
                     gidx ties);
int active_room_check(const struct active *a);
/* Entries are those of the lists, with a cut of all rows those that it takes; none where there was
 * no room for the lists. */
void active_lists_take(struct active *a, const struct score_cut *cut);

#endif
