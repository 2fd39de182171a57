/* SPDX-License-Identifier: BSD-3-Clause
 * Arenas: many arrays, one lifetime, one free.
 *
 * Floor: base.
 *
 * A job zeroes a struct arena, allocates its arrays from it, and frees it whole.  Arrays start
 * zeroed and on a 64-byte boundary.
 *
 * A dry arena allocates nothing, and counts the bytes that are requested.  So a job can run its
 * allocation function on a dry arena first, and knows before any work how much memory it will
 * take. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include "base/types.h"

struct arena {
  struct arena_piece *pieces; /* owned */
  size_t bytes;               /* held now; in a dry arena: requested so far */
  int is_dry;                 /* set by the caller before the first allocation */
};

/* A new array of zeros on a 64-byte boundary, which the caller frees with free(); NULL if there is
 * no memory.  An array of 4 MB or more has pages of 2 MB if the system grants them.  Such pages
 * cause far fewer page faults when first written, and fewer TLB misses in random reads.  Such an
 * array takes up to 2 MB more of the address space, but not of memory. */
void *memory_zeroed(size_t bytes);

/* Store in *(T **)pointer a new array of count items of `size` bytes each; count 0 gives a valid
 * pointer.  ERR_MEMORY: the message has the number of bytes.  A dry arena stores NULL. */
int arena_alloc(struct arena *arena, void *pointer, gidx count, size_t size);

/* Free all arrays; safe on a zeroed arena. */
void arena_free(struct arena *arena);

/* Store in *(T **)pointer one struct of zeros, freed by free(). */
int struct_alloc(void *pointer, size_t bytes);

/* Make *(T **)pointer an array of at least count items; *capacity is the number of items that it
 * has room for.  If it grows, its old contents are lost.  The caller frees it with free(). */
int array_reserve(void *pointer, gidx *capacity, gidx count, size_t size);

/* Largest resident size of this process so far, in bytes; 0 if it is not known. */
gidx memory_peak(void);
/* For forecasts: the bytes that a rank holds in addition to the arrays of its job.  This is
 * memory_peak() at the first call, but at least the size of an empty rank on CPUs, with MPI and
 * HDF5. */
gidx memory_program(void);

/* The bytes that this process can still allocate.  This is the smallest of three numbers: the
 * available memory of the machine, the rest of the limits of its control groups (base/proc.h), and
 * the rest of its limit of address space. */
gidx memory_available(void);
/* The same for each of `processes` processes that share this machine and the control groups. */
gidx memory_per_process(int processes);

#endif
