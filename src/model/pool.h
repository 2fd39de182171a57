/* SPDX-License-Identifier: BSD-3-Clause
 * Blocks of a paged pool: which blocks are free, how many sequences share a block, and which
 * beginnings of sequences the blocks hold.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A block holds `size` positions.  Block 0 is reserved and stands for "none".  A block in use has a
 * count of the sequences that use it.  A full block may be sealed: it then has a hash of its tokens
 * and of the block before it.  A new sequence with the same beginning uses sealed blocks instead of
 * new ones.  They are found by hash, and their tokens are compared.  A sealed block that no
 * sequence uses stays warm: it keeps its hash until it is taken for other contents.  Free blocks
 * that are not sealed are taken first, then warm blocks in the order in which they became free;
 * pool_defragment() changes this order. */
#ifndef MODEL_POOL_H
#define MODEL_POOL_H

#include "base/memory.h"
#include "base/types.h"

/* A hash of `size` tokens that follow a block with the hash `before`; 0: none. */
typedef uint64_t pool_hash(const idx *tokens, idx size, uint64_t before);

struct pool {
  idx blocks, size;
  idx free;              /* number of blocks that no sequence uses */
  idx *count;            /* [blocks] */
  idx *next, *previous;  /* [blocks] the queue of free blocks, a ring through block 0 */
  uint64_t *hash;        /* [blocks] of sealed blocks */
  unsigned char *sealed; /* [blocks] */
  /* [blocks] of a sealed block: its serial number, and the serial number of the block before it, 0:
   * none */
  gidx *serial, *before;
  gidx serials; /* serial numbers given so far; none is given twice */
  idx *token;   /* [blocks][size] of sealed blocks */
  /* hash table: [n_buckets] the first sealed block of a bucket; [blocks] the next block of the same
   * bucket, 0: none */
  idx *bucket, *bucket_of;
  idx n_buckets;     /* a power of two */
  pool_hash *hashes; /* tests may replace it while the pool is new */
  struct arena arena;
};
/* blocks >= 2, size >= 1.  All blocks except 0 are free, in ascending order. */
int pool_init(struct pool *p, idx blocks, idx size);
void pool_free(struct pool *p);
/* Check the queue of free blocks and the hash table; ERR_INTERNAL names the first fault. */
int pool_check(const struct pool *p);
/* Sort the queue of free blocks into ascending order. */
void pool_defragment(struct pool *p);

/* The blocks of a sequence, in order. */
struct pool_sequence {
  idx *block; /* [count], owned */
  gidx count, capacity;
};
void pool_sequence_free(struct pool_sequence *s);

/* Give a sequence blocks for `positions` positions in all; a sequence that has more blocks keeps
 * them.  ERR_MEMORY, with nothing changed, if too few blocks are free. */
int pool_allocate(struct pool *p, struct pool_sequence *s, gidx positions);
/* Give back the blocks that are not needed for the first `positions` positions, the last block
 * first. */
void pool_truncate(struct pool *p, struct pool_sequence *s, gidx positions);

/* Give an empty sequence the longest run of sealed blocks whose tokens equal the beginning of
 * tokens[positions].  The run ends before block i if same(self, i, block) returns 0; judge NULL:
 * all blocks are accepted.  ERR_MEMORY. */
struct pool_match {
  void *self;
  int (*same)(void *self, gidx i, idx block);
};
int pool_reuse(struct pool *p, struct pool_sequence *s, const idx *tokens, gidx positions,
               const struct pool_match *judge);
/* Seal block i of a sequence, which holds tokens[size].  Nothing happens if the block before it is
 * not sealed, if the block itself is sealed already, or if another sealed block is equal. */
void pool_freeze(struct pool *p, const struct pool_sequence *s, gidx i, const idx *tokens);
/* Block i of a sequence will be written.  If no other sequence uses the block, unseal it; otherwise
 * give the sequence a new block.  *from <- the block whose contents the caller must copy to the new
 * one, 0: none.  ERR_MEMORY, with nothing changed, if no block is free. */
int pool_own(struct pool *p, struct pool_sequence *s, gidx i, idx *from);

#endif
