/* SPDX-License-Identifier: BSD-3-Clause
 * One sequence is in memory at a time.  The hash of each written block is kept, and blocks are
 * compared by hash. */
#include "harvest/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/status.h"

enum { PIECE = 1024 };

struct pack {
  const struct pack_task *task;
  struct pack_result *r;
  struct pool pool;
  struct arena arena;
  unsigned char (*digest)[SHA256_BYTES]; /* [blocks] of the written blocks */
  float *k, *v, *q;                      /* k, v: for the longest sequence; q: [PIECE] queries */
  idx *tokens;
  gidx wide_k, wide_v; /* floats per block */
  idx next;            /* next block to write */
  gidx positions;      /* of the finished sequences */
};

static int attention_same(const struct pack_task *t, const struct capture_source *s)
{
  const struct attention *a = &t->captures[0]->attention, *b = &s->attention;
  CHECK(a->heads == b->heads && a->kv_heads == b->kv_heads && a->d == b->d && a->dv == b->dv,
        ERR_INPUT,
        "'%s' has %d query and %d key heads of %d and %d columns, '%s' has %d and %d heads of %d "
        "and %d: pack them apart",
        s->name, b->heads, b->kv_heads, b->d, b->dv, t->captures[0]->name, a->heads, a->kv_heads,
        a->d, a->dv);
  CHECK(a->causal == b->causal && a->window == b->window && a->scale == b->scale &&
            a->softcap == b->softcap,
        ERR_INPUT, "'%s' and '%s' differ in causal, window, scale or softcap: pack them apart",
        s->name, t->captures[0]->name);
  CHECK(s->tokens, ERR_INPUT,
        "'%s' has no '/token', by which equal prefixes are found: add the token of each position "
        "as int32",
        s->name);
  return OK;
}

void pack_bounds(const struct pack_task *t, gidx *least, gidx *most)
{
  *least = *most = 1;
  for (int i = 0; i < t->count; i++)
    for (gidx j = 0; j < t->captures[i]->sequences; j++) {
      gidx blocks = ceil_div(t->captures[i]->length[j], t->size);
      *least = imax(*least, 1 + blocks);
      *most += blocks;
    }
}

/* Set all sizes, from the lengths of all sequences; *blocks <- a number of blocks that suffices. */
static int sizes_find(struct pack *p, gidx *longest, gidx *blocks)
{
  const struct pack_task *t = p->task;
  gidx least;
  *longest = 0;
  pack_bounds(t, &least, blocks);
  for (int i = 0; i < t->count; i++) {
    const struct capture_source *s = t->captures[i];
    TRY(attention_same(t, s));
    p->r->sequences += s->sequences;
    p->r->queries += s->n;
    for (gidx j = 0; j < s->sequences; j++) {
      *longest = imax(*longest, s->length[j]);
      p->r->positions += s->length[j];
    }
  }
  p->r->width = ceil_div(*longest, t->size);
  *blocks = imax(*blocks, 2);
  CHECK(*blocks <= INT32_MAX, ERR_INPUT, "%lld blocks are too many: give a larger '--size'",
        (long long)*blocks);
  return OK;
}

static int arrays_alloc(struct pack *p)
{
  const struct attention *a = &p->task->captures[0]->attention;
  struct pack_result *r = p->r;
  gidx longest, blocks;
  TRY(sizes_find(p, &longest, &blocks));
  gidx room = round_up(longest, p->task->size) + p->task->size, heads = a->kv_heads;
  p->wide_k = p->task->size * heads * a->d;
  p->wide_v = p->task->size * heads * a->dv;
  TRY(pool_init(&p->pool, (idx)blocks, p->task->size));
  TRY(arena_alloc(&p->arena, &p->digest, blocks, sizeof *p->digest));
  TRY(arena_alloc(&p->arena, &p->k, room * heads * a->d, sizeof *p->k));
  TRY(arena_alloc(&p->arena, &p->v, room * heads * a->dv, sizeof *p->v));
  TRY(arena_alloc(&p->arena, &p->q, (gidx)PIECE * a->heads * a->d, sizeof *p->q));
  TRY(arena_alloc(&p->arena, &p->tokens, room, sizeof *p->tokens));
  TRY(arena_alloc(&r->arena, &r->table, r->sequences * r->width, sizeof *r->table));
  TRY(arena_alloc(&r->arena, &r->length, r->sequences, sizeof *r->length));
  return arena_alloc(&r->arena, &r->start, r->sequences + 1, sizeof *r->start);
}

static int block_digest(const struct pack *p, gidx i, unsigned char *digest)
{
  struct sha256 h = {0};
  TRY(sha256_begin(&h));
  TRY(sha256_add(&h, p->k + i * p->wide_k, (size_t)p->wide_k * sizeof *p->k));
  TRY(sha256_add(&h, p->v + i * p->wide_v, (size_t)p->wide_v * sizeof *p->v));
  return sha256_end(&h, digest);
}

/* Does a written block have the keys and values of block i of the present sequence? */
static int block_same(void *self, gidx i, idx block)
{
  struct pack *p = self;
  unsigned char digest[SHA256_BYTES];
  int is_same =
      block_digest(p, i, digest) == OK && memcmp(digest, p->digest[block], sizeof digest) == 0;
  p->r->unlike += !is_same;
  return is_same;
}

/* Read the positions of a sequence, padded with zeros to the end of the last block. */
static int sequence_read(struct pack *p, const struct capture_source *s, gidx sequence)
{
  const struct attention *a = &s->attention;
  gidx n = s->length[sequence], end = round_up(n, p->task->size);
  gidx k = (gidx)a->kv_heads * a->d, v = (gidx)a->kv_heads * a->dv;
  for (gidx j = 0; j < n; j += PIECE) {
    idx count = (idx)imin(PIECE, n - j);
    TRY(s->positions(s->self, sequence, j, count, p->k + j * k, p->v + j * v));
    TRY(s->tokens(s->self, sequence, j, count, p->tokens + j));
  }
  memset(p->k + n * k, 0, (size_t)((end - n) * k) * sizeof *p->k);
  memset(p->v + n * v, 0, (size_t)((end - n) * v) * sizeof *p->v);
  return OK;
}

/* Blocks of a new pool come in ascending order, so each is written when it is taken. */
static int block_write(struct pack *p, gidx i, idx block)
{
  const struct pack_sink *sink = p->task->sink;
  CHECK(block == p->next, ERR_INTERNAL, "block %d is taken, not %d", block, p->next);
  TRY(block_digest(p, i, p->digest[block]));
  p->next++;
  return sink->block(sink->self, block, p->k + i * p->wide_k, p->v + i * p->wide_v);
}

static int blocks_scatter(struct pack *p, struct pool_sequence *s, gidx n)
{
  const struct pack_task *t = p->task;
  TRY(pool_reuse(&p->pool, s, p->tokens, n, &(const struct pool_match){p, block_same}));
  gidx shared = s->count;
  p->r->shared += shared;
  TRY(pool_allocate(&p->pool, s, n));
  for (gidx i = shared; i < s->count; i++) TRY(block_write(p, i, s->block[i]));
  for (gidx i = shared; i < n / t->size; i++) pool_freeze(&p->pool, s, i, p->tokens + i * t->size);
  return OK;
}

static int sequence_pack(struct pack *p, const struct capture_source *s, gidx sequence, gidx row)
{
  struct pack_result *r = p->r;
  struct pool_sequence blocks = {0};
  gidx n = s->length[sequence];
  TRY(sequence_read(p, s, sequence));
  TRY(p->task->sink->tokens(p->task->sink->self, p->positions, n, p->tokens));
  p->positions += n;
  int status = blocks_scatter(p, &blocks, n);
  for (gidx i = 0; i < r->width; i++)
    r->table[row * r->width + i] = i < blocks.count ? blocks.block[i] : -1;
  pool_sequence_free(&blocks);
  r->length[row] = n;
  r->start[row + 1] = r->start[row] + s->start[sequence + 1] - s->start[sequence];
  return status;
}

/* Copy the queries of a capture; the first one is number `first` of all. */
static int queries_copy(struct pack *p, const struct capture_source *s, gidx first)
{
  const struct pack_sink *sink = p->task->sink;
  for (gidx i = 0; i < s->n; i += PIECE) {
    idx count = (idx)imin(PIECE, s->n - i);
    TRY(s->queries(s->self, i, count, p->q));
    TRY(sink->queries(sink->self, first + i, count, p->q));
  }
  return OK;
}

static int captures_pack(struct pack *p)
{
  struct progress progress;
  gidx row = 0;
  memset(p->k, 0, (size_t)p->wide_k * sizeof *p->k);
  memset(p->v, 0, (size_t)p->wide_v * sizeof *p->v);
  TRY(block_write(p, 0, 0)); /* block 0, which is reserved, is zero */
  progress_start(&progress, "pack", "sequences", p->r->sequences);
  for (int i = 0; i < p->task->count; i++) {
    const struct capture_source *s = p->task->captures[i];
    TRY(queries_copy(p, s, p->r->start[row]));
    for (gidx j = 0; j < s->sequences; j++) {
      TRY(sequence_pack(p, s, j, row++));
      progress_show(&progress, row);
    }
  }
  p->r->blocks = p->next - 1;
  return OK;
}

int pack_run(const struct pack_task *task, struct pack_result *result)
{
  struct pack p = {.task = task, .r = result};
  *result = (struct pack_result){0};
  int status = arrays_alloc(&p);
  if (!status) status = captures_pack(&p);
  pool_free(&p.pool);
  arena_free(&p.arena);
  return status;
}

void pack_free(struct pack_result *r)
{
  arena_free(&r->arena);
  *r = (struct pack_result){0};
}
