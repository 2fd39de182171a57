/* SPDX-License-Identifier: BSD-3-Clause
 * The directions of all atoms, which all ranks find before rank 0 works alone.
 *
 * Floor: terminal; included by src/terminal only. */
#ifndef TERMINAL_DIRECTIONS_H
#define TERMINAL_DIRECTIONS_H

#include "refit/atom_batch.h"
#include "terminal/terminal_impl.h"

/* The shapes of the refit from whose state the directions are found. */
struct refit_task terminal_refit_task(const struct terminal_task *t);

/* Find the directions of all atoms, and keep them on rank 0; the state of the refit is freed.
 * Collective. */
int terminal_directions(struct terminal *w);

/* Allocate w->e and w->direction, for the largest possible number of directions. */
int terminal_directions_alloc(struct terminal *w);

/* *bytes <- an upper bound of the memory for finding the directions of a batch, without the state.
 * A function of type batch_bytes_of (refit/atom_batch.h). */
int terminal_batch_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                         gidx *bytes);

#endif
