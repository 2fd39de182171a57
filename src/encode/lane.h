/* SPDX-License-Identifier: BSD-3-Clause
 * A few rows at a time through an encoder that stays open: what `encode` says of them, bit for bit.
 *
 * Floor: encode.  One rank.  A support, its scores and codes depend on the
 * row alone (doc/determinism.md), so it does not matter which rows come together. */
#ifndef ENCODE_LANE_H
#define ENCODE_LANE_H

#include "encode/encode.h"
#include "model/codes.h"

struct lane; /* lane.c */

/* Open the device with the dictionary on it.  Of the task's rows the number of columns counts, and
 * their number is that of a call at most, as is task->block.  The task, and c, which has one rank,
 * are borrowed until lane_close().  ERR_INPUT: an atom is not of unit norm, and others as of
 * encode_run(). */
int lane_open(struct lane **lane, const struct encode_task *task, struct comm *c);

/* Of the dictionary, as results have it. */
uint64_t lane_dictionary(const struct lane *lane);

/* The rows of the next call: float [task->block][p], to be filled in. */
float *lane_rows(struct lane *lane);

/* Subtract the task's mean from n of them. */
void lane_center(struct lane *lane, gidx first, gidx n);

/* Route the first n of these, less the mean, and solve their codes; *out has the results until the
 * next call, as has [n] of quality, where codes are solved.  Rows are finite, of a norm up to
 * LANE_NORM: no score of them overflows, of frames of MAX_FRAME vectors neither. */
#define LANE_NORM 1e37
int lane_run(struct lane *lane, idx n, struct support_block *out);
struct row_quality *lane_quality(struct lane *lane);

/* The instruction set of its loops, and the decoder cosine of its atoms: NaN where these are
 * more than task->max_cosine. */
const char *lane_variant(const struct lane *lane);
int lane_cosine(struct lane *lane, real *cosine);

int lane_close(struct lane *lane);

#endif
