/* SPDX-License-Identifier: BSD-3-Clause
 * Arenas: many arrays, one lifetime, one free.
 *
 * Floor: base.
 *
 * A stage zeroes a struct arena, takes its arrays from it, and drops it whole.
 * Arrays start zeroed and on a 64-byte boundary. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include "base/types.h"

struct arena {
  struct arena_piece *pieces; /* owned */
  size_t bytes;               /* held now */
};

/* A new array of zeros on a 64-byte boundary, freed by free(); NULL: no memory.  One of 4 MB and
 * more is in pages of 2 MB where the system gives them for the asking: far fewer faults when it is
 * first written, and fewer misses when it is read here and there.  Each of these takes up to 2 MB
 * more of the address space, not of memory. */
void *memory_zeroed(size_t bytes);

/* Store in *(T **)pointer a new array of count items of size bytes; count 0 gives a valid pointer.
 * ERR_MEMORY names what could not be had. */
int arena_take(struct arena *arena, void *pointer, gidx count, size_t size);

/* Free everything taken; safe on a zeroed arena. */
void arena_free(struct arena *arena);

/* One array that grows: *(T **)pointer has at least count items afterwards, old content not kept.
 * Freed by free(). */
int array_reserve(void *pointer, gidx *room, gidx count, size_t size);

/* Largest resident size of this process so far, in bytes. */
gidx memory_peak(void);

/* Bytes that this process may still take: what the machine has left, or the limit of its address
 * space when that is less. */
gidx memory_available(void);
/* The same for each of so many processes of this machine. */
gidx memory_share(int processes);

#endif
