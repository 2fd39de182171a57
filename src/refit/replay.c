/* SPDX-License-Identifier: BSD-3-Clause
 * Moves are made as atom_batch_step() makes accepted ones, but ranks exchange nothing. */
#include "refit/replay.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/refit.h"

/* The accepted moves of a batch.  Besides the batch they take no more memory than the steps of the
 * batch would take. */
struct replay {
  struct refit_state *f;
  struct atom_batch b;
  struct arena arena;
  real *before;            /* [count][d][p] frames */
  real *codes, *objective; /* [own_rows][d], [own_rows] */
  struct move_item *moves; /* [segments] */
  gidx count;
};

static int replay_alloc(struct replay *r)
{
  const struct refit_state *f = r->f;
  const struct atom_batch *b = &r->b;
  struct arena *a = &r->arena;
  TRY(arena_alloc(a, &r->before, (gidx)b->count * f->d * f->p, sizeof *r->before));
  TRY(arena_alloc(a, &r->codes, b->own_rows * f->d, sizeof *r->codes));
  TRY(arena_alloc(a, &r->objective, b->own_rows, sizeof *r->objective));
  return arena_alloc(a, &r->moves, b->segments, sizeof *r->moves);
}

static void moves_list(struct replay *r, const float *before, const struct atom_step *steps)
{
  const struct refit_state *f = r->f;
  const struct atom_batch *b = &r->b;
  gidx frame = (gidx)f->d * f->p;
  for (idx m = 0; m < b->count; m++)
    for (gidx i = 0; i < frame; i++) r->before[m * frame + i] = before[b->atom[m] * frame + i];
  r->count = 0;
  for (gidx g = 0; g < b->segments; g++) {
    const struct segment *segment = b->segment + g;
    idx atom = b->atom[segment->member];
    if (!steps[atom].accepted) continue;
    r->moves[r->count++] = (struct move_item){.rows = b->rows + segment->at,
                                              .n = segment->n,
                                              .u_old = r->before + segment->member * frame,
                                              .u_new = f->frames + atom * frame,
                                              .t_old = b->codes + segment->at * f->d,
                                              .t_new = r->codes + segment->at * f->d,
                                              .objective = r->objective + segment->at};
  }
}

static int moves_make(struct replay *r, const struct atom_step *steps)
{
  struct refit_state *f = r->f;
  const struct atom_batch *b = &r->b;
  const struct moves_job job = {.d = f->d,
                                .p = f->p,
                                .rho = f->rho,
                                .nonnegative = f->task->nonnegative,
                                .residual = f->residual,
                                .items = r->moves,
                                .count = r->count};
  size_t code = (size_t)f->d * sizeof(real);
  TRY(device_moves_try(&f->device, &job));
  TRY(device_moves_keep(&f->device, &job));
  for (idx m = 0; m < b->count; m++)
    for (gidx i = b->start[m]; steps[b->atom[m]].accepted && i < b->start[m + 1]; i++)
      memcpy(f->codes + b->entry[i] * f->d, r->codes + i * f->d, code);
  return OK;
}

static int batch_replay(struct refit_state *f, const idx *atoms, idx count, const float *before,
                        const struct atom_step *steps)
{
  struct replay r = {.f = f};
  TRY(atom_batch_make(&r.b, f, atoms, count));
  TRY(replay_alloc(&r));
  moves_list(&r, before, steps);
  TRY(moves_make(&r, steps));
  atom_batch_free(&r.b);
  arena_free(&r.arena);
  return OK;
}

int moves_replay(struct refit_state *f, const struct classes *classes, idx max,
                 const struct sweep_start *start, const struct atom_step *steps)
{
  gidx done = 0;
  for (idx color = 0; color < classes->count && done < start->atoms; color++)
    while (done < imin(classes->start[color + 1], start->atoms)) {
      idx count = (idx)imin(imin(classes->start[color + 1], start->atoms) - done, max);
      TRY(batch_replay(f, classes->atoms + done, count, start->before, steps));
      done += count;
    }
  return OK;
}
