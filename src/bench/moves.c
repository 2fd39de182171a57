/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of an atom are spread evenly over all rows.  A row is a multiple of the sum of its atom
 * and half of another atom, so that most steps are accepted, as with a fitted dictionary. */
#include "bench/moves.h"

#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/classes.h"
#include "refit/coloring.h"
#include "refit/refit.h"
#include "refit/times.h"

enum { DIRECTIONS = 4, COLOR_ROWS = 2 * ROW_BLOCK };

struct moves {
  struct arena arena;
  gidx n; /* rows of all ranks */
  idx p, k, atom_rows;
  float *atoms; /* [k][p] */
  struct row_source rows;
  struct atom_source dictionary;
  struct support_source supports;
  struct refit_task task;
  struct refit_state state;
  struct classes classes;
  real *frames, *codes; /* of the state before a sweep */
  struct atom_step *steps;
  struct phase phases[REFIT_PHASES];
};
static struct moves moves;

/* Returns the atom of a row.  The factor is a prime that does not divide m->n.  So the products
 * modulo m->n are a permutation of the rows. */
static idx atom_of(const struct moves *m, gidx row)
{
  return (idx)((uint64_t)row * 2654435761u % (uint64_t)m->n / (uint64_t)m->atom_rows);
}

static float code_of(gidx row)
{
  return 1 + (float)(mix64((uint64_t)row) >> 40) * 0x1p-24f;
}

static int rows_read(void *self, gidx first, idx count, float *out)
{
  const struct moves *m = self;
  gidx p = m->p;
  for (gidx i = first; i < first + count; i++, out += p) {
    const float *own = m->atoms + atom_of(m, i) * p;
    const float *other = m->atoms + (gidx)(mix64(~(uint64_t)i) % (uint64_t)m->k) * p;
    for (gidx j = 0; j < p; j++) out[j] = code_of(i) * (own[j] + other[j] / 2);
  }
  return OK;
}

static int atoms_read(void *self, idx first, idx count, float *out)
{
  const struct moves *m = self;
  memcpy(out, m->atoms + (gidx)first * m->p, (size_t)count * (size_t)m->p * sizeof *out);
  return OK;
}

static int starts_read(void *self, gidx first, gidx count, gidx *out)
{
  (void)self;
  for (gidx i = 0; i <= count; i++) out[i] = first + i;
  return OK;
}

static int supports_read(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes)
{
  for (gidx i = 0; i < count; i++) {
    atoms[i] = atom_of(self, first + i);
    if (score) score[i] = code_of(first + i);
    if (codes) codes[i] = code_of(first + i);
  }
  return OK;
}

static void task_fill(struct moves *m, const struct bench_common *common)
{
  m->rows = (struct row_source){.n = m->n,
                                .p = m->p,
                                .name = "rows in memory",
                                .row_bytes = 4. * m->p,
                                .self = m,
                                .read = rows_read,
                                .is_shared = 1};
  m->dictionary = (struct atom_source){.k = m->k,
                                       .d = 1,
                                       .p = m->p,
                                       .name = "atoms in memory",
                                       .self = m,
                                       .read = atoms_read,
                                       .is_shared = 1};
  m->supports = (struct support_source){.n = m->n,
                                        .entries = m->n,
                                        .k = m->k,
                                        .d = 1,
                                        .has_codes = 1,
                                        .name = "supports in memory",
                                        .self = m,
                                        .starts = starts_read,
                                        .read = supports_read};
  m->task = (struct refit_task){.rows = &m->rows,
                                .atoms = &m->dictionary,
                                .supports = &m->supports,
                                .top_s = 1,
                                .threads = common->threads,
                                .variant = common->cpu_variant};
}

static int atoms_make(struct moves *m)
{
  gidx values = (gidx)m->k * m->p;
  TRY(arena_alloc(&m->arena, &m->atoms, values, sizeof *m->atoms));
  for (gidx i = 0; i < values; i++) m->atoms[i] = (float)(mix64((uint64_t)i) >> 40) * 0x1p-23f - 1;
  atoms_normalize(m->atoms, m->k, 1, m->p);
  return OK;
}

/* Make classes of consecutive atoms, and copy what a sweep starts with. */
static int classes_make(struct moves *m, idx class_atoms)
{
  const struct refit_state *f = &m->state;
  gidx frames = (gidx)m->k * m->p;
  idx *color;
  TRY(arena_alloc(&m->arena, &color, m->k, sizeof *color));
  TRY(arena_alloc(&m->arena, &m->steps, m->k, sizeof *m->steps));
  TRY(arena_alloc(&m->arena, &m->frames, frames, sizeof *m->frames));
  TRY(arena_alloc(&m->arena, &m->codes, f->n, sizeof *m->codes));
  memcpy(m->frames, f->frames, (size_t)frames * sizeof *m->frames);
  memcpy(m->codes, f->codes, (size_t)f->n * sizeof *m->codes);
  for (idx a = 0; a < m->k; a++) color[a] = a / class_atoms;
  return classes_from_colors(&m->classes, color, m->k, 1 + (m->k - 1) / class_atoms);
}

int bench_moves_begin(const struct bench_moves_shape *shape, const struct bench_common *common,
                      struct comm *c, double *work)
{
  struct moves *m = &moves;
  *m = (struct moves){
      .n = (gidx)shape->rank_rows * c->size, .p = shape->columns, .atom_rows = shape->atom_rows};
  m->k = (idx)(m->n / m->atom_rows);
  task_fill(m, common);
  refit_phases(m->phases);
  TRY(comm_agree(c, atoms_make(m)));
  TRY(refit_state_load(&m->state, &m->task, c));
  idx class_atoms = (idx)((gidx)shape->class_rows * c->size / shape->atom_rows);
  TRY(comm_agree(c, classes_make(m, class_atoms)));
  const struct sweep_shape sweep = {(double)m->n, m->k, m->p, 1, 1, DIRECTIONS, c->size};
  *work = sweep_work(&sweep) / c->size;
  return OK;
}

int bench_moves_run(void)
{
  struct moves *m = &moves;
  struct refit_state *f = &m->state;
  const struct sweep_task sweep = {.classes = &m->classes, .q = DIRECTIONS, .what = "rates"};
  struct sweep_counts counts;
  int stopped;
  memcpy(f->frames, m->frames, (size_t)m->k * (size_t)m->p * sizeof *m->frames);
  memcpy(f->codes, m->codes, (size_t)f->n * sizeof *m->codes);
  return refit_sweep(f, &sweep, m->phases, m->steps, &counts, &stopped);
}

void bench_moves_end(void)
{
  classes_free(&moves.classes);
  refit_state_free(&moves.state);
  arena_free(&moves.arena);
}

/* The supports of a rank. */
static struct {
  struct arena arena;
  struct support_view view;
  struct comm *c;
  int threads;
} colored;

/* Draw the atoms of each row: a first atom, then others at equal distances, so that all differ. */
static int supports_make(idx s, idx atoms, uint64_t stream)
{
  gidx *start;
  idx *entries;
  TRY(arena_alloc(&colored.arena, &start, COLOR_ROWS + 1, sizeof *start));
  TRY(arena_alloc(&colored.arena, &entries, (gidx)COLOR_ROWS * s, sizeof *entries));
  colored.view = (struct support_view){COLOR_ROWS, atoms, start, entries};
  for (gidx i = 0; i <= COLOR_ROWS; i++) start[i] = i * s;
  for (gidx i = 0; i < COLOR_ROWS; i++) {
    uint64_t bits = mix64((uint64_t)i ^ stream << 40);
    gidx first = (gidx)(bits % (uint64_t)atoms);
    gidx step = 1 + (gidx)((bits >> 32) % (uint64_t)(atoms / s - 1));
    for (idx j = 0; j < s; j++) entries[i * s + j] = (idx)((first + j * step) % atoms);
  }
  return OK;
}

int bench_color_begin(idx s, idx atoms, const struct bench_common *common, struct comm *c,
                      double *work)
{
  colored.c = c;
  colored.threads = common->threads;
  *work = COLOR_ROWS * (double)s * s / 2;
  return comm_agree(c, supports_make(s, atoms, (uint64_t)c->rank));
}

int bench_color_run(void)
{
  struct classes classes;
  TRY(coloring_run(colored.c, &colored.view, colored.threads, NULL, &classes));
  classes_free(&classes);
  return OK;
}

void bench_color_end(void)
{
  arena_free(&colored.arena);
}
