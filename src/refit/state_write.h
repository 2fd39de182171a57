/* SPDX-License-Identifier: BSD-3-Clause
 * Giving a refit's state to the sinks that write files.
 *
 * Floor: refit.  Knows no files. */
#ifndef REFIT_STATE_WRITE_H
#define REFIT_STATE_WRITE_H

#include "model/results.h"
#include "model/sink.h"
#include "refit/state.h"

/* Give all supports and codes to the sink (used on rank 0), one sum block at a time.
 * Collective. */
int refit_state_supports_write(const struct refit_state *f, const struct support_sink *sink);

/* Give the frames to the sink, rounded to f32.  Not collective. */
int refit_state_frames_write(const struct refit_state *f, const struct matrix_sink *sink);

/* *bytes <- the largest peak memory of these functions, from a dry run of their allocations.  Not
 * collective. */
int refit_state_write_bytes(const struct refit_state *f, gidx *bytes);

#endif
