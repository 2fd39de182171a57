/* SPDX-License-Identifier: BSD-3-Clause
 * Where the frames of a state are stored: in each rank's own memory, or once per node, shared by
 * its ranks.
 *
 * Floor: refit.
 *
 * If frames are shared, each rank of a node writes atoms own_first .. own_first + own_count - 1,
 * and reads all.  If they are not, every rank writes all.  So code that writes only own atoms,
 * between two calls of refit_frames_sync(), is right in both cases. */
#ifndef REFIT_FRAMES_H
#define REFIT_FRAMES_H

#include "refit/state.h"

/* task->shares <- 1 if frames are stored once per node, otherwise 0.  It is 0 if how is "no", or if
 * no node has several ranks.  If the ranks of a node cannot share the memory, "auto" gives 0, and
 * the log says why; "yes" gives ERR_MEMORY.  Collective. */
#define SHARE_CHOICES "auto|yes|no"
int refit_frames_choose(struct refit_task *task, struct comm *c, const char *how);

/* Bytes of the frames, and of the table if there is one. */
gidx refit_frames_bytes(const struct refit_state *f);

/* Share the memory if the task says so, and set which rank writes which atoms.  Collective, like
 * the functions below. */
int refit_frames_open(struct refit_state *f);
void refit_frames_close(struct refit_state *f);

/* Wait for the ranks of this node.  After the call they see what any of them wrote before it, and
 * may overwrite what was read before it.  Does nothing if frames are not shared. */
int refit_frames_sync(struct refit_state *f);

/* The table <- the frames, rounded to f32. */
int refit_frames_table(struct refit_state *f);

/* Send the frames of rank 0 to all. */
int refit_frames_send(struct refit_state *f);

#endif
