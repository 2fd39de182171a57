/* SPDX-License-Identifier: BSD-3-Clause
 * Frames from another node are received in pieces; each rank keeps its own atoms of a piece. */
#include "refit/frames.h"

#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"

enum { PIECE_BYTES = 16 << 20 };

static gidx frame_values(const struct refit_state *f)
{
  return (gidx)f->d * f->p;
}

gidx refit_frames_bytes(const struct refit_state *f)
{
  gidx each = (gidx)sizeof *f->frames + (f->task->has_table ? (gidx)sizeof *f->table : 0);
  return f->k * frame_values(f) * each;
}

int refit_frames_choose(struct refit_task *task, struct comm *c, const char *how)
{
  struct refit_state f;
  uint64_t several = c->local_size > 1;
  task->shares = 0;
  if (!strcmp(how, "no")) return OK;
  TRY(comm_or(c, &several, 1));
  int status = refit_state_shape(&f, task, c), must = !strcmp(how, "yes");
  if (!several) return comm_agree(c, status);
  if (!status) status = comm_shared_check(c, refit_frames_bytes(&f));
  status = comm_agree(c, status);
  task->shares = !status;
  if (status != ERR_MEMORY || must) return status;
  log_warn("each rank holds the atoms itself, because the ranks of a node cannot share them: %s",
           status_message());
  status_clear();
  comm_recover(c);
  return OK;
}

int refit_frames_open(struct refit_state *f)
{
  struct comm_shared *s = &f->shared;
  gidx first, count;
  if (!f->task->shares) return OK;
  TRY(comm_shared_open(f->c, refit_frames_bytes(f), s));
  f->frames = s->at;
  if (f->task->has_table) f->table = (float *)(f->frames + f->k * frame_values(f));
  comm_partition(f->k, s->ranks, s->rank, &first, &count);
  f->own_first = (idx)first;
  f->own_count = (idx)count;
  f->names = s->has_first;
  log_info("atoms   %.1f MB once per node, which its %d ranks share", 1e-6 * (double)s->bytes,
           s->ranks);
  return OK;
}

void refit_frames_close(struct refit_state *f)
{
  if (f->shared.state && comm_shared_close(f->c, &f->shared)) status_clear();
}

int refit_frames_sync(struct refit_state *f)
{
  return comm_shared_sync(f->c, &f->shared);
}

/* A task: own atom number i. */
static void frame_put(void *self, gidx i)
{
  struct refit_state *f = self;
  gidx frame = frame_values(f), first = (f->own_first + i) * frame;
  for (gidx j = first; j < first + frame; j++) f->table[j] = (float)f->frames[j];
}

int refit_frames_table(struct refit_state *f)
{
  TRY(refit_frames_sync(f));
  team_run(f->task->threads, f->own_count, frame_put, f);
  return refit_frames_sync(f);
}

/* Copy the own atoms of a received piece to their positions. */
static void piece_take(struct refit_state *f, idx first, idx count, const real *values)
{
  gidx frame = frame_values(f), begin = imax(first, f->own_first);
  gidx end = imin(first + count, f->own_first + f->own_count);
  if (begin < end)
    memcpy(f->frames + begin * frame, values + (begin - first) * frame,
           (size_t)((end - begin) * frame) * sizeof *values);
}

int refit_frames_send(struct refit_state *f)
{
  struct arena arena = {0};
  real *values;
  gidx frame = frame_values(f);
  size_t unit = (size_t)frame * sizeof *values;
  idx piece = (idx)imin(1 + PIECE_BYTES / (gidx)unit, f->k);
  if (!f->shared.state) return comm_broadcast(f->c, f->frames, f->k, unit);
  TRY(comm_agree(f->c, arena_alloc(&arena, &values, piece * frame, sizeof *values)));
  for (idx a = 0; a < f->k; a += piece) {
    idx count = (idx)imin(piece, f->k - a);
    if (f->c->rank == 0) memcpy(values, f->frames + a * frame, (size_t)count * unit);
    TRY(comm_broadcast(f->c, values, count, unit));
    if (!f->names) piece_take(f, a, count, values);
  }
  arena_free(&arena);
  return refit_frames_sync(f);
}
