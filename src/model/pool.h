/* SPDX-License-Identifier: BSD-3-Clause
 * Blocks of a paged pool: which are free, which sequences share them, and which prefixes they hold.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A block has `size` positions.  Block 0 is reserved, and stands for "none".  A block in use has a
 * count of the sequences that have it.  A full block may be sealed: then it has a hash of its
 * tokens and of the block before it, and a sequence that begins alike takes it instead of a new
 * one; the hash finds it, the tokens decide.  A sealed block that nobody has stays warm: it keeps
 * its hash until it is taken for something else, and those that are freed last go last. */
#ifndef MODEL_POOL_H
#define MODEL_POOL_H

#include "base/memory.h"
#include "base/types.h"

/* A hash of size tokens that follow a block with the hash `before`, 0 for none. */
typedef uint64_t pool_hash(const idx *tokens, idx size, uint64_t before);

struct pool {
  idx blocks, size;
  idx free;              /* blocks that nobody has */
  idx *count;            /* [blocks] */
  idx *next, *previous;  /* [blocks] the queue of free blocks, a ring through block 0 */
  uint64_t *hash;        /* [blocks] of sealed ones */
  unsigned char *sealed; /* [blocks] */
  gidx *serial, *before; /* [blocks] of sealed ones: its number, and that of the one before, or 0 */
  gidx serials;          /* given so far: no number is given again */
  idx *token;            /* [blocks][size] of sealed ones */
  idx *bucket, *bucket_of; /* [n_buckets] first sealed block, [blocks] the next one, 0: none */
  idx n_buckets;           /* a power of two */
  pool_hash *hashes;       /* may be replaced while the pool is new, for tests */
  struct arena arena;
};
/* blocks >= 2, size >= 1.  All but block 0 are free, in ascending order. */
int pool_init(struct pool *p, idx blocks, idx size);
void pool_free(struct pool *p);
/* Every invariant above; ERR_INTERNAL names the first that is broken. */
int pool_check(const struct pool *p);
/* Bring the queue into ascending order. */
void pool_defragment(struct pool *p);

/* The blocks of a sequence, in order. */
struct pool_sequence {
  idx *block; /* [count], owned */
  gidx count, capacity;
};
void pool_sequence_free(struct pool_sequence *s);

/* Let a sequence have blocks for so many positions; it only grows.  ERR_MEMORY when too few are
 * free: then nothing has changed. */
int pool_allocate(struct pool *p, struct pool_sequence *s, gidx positions);
/* Give back the blocks behind so many positions, the last first. */
void pool_truncate(struct pool *p, struct pool_sequence *s, gidx positions);

/* Let an empty sequence begin with the longest run of sealed blocks that has the first of these
 * tokens.  same(self, i, block) may refuse block i of the sequence; NULL: never.  ERR_MEMORY. */
struct pool_match {
  void *self;
  int (*same)(void *self, gidx i, idx block);
};
int pool_reuse(struct pool *p, struct pool_sequence *s, const idx *tokens, gidx positions,
               const struct pool_match *judge);
/* Seal block i of a sequence, which has these tokens [size].  The blocks before it are sealed.  A
 * block that is sealed already, or has an equal elsewhere, stays as it is. */
void pool_freeze(struct pool *p, const struct pool_sequence *s, gidx i, const idx *tokens);
/* Block i of a sequence is going to be written: it is no longer sealed, and where others have it,
 * the sequence gets a new one.  *from <- the block whose content is to be copied, 0: none.
 * ERR_MEMORY when none is free: then nothing has changed. */
int pool_own(struct pool *p, struct pool_sequence *s, gidx i, idx *from);

#endif
