/* SPDX-License-Identifier: BSD-3-Clause
 * How threads divide the rows when lists are taken (active.c) and codes are solved
 * (active_solve.c).
 *
 * Floor: encode; included by src/encode/active*.c only. */
#ifndef ENCODE_ACTIVE_SOLVE_H
#define ENCODE_ACTIVE_SOLVE_H

#include "base/num.h"
#include "base/team.h"
#include "encode/active.h"

/* Task `part` has rows part * ACTIVE_CHUNK .. active_end(a, part) - 1 of a->n. */
enum { ACTIVE_CHUNK = 128 };

static inline idx active_end(const struct active *a, gidx part)
{
  return (idx)imin((part + 1) * ACTIVE_CHUNK, a->n);
}

static inline void active_parallel(struct active *a, void (*task)(void *self, gidx part))
{
  team_run((int)imax(a->threads, 1), ceil_div(a->n, ACTIVE_CHUNK), task, a);
}

/* The device's job for rows x[n][p], n = a->n, and all atoms. */
struct train_codes_job active_job(const struct active *a, const float *x);
/* Get the lists of the scores above the cut, and of the first `ties` that equal it.  If there is no
 * room, a->found is more than a->entries, and active_room_check() returns ERR_INTERNAL. */
int active_lists_get(struct active *a, struct train_codes_job job, const struct batch_cut *cut,
                     gidx ties);
int active_room_check(const struct active *a);
/* Entries <- the entries of the lists, of each row the ACTIVE_MOST with the largest scores.  With a
 * cut, only entries that the cut takes.  If there was no room for the lists, there are no
 * entries. */
void active_lists_take(struct active *a, const struct score_cut *cut);

#endif
