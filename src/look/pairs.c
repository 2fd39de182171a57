/* SPDX-License-Identifier: BSD-3-Clause
 * A is the first dictionary, and B the second one.  In each step every rank computes the cosines of
 * a slice of A's atoms with all atoms of B.  Rank 0 gathers these cosines in one matrix.  At the
 * end it solves the assignment. */
#include "look/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "encode/scores.h"
#include "model/assignment.h"

enum { SLICE = 128 }; /* atoms of A that a rank takes in a step */

struct scoring {
  struct comm *c;
  const struct compare_task *task;
  struct score_matrix b;
  float *rows;   /* [SLICE][p] atoms of A or B */
  float *scores; /* [SLICE][width] */
  float *mine;   /* [SLICE][l] cosines or |cosines| */
  idx n;         /* atoms of A that this rank has in this step */
  float *all;    /* [k][l] on rank 0 */
  idx *counts;   /* [size] atoms of each rank in this step */
  struct arena arena;
};

/* w->rows <- atoms first .. first + n - 1 of A (side 0) or B (side 1). */
static int atoms_fetch(struct scoring *w, int side, idx first, idx n)
{
  const struct atom_source *s = w->task->atoms[side];
  TRY(s->read(s->self, first, n, w->rows));
  if (w->task->normalize) atoms_normalize(w->rows, n, 1, s->p);
  return atoms_check(w->rows, n, 1, s->p, first, s->name);
}

int pairs_memory_check(gidx k, gidx l)
{
  gidx bytes = k * l * (gidx)sizeof(float), needed = k > l ? 2 * bytes : bytes;
  CHECK(needed <= memory_available(), ERR_MEMORY,
        "the cosines of %lld x %lld pairs of atoms take %.1f GB, of which %.1f GB are free\n"
        "give rank 0 more memory, or leave the pairs out: compare by --pairs no, fit by --seeds 1",
        (long long)k, (long long)l, 1e-9 * (double)needed, 1e-9 * (double)memory_available());
  return OK;
}

static int matrix_alloc(struct scoring *w, gidx k, gidx l)
{
  if (w->c->rank) return OK;
  TRY(pairs_memory_check(k, l));
  return arena_alloc(&w->arena, &w->all, k * l, sizeof *w->all);
}

static int scoring_begin(struct scoring *w)
{
  const struct atom_source *a = w->task->atoms[0], *b = w->task->atoms[1];
  TRY(matrix_alloc(w, a->k, b->k));
  TRY(scores_alloc(&w->b, &w->arena, b->k, b->p));
  TRY(arena_alloc(&w->arena, &w->rows, (gidx)SLICE * b->p, sizeof *w->rows));
  TRY(arena_alloc(&w->arena, &w->scores, SLICE * scores_width(&w->b), sizeof *w->scores));
  TRY(arena_alloc(&w->arena, &w->mine, (gidx)SLICE * b->k, sizeof *w->mine));
  TRY(arena_alloc(&w->arena, &w->counts, w->c->size, sizeof *w->counts));
  for (idx first = 0; first < b->k; first += SLICE) {
    idx n = (idx)imin(SLICE, b->k - first);
    TRY(atoms_fetch(w, 1, first, n));
    scores_put(&w->b, w->rows, first, n);
  }
  return OK;
}

/* Fill the rows of w->mine for a group of atoms of the slice. */
static void rows_score(void *self, gidx group)
{
  struct scoring *w = self;
  gidx first = group * SCORE_ROWS, width = scores_width(&w->b);
  idx n = (idx)imin(SCORE_ROWS, w->n - first);
  float *scores = w->scores + first * width;
  scores_products(&w->b, w->rows + first * w->b.p, n, scores);
  for (idx i = 0; i < n; i++)
    for (idx j = 0; j < w->b.k; j++) {
      float score = scores[i * width + j];
      w->mine[(first + i) * w->b.k + j] = w->task->nonnegative ? score : fabsf(score);
    }
}

/* One step for the atoms of A from `first` on: each rank has one slice.  Collective. */
static int step_run(struct scoring *w, gidx first)
{
  gidx l = w->b.k, begin = first + (gidx)w->c->rank * SLICE;
  for (int r = 0; r < w->c->size; r++)
    w->counts[r] = (idx)imax(0, imin(SLICE, w->task->atoms[0]->k - first - (gidx)r * SLICE));
  w->n = w->counts[w->c->rank];
  int status = w->n ? atoms_fetch(w, 0, (idx)begin, w->n) : OK;
  TRY(comm_agree(w->c, status));
  team_run(w->task->threads, ceil_div(w->n, SCORE_ROWS), rows_score, w);
  return comm_gather(w->c, w->mine, w->counts, (size_t)l * sizeof(float),
                     w->c->rank ? NULL : w->all + first * l);
}

static int pairs_solve(struct scoring *w, struct pairs *p)
{
  if (w->c->rank) return OK;
  TRY(assignment_solve(p->k, p->l, w->all, w->task->threads, p->match));
  for (idx i = 0; i < p->k; i++)
    p->cosine[i] = p->match[i] < 0 ? 0 : w->all[(gidx)i * p->l + p->match[i]];
  return OK;
}

int pairs_find(struct comm *c, const struct compare_task *t, struct pairs *p)
{
  struct scoring *w = NULL;
  int status = struct_alloc(&w, sizeof *w);
  if (!status) {
    *w = (struct scoring){.c = c, .task = t};
    status = scoring_begin(w);
  }
  TRY(comm_agree(c, status));
  for (gidx first = 0; first < p->k; first += (gidx)SLICE * c->size) TRY(step_run(w, first));
  TRY(comm_agree(c, pairs_solve(w, p)));
  TRY(comm_broadcast(c, p->match, p->k, sizeof *p->match));
  TRY(comm_broadcast(c, p->cosine, p->k, sizeof *p->cosine));
  arena_free(&w->arena);
  free(w);
  return OK;
}
