/* SPDX-License-Identifier: BSD-3-Clause
 * The queue of free blocks is a doubly linked ring, so that a warm block can leave it from the
 * middle.  Sealed blocks are in a hash table with chained buckets. */
#include "model/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"

static uint64_t tokens_hash(const idx *tokens, idx size, uint64_t before)
{
  uint64_t hash = mix64(before + 1);
  for (idx i = 0; i < size; i++) hash = mix64(hash ^ (uint32_t)tokens[i]);
  return hash;
}

/* Put a block into the queue before block `follower`; before block 0: at the end. */
static void queue_insert(struct pool *p, idx block, idx follower)
{
  idx leader = p->previous[follower];
  p->next[leader] = p->previous[follower] = block;
  p->previous[block] = leader;
  p->next[block] = follower;
  p->free++;
}

static void queue_remove(struct pool *p, idx block)
{
  p->next[p->previous[block]] = p->next[block];
  p->previous[p->next[block]] = p->previous[block];
  p->next[block] = p->previous[block] = block;
  p->free--;
}

int pool_init(struct pool *p, idx blocks, idx size)
{
  *p = (struct pool){.blocks = blocks, .size = size, .n_buckets = 1, .hashes = tokens_hash};
  CHECK(blocks >= 2 && size >= 1, ERR_INTERNAL, "a pool of %d blocks of %d", blocks, size);
  while (p->n_buckets < blocks && p->n_buckets < 1 << 30) p->n_buckets *= 2;
  TRY(arena_alloc(&p->arena, &p->count, blocks, sizeof *p->count));
  TRY(arena_alloc(&p->arena, &p->next, blocks, sizeof *p->next));
  TRY(arena_alloc(&p->arena, &p->previous, blocks, sizeof *p->previous));
  TRY(arena_alloc(&p->arena, &p->hash, blocks, sizeof *p->hash));
  TRY(arena_alloc(&p->arena, &p->sealed, blocks, sizeof *p->sealed));
  TRY(arena_alloc(&p->arena, &p->serial, blocks, sizeof *p->serial));
  TRY(arena_alloc(&p->arena, &p->before, blocks, sizeof *p->before));
  TRY(arena_alloc(&p->arena, &p->token, (gidx)blocks * size, sizeof *p->token));
  TRY(arena_alloc(&p->arena, &p->bucket, p->n_buckets, sizeof *p->bucket));
  TRY(arena_alloc(&p->arena, &p->bucket_of, blocks, sizeof *p->bucket_of));
  for (idx b = 1; b < blocks; b++) queue_insert(p, b, 0);
  return OK;
}

void pool_free(struct pool *p)
{
  arena_free(&p->arena);
  *p = (struct pool){0};
}

void pool_sequence_free(struct pool_sequence *s)
{
  free(s->block);
  *s = (struct pool_sequence){0};
}

static idx *bucket_find(struct pool *p, uint64_t hash)
{
  return &p->bucket[hash & (uint64_t)(p->n_buckets - 1)];
}

static void unseal(struct pool *p, idx block)
{
  if (!p->sealed[block]) return;
  idx *at = bucket_find(p, p->hash[block]);
  while (*at != block) at = &p->bucket_of[*at];
  *at = p->bucket_of[block];
  p->bucket_of[block] = 0;
  p->sealed[block] = 0;
}

/* The sealed block with these tokens after the block with serial number `before`; 0: there is
 * none. */
static idx sealed_find(struct pool *p, const idx *tokens, gidx before, uint64_t hash)
{
  idx b = *bucket_find(p, hash);
  size_t bytes = (size_t)p->size * sizeof *tokens;
  while (b && (p->hash[b] != hash || p->before[b] != before ||
               memcmp(p->token + (gidx)b * p->size, tokens, bytes) != 0))
    b = p->bucket_of[b];
  return b;
}

/* Take a free block for new contents. */
static idx block_take(struct pool *p)
{
  idx block = p->next[0];
  queue_remove(p, block);
  unseal(p, block);
  p->count[block] = 1;
  return block;
}

/* One sequence fewer uses the block. */
static void block_release(struct pool *p, idx block)
{
  if (--p->count[block] == 0) queue_insert(p, block, p->sealed[block] ? 0 : p->next[0]);
}

static int sequence_reserve(struct pool_sequence *s, gidx count)
{
  if (count <= s->capacity) return OK;
  gidx capacity = imax(count, 2 * s->capacity);
  idx *block = realloc(s->block, (size_t)capacity * sizeof *block);
  CHECK(block, ERR_MEMORY, "cannot allocate the table of %lld blocks", (long long)capacity);
  s->block = block;
  s->capacity = capacity;
  return OK;
}

int pool_allocate(struct pool *p, struct pool_sequence *s, gidx positions)
{
  gidx count = ceil_div(positions, p->size);
  CHECK(count - s->count <= p->free, ERR_MEMORY,
        "%lld blocks are needed, and %d of the pool's %d are free", (long long)(count - s->count),
        p->free, p->blocks - 1);
  TRY(sequence_reserve(s, count));
  while (s->count < count) s->block[s->count++] = block_take(p);
  return OK;
}

void pool_truncate(struct pool *p, struct pool_sequence *s, gidx positions)
{
  gidx count = ceil_div(positions, p->size);
  while (s->count > count) block_release(p, s->block[--s->count]);
}

int pool_reuse(struct pool *p, struct pool_sequence *s, const idx *tokens, gidx positions,
               const struct pool_match *judge)
{
  gidx full = positions / p->size;
  uint64_t hash = 0;
  gidx before = 0;
  CHECK(!s->count, ERR_INTERNAL, "a sequence has %lld blocks already", (long long)s->count);
  TRY(sequence_reserve(s, full));
  for (gidx i = 0; i < full; i++) {
    const idx *own = tokens + i * p->size;
    hash = p->hashes(own, p->size, hash);
    idx block = sealed_find(p, own, before, hash);
    if (!block || (judge && !judge->same(judge->self, i, block))) return OK;
    if (p->count[block]++ == 0) queue_remove(p, block);
    s->block[s->count++] = block;
    before = p->serial[block];
  }
  return OK;
}

void pool_freeze(struct pool *p, const struct pool_sequence *s, gidx i, const idx *tokens)
{
  idx block = s->block[i], before = i ? s->block[i - 1] : 0;
  uint64_t hash = p->hashes(tokens, p->size, before ? p->hash[before] : 0);
  if (p->sealed[block] || (before && !p->sealed[before])) return;
  gidx serial = before ? p->serial[before] : 0;
  if (sealed_find(p, tokens, serial, hash)) return;
  idx *bucket = bucket_find(p, hash);
  p->hash[block] = hash;
  p->before[block] = serial;
  p->serial[block] = ++p->serials;
  p->sealed[block] = 1;
  memcpy(p->token + (gidx)block * p->size, tokens, (size_t)p->size * sizeof *tokens);
  p->bucket_of[block] = *bucket;
  *bucket = block;
}

int pool_own(struct pool *p, struct pool_sequence *s, gidx i, idx *from)
{
  idx block = s->block[i];
  *from = 0;
  if (p->count[block] == 1) {
    unseal(p, block);
    return OK;
  }
  CHECK(p->free, ERR_MEMORY, "a shared block is to be written, and none of the pool's %d is free",
        p->blocks - 1);
  s->block[i] = block_take(p);
  block_release(p, block);
  *from = block;
  return OK;
}

void pool_defragment(struct pool *p)
{
  p->next[0] = p->previous[0] = 0;
  p->free = 0;
  for (idx b = 1; b < p->blocks; b++)
    if (!p->count[b]) queue_insert(p, b, 0);
}

/* Check that every sealed block is in the bucket of its hash, once. */
static int chains_check(const struct pool *p)
{
  gidx chained = 0, sealed = 0;
  for (idx i = 0; i < p->n_buckets; i++)
    for (idx b = p->bucket[i]; b; b = p->bucket_of[b]) {
      CHECK(p->sealed[b] && (p->hash[b] & (uint64_t)(p->n_buckets - 1)) == (uint64_t)i,
            ERR_INTERNAL, "block %d is in the chain of another hash", b);
      CHECK(++chained < p->blocks, ERR_INTERNAL, "a chain of sealed blocks has no end");
    }
  for (idx b = 1; b < p->blocks; b++) sealed += p->sealed[b];
  CHECK(chained == sealed, ERR_INTERNAL, "%lld blocks are sealed, %lld are in chains",
        (long long)sealed, (long long)chained);
  return OK;
}

int pool_check(const struct pool *p)
{
  gidx queued = 0, unused = 0;
  for (idx b = p->next[0]; b; b = p->next[b]) {
    CHECK(!p->count[b], ERR_INTERNAL, "block %d is free, and %d sequences have it", b, p->count[b]);
    CHECK(p->next[p->previous[b]] == b, ERR_INTERNAL, "the queue is broken at block %d", b);
    CHECK(++queued < p->blocks, ERR_INTERNAL, "the queue has no end");
  }
  for (idx b = 1; b < p->blocks; b++) unused += !p->count[b];
  CHECK(queued == p->free && unused == p->free, ERR_INTERNAL,
        "%d blocks are free, %lld in the queue, %lld without a sequence", p->free,
        (long long)queued, (long long)unused);
  return chains_check(p);
}
