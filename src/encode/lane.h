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

/* Rows wait in slots: float [task->block][p] of each, to be filled in. */
enum { LANE_SLOTS = 3 };
float *lane_rows(struct lane *lane, int slot);

/* Subtract the task's mean from n of them. */
void lane_center(struct lane *lane, int slot, gidx first, gidx n);

/* n rows of a slot from the first on, less the mean, are as they are to be: to the device.  They
 * are finite, of a norm up to LANE_NORM: no score of them overflows, of frames of MAX_FRAME vectors
 * neither.  Another thread may do so while lane_pass() computes with other slots. */
#define LANE_NORM 1e37
int lane_put(struct lane *lane, int slot, gidx first, gidx n);
/* A GPU takes rows also from memory of the caller, x [n][p], which is pinned from any thread. */
int lane_is_gpu(const struct lane *lane);
void lane_pin(struct lane *lane, float *x, gidx rows);
void lane_unpin(struct lane *lane, float *x);
int lane_put_from(struct lane *lane, int slot, gidx first, gidx n, const float *x);

/* Two blocks of rows are in work, which alternate: while one is routed the lists of the other are
 * merged.  So a pass is lane_advance(), then lane_pass(), and a block of one round ends with the
 * advance that begins the second pass behind its first.
 *
 * *out <- the results of the block that ends, until the next lane_advance(), as has [n] of quality,
 * where codes are solved; out->n = 0: none ends.  Its slot is free then. */
int lane_advance(struct lane *lane, struct support_block *out);
/* May the next pass begin a block? */
int lane_is_free(const struct lane *lane);
/* Begin with n rows of a slot, n = 0: with none, and route. */
int lane_pass(struct lane *lane, int slot, idx n);

/* All passes of the first n rows of slot 0, which were put; no others are in work. */
int lane_run(struct lane *lane, idx n, struct support_block *out);
struct row_quality *lane_quality(struct lane *lane);

/* The kind of its device, the instruction set of its loops, or the GPU, and the decoder cosine of
 * its atoms: NaN where these are more than task->max_cosine. */
const char *lane_device(const struct lane *lane);
const char *lane_variant(const struct lane *lane);
int lane_cosine(struct lane *lane, real *cosine);

int lane_close(struct lane *lane);

#endif
