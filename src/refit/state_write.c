/* SPDX-License-Identifier: BSD-3-Clause
 * Supports are sent to rank 0 one sum block at a time, from the rank that has it. */
#include "refit/state_write.h"

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/access.h"

enum { PIECE_VALUES = 1 << 18 }; /* numbers of frames that are written at a time: 1 MiB */

/* A sum block's supports: on the rank that has them (codes in f32), and on rank 0 (all_*). */
struct block_out {
  struct arena arena;
  idx *counts;
  idx *atoms, *all_atoms;
  float *codes, *all_codes, *all_score;
};

/* Bring sum block number `block`, of n rows, to rank 0. */
static int block_gather(const struct refit_state *f, struct block_out *o, gidx block, idx n)
{
  struct comm *c = f->c;
  gidx entries = (gidx)f->s, at = (block - f->block_first) * ROW_BLOCK * f->s;
  size_t unit = (size_t)f->s * sizeof *o->atoms;
  int mine = block >= f->block_first && block < f->block_first + f->blocks;
  for (int r = 0; r < c->size; r++) {
    gidx first, blocks;
    refit_blocks_partition(f->total, c->size, r, &first, &blocks);
    o->counts[r] = block >= first && block < first + blocks ? n : 0;
  }
  if (!mine) at = 0;
  for (gidx i = 0; mine && i < n * entries * f->d; i++)
    o->codes[i] = (float)f->codes[at * f->d + i];
  TRY(comm_gather(c, f->atoms + at, o->counts, unit, o->all_atoms));
  TRY(comm_gather(c, f->score + at, o->counts, unit, o->all_score));
  return comm_gather(c, o->codes, o->counts, unit * (size_t)f->d, o->all_codes);
}

/* Is this the rank that writes? */
static int is_writer(const struct refit_state *f)
{
  return comm_whole(f->c)->rank == 0;
}

static int blocks_write(const struct refit_state *f, const struct support_sink *sink,
                        struct block_out *o, struct worker *worker)
{
  for (gidx first = 0; first < f->total; first += ROW_BLOCK) {
    idx n = f->total - first < ROW_BLOCK ? (idx)(f->total - first) : ROW_BLOCK;
    struct support_block block = {first,        n,   f->s, f->d, o->all_atoms, o->all_score,
                                  o->all_codes, NULL};
    TRY(block_gather(f, o, first / ROW_BLOCK, n));
    TRY(comm_agree(f->c, is_writer(f) ? support_access(worker, sink, &block) : OK));
  }
  return OK;
}

static int block_alloc(struct block_out *o, const struct refit_state *f)
{
  gidx entries = (gidx)ROW_BLOCK * f->s;
  TRY(arena_alloc(&o->arena, &o->counts, f->c->size, sizeof *o->counts));
  TRY(arena_alloc(&o->arena, &o->all_atoms, entries, sizeof *o->all_atoms));
  TRY(arena_alloc(&o->arena, &o->all_score, entries, sizeof *o->all_score));
  TRY(arena_alloc(&o->arena, &o->codes, entries * f->d, sizeof *o->codes));
  return arena_alloc(&o->arena, &o->all_codes, entries * f->d, sizeof *o->all_codes);
}

int refit_state_supports_write(const struct refit_state *f, const struct support_sink *sink)
{
  struct block_out o = {0};
  struct worker worker;
  int status = block_alloc(&o, f);
  if (!status) status = worker_open(&worker);
  TRY(comm_agree(f->c, status));
  TRY(blocks_write(f, sink, &o, &worker));
  worker_close(&worker);
  arena_free(&o.arena);
  return OK;
}

/* A piece of frames to write. */
struct frames_out {
  struct arena arena;
  gidx piece;
  float *atoms; /* [piece][d][p] */
};

static int frames_alloc(struct frames_out *o, const struct refit_state *f)
{
  gidx frame = (gidx)f->d * f->p;
  o->piece = imin(1 + PIECE_VALUES / frame, f->k);
  return arena_alloc(&o->arena, &o->atoms, o->piece * frame, sizeof *o->atoms);
}

int refit_state_frames_write(const struct refit_state *f, const struct matrix_sink *sink)
{
  struct frames_out o = {0};
  struct worker worker;
  gidx frame = (gidx)f->d * f->p;
  TRY(frames_alloc(&o, f));
  TRY(worker_open(&worker));
  for (gidx a = 0; a < f->k; a += o.piece) {
    gidx count = imin(f->k - a, o.piece);
    for (gidx i = 0; i < count * frame; i++) o.atoms[i] = (float)f->frames[a * frame + i];
    TRY(matrix_access(&worker, (struct matrix_access){sink, a, count, o.atoms}));
  }
  worker_close(&worker);
  arena_free(&o.arena);
  return OK;
}

int refit_state_write_bytes(const struct refit_state *f, gidx *bytes)
{
  struct block_out block = {.arena.is_dry = 1};
  struct frames_out frames = {.arena.is_dry = 1};
  TRY(block_alloc(&block, f));
  TRY(frames_alloc(&frames, f));
  *bytes = imax((gidx)block.arena.bytes, (gidx)frames.arena.bytes);
  return OK;
}
