/* SPDX-License-Identifier: BSD-3-Clause
 * Where the frames of a state are: in each rank's own memory, or once a node, where its ranks share
 * them.
 *
 * Floor: refit.
 *
 * Of frames that are shared each rank of a node writes atoms of its own, own_first on, own_count of
 * them, and reads all; of frames that are not every rank writes all.  So code that writes own atoms
 * alone, between two calls of refit_frames_sync(), is right for both. */
#ifndef REFIT_FRAMES_H
#define REFIT_FRAMES_H

#include "refit/state.h"

/* Are frames to be once a node?  task->shares <- that, by `how`: "no", "auto", where several ranks
 * of a node can have the memory, or "yes", which is ERR_MEMORY where they cannot.  The log says why
 * not.  Collective. */
#define SHARE_CHOICES "auto|yes|no"
int refit_frames_choose(struct refit_task *task, struct comm *c, const char *how);

/* Bytes of the frames and of the table, if there is one. */
gidx refit_frames_bytes(const struct refit_state *f);

/* Share the memory where the task says so, and say who writes what.  Collective, as are those
 * below. */
int refit_frames_open(struct refit_state *f);
void refit_frames_close(struct refit_state *f);

/* What ranks of this node have written all of them read from here on, and what they have read may
 * be written. */
int refit_frames_sync(struct refit_state *f);

/* The table <- the frames, rounded to f32. */
int refit_frames_table(struct refit_state *f);

/* The frames that rank 0 has go to all. */
int refit_frames_send(struct refit_state *f);

#endif
