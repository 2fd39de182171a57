/* SPDX-License-Identifier: BSD-3-Clause
 * Encode a few rows at a time, on a device that stays open, with the results of `encode`, bit for
 * bit.
 *
 * Floor: encode.  One rank.  Supports, scores and codes depend on the row alone
 * (doc/determinism.md), so it does not matter which rows come together. */
#ifndef ENCODE_LANE_H
#define ENCODE_LANE_H

#include "encode/encode.h"
#include "model/codes.h"

struct lane; /* lane.c */

/* Open the device with the dictionary on it.  Of task->rows only p and n are used; n and
 * task->block are the largest number of rows of a call.  The task and c, which has one rank, are
 * borrowed until lane_close().  ERR_INPUT when an atom is not of unit norm; otherwise as
 * encode_run(). */
int lane_open(struct lane **lane, const struct encode_task *task, struct comm *c);

/* The hash of the dictionary, as in results. */
uint64_t lane_dictionary(const struct lane *lane);

/* Rows wait in slots of float [task->block][p], which the caller fills. */
enum { LANE_SLOTS = 3 };
float *lane_rows(struct lane *lane, int slot);

/* Subtract the task's mean from rows first .. first + n - 1 of a slot. */
void lane_center(struct lane *lane, int slot, gidx first, gidx n);

/* Copy rows first .. first + n - 1 of a slot to the device.  The mean must have been subtracted.
 * The rows must be finite, with norms up to LANE_NORM: then no score overflows, even of frames of
 * MAX_FRAME vectors.  Another thread may call this while lane_pass() computes with other slots. */
#define LANE_NORM 1e37
int lane_put(struct lane *lane, int slot, gidx first, gidx n);
/* A GPU can also copy rows from the caller's memory, x[n][p].  Any thread may pin that memory. */
int lane_is_gpu(const struct lane *lane);
void lane_pin(struct lane *lane, float *x, gidx rows);
void lane_unpin(struct lane *lane, float *x);
int lane_put_from(struct lane *lane, int slot, gidx first, gidx n, const float *x);

/* Two blocks of rows alternate: while one is routed, the lists of the other are merged.  A pass is
 * lane_advance(), then lane_pass().  A block of one round begins in one pass, and ends with the
 * lane_advance() two passes later.
 *
 * *out <- the results of the block that ends; lane_quality() has the quality of its rows if codes
 * are solved.  They are valid until the next lane_advance().  The slot of this block is free
 * from now on.  out->n = 0: no block ends. */
int lane_advance(struct lane *lane, struct support_block *out);
/* Can the next pass begin a block? */
int lane_is_free(const struct lane *lane);
/* Begin a block of n rows of a slot, unless n is 0; then route. */
int lane_pass(struct lane *lane, int slot, idx n);

/* All passes of the first n rows of slot 0, after lane_put().  No other block may be in flight. */
int lane_run(struct lane *lane, idx n, struct support_block *out);
struct row_quality *lane_quality(struct lane *lane);

/* lane_device(): the kind of the device.  lane_variant(): its instruction set, or the name of the
 * GPU.  lane_cosine(): the decoder cosine of the atoms; NaN if there are more than
 * task->max_cosine. */
const char *lane_device(const struct lane *lane);
const char *lane_variant(const struct lane *lane);
int lane_cosine(struct lane *lane, real *cosine);

int lane_close(struct lane *lane);

#endif
