/* SPDX-License-Identifier: BSD-3-Clause
 * A random joint system for tests of joint and terminal work.  Supports and numbers of directions
 * differ from row to row and from atom to atom.  Some atoms may be in no row, some atoms of a row
 * are equal, and some codes are 0. */
#ifndef TESTS_JOINT_PROBLEM_H
#define TESTS_JOINT_PROBLEM_H

#include <math.h>

#include "base/memory.h"
#include "base/rng.h"
#include "base/status.h"
#include "model/joint.h"

struct joint_problem {
  idx n, k, d, p, s, q; /* s: most atoms per row; q: most directions per atom */
  real rho;
  int duplicates; /* some atoms equal the atom before them */
  int apart;      /* no two atoms share a row */
  struct arena arena;
  float *atoms, *x, *codes;
  real *e;
  idx *direction, *list;
  gidx *start;
  struct joint joint;
  struct joint_rows rows;
};

static int joint_problem_alloc(struct joint_problem *c)
{
  gidx entries = (gidx)c->n * c->s;
  TRY(arena_alloc(&c->arena, &c->atoms, (gidx)c->k * c->d * c->p, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->x, (gidx)c->n * c->p, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->codes, entries * c->d, sizeof(float)));
  TRY(arena_alloc(&c->arena, &c->e, (gidx)c->k * c->q * c->p, sizeof(real)));
  TRY(arena_alloc(&c->arena, &c->direction, c->k + 1, sizeof(idx)));
  TRY(arena_alloc(&c->arena, &c->list, entries, sizeof(idx)));
  return arena_alloc(&c->arena, &c->start, c->n + 1, sizeof(gidx));
}

static void joint_problem_supports(struct joint_problem *c)
{
  for (idx i = 0; i < c->n; i++) {
    idx length = c->apart ? 1 : 1 + (idx)random_below(5, 1, (uint64_t)i, (uint64_t)c->s);
    idx from = (idx)random_below(5, 2, (uint64_t)i, (uint64_t)c->k);
    idx step = 1 + (idx)random_below(5, 3, (uint64_t)i, 3);
    if (i % 7 == 3 && !c->apart) length = 0;
    c->start[i + 1] = c->start[i];
    for (idx a = 0; a < length; a++) {
      idx atom = (from + a * step) % c->k, again = 0;
      for (gidx b = c->start[i]; b < c->start[i + 1]; b++) again |= c->list[b] == atom;
      if (!again) c->list[c->start[i + 1]++] = atom;
    }
  }
  for (gidx i = 0; i < c->start[c->n] * c->d; i++)
    c->codes[i] = i % 17 == 5 ? 0 : (float)random_normal(5, 4, (uint64_t)i);
}

/* Make the problem.  Atoms and directions have norms of about 1; some atoms have no directions. */
static int joint_problem_open(struct joint_problem *c)
{
  TRY(joint_problem_alloc(c));
  gidx frame = (gidx)c->d * c->p;
  for (gidx i = 0; i < c->k * frame; i++) {
    int is_copy = c->duplicates && i >= frame && i / frame % 5 == 2;
    c->atoms[i] =
        is_copy ? c->atoms[i - frame] : (float)(random_normal(5, 5, (uint64_t)i) / sqrt(c->p));
  }
  joint_problem_supports(c);
  for (idx a = 0; a < c->k; a++)
    c->direction[a + 1] =
        c->direction[a] + (a % 6 == 4 || !c->q ? 0 : 1 + a % (c->q > 1 ? c->q : 1));
  for (gidx i = 0; i < (gidx)c->direction[c->k] * c->p; i++)
    c->e[i] = random_normal(5, 6, (uint64_t)i) / sqrt(c->p);
  for (idx i = 0; i < c->n; i++)
    for (idx col = 0; col < c->p; col++) {
      real x = 0.1 * random_normal(5, 7, (uint64_t)i * 1000 + (uint64_t)col);
      for (gidx a = c->start[i]; a < c->start[i + 1]; a++)
        for (idx m = 0; m < c->d; m++)
          x += c->codes[a * c->d + m] * c->atoms[c->list[a] * frame + m * c->p + col];
      c->x[i * c->p + col] = (float)x;
    }
  c->joint = (struct joint){c->k, c->d, c->p, c->atoms, c->direction, c->e, c->rho};
  c->rows = (struct joint_rows){0, c->n, c->x, c->start, c->list, c->codes};
  return OK;
}

#endif
