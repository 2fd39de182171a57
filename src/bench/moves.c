/* SPDX-License-Identifier: BSD-3-Clause
 * The rows of an atom are spread evenly over all rows.  A row is a multiple of the sum of its first
 * atom and half of another atom, so that most steps are accepted, as with a fitted dictionary.
 *
 * On GPUs every rank has all rows, and the ranks divide the atoms of a class (refit/resident.h). */
#include "bench/moves.h"

#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/classes.h"
#include "refit/color.h"
#include "refit/coloring.h"
#include "refit/refit.h"
#include "refit/resident.h"
#include "refit/sweep_end.h"
#include "refit/times.h"

enum {
  COLOR_ROWS = 2 * ROW_BLOCK,
  GPU_COLOR_ROWS = 1 << 18, /* so many that launches take a small part of the time */
  GPU_COLOR_COLUMNS = 8
};

struct moves {
  struct arena arena;
  gidx n; /* rows of all ranks */
  idx p, k, s, q, atom_rows;
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
  /* On GPUs. */
  struct comm alone, *all; /* this rank by itself; all ranks */
  struct sparse_coder coder;
  struct coded coded;
  struct resident resident;
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
  const struct moves *m = self;
  for (gidx i = 0; i <= count; i++) out[i] = (first + i) * m->s;
  return OK;
}

/* A distance at which s of k atoms follow one another without a repetition. */
static gidx distance_of(gidx row, idx k, idx s)
{
  return 1 + (gidx)((mix64((uint64_t)row) >> 32) % (uint64_t)imax(k / s - 1, 1));
}

/* Read `count` entries from `first` on.  The atoms of a row have equal distances, so all differ. */
static int supports_read(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes)
{
  const struct moves *m = self;
  for (gidx i = 0; i < count; i++) {
    gidx row = (first + i) / m->s, at = (first + i) % m->s;
    atoms[i] = (idx)((atom_of(m, row) + at * distance_of(row, m->k, m->s)) % m->k);
    if (score) score[i] = code_of(row);
    if (codes) codes[i] = code_of(row);
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
                                        .entries = m->n * m->s,
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
                                .top_s = m->s,
                                .threads = common->threads,
                                .variant = common->cpu_variant,
                                .filter = "off",
                                .has_table = 1};
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

/* Load the state. */
static int state_open(struct moves *m, const struct bench_common *common, struct comm *c)
{
  task_fill(m, common);
  refit_phases(m->phases);
  TRY(comm_agree(c, atoms_make(m)));
  return refit_state_load(&m->state, &m->task, c);
}

/* Load the state on each rank by itself, with its rows on its GPU. */
static int gpu_open(struct moves *m, const struct bench_common *common, struct comm *c)
{
  struct refit_state *f = &m->state;
  m->all = c;
  TRY(comm_alone(c, &m->alone));
  TRY(state_open(m, common, &m->alone));
  const struct sparse_coder_shape shape = refit_sparse_coder_shape(f, 1, "cuda");
  TRY(comm_agree(c, sparse_coder_open(&m->coder, &shape)));
  TRY(sparse_coder_join(&m->coder, c));
  int status = sparse_coder_put(&m->coder, f->table);
  if (!status) status = coded_open(&m->coder, &m->coded, f->n, f->first, f->x, f->atoms, f->score);
  if (!status) status = coded_put(&m->coder, &m->coded, f->codes);
  if (!status) status = resident_open(&m->resident, f, &m->coder, &m->coded, f->table, m->q);
  if (!status && !m->resident.is_on)
    status = status_fail(ERR_DEVICE, __FILE__, __LINE__, "the GPU takes no steps of this shape");
  return comm_agree(c, status);
}

int bench_moves_begin(const struct bench_moves_shape *shape, const struct bench_common *common,
                      struct comm *c, double *work)
{
  struct moves *m = &moves;
  int gpu = strcmp(common->device, "cuda") == 0;
  *m = (struct moves){.n = (gidx)shape->rank_rows * (gpu ? 1 : c->size),
                      .p = shape->columns,
                      .s = 1,
                      .q = shape->directions,
                      .atom_rows = shape->atom_rows};
  m->k = (idx)(m->n / m->atom_rows);
  TRY(gpu ? gpu_open(m, common, c) : state_open(m, common, c));
  gidx class_rows = imin((gidx)shape->class_rows * c->size, m->n);
  TRY(comm_agree(c, classes_make(m, (idx)(class_rows / shape->atom_rows))));
  const struct sweep_shape sweep = {(double)m->n, m->k, m->p, 1, 1, m->q, c->size};
  *work = sweep_work(&sweep) / c->size;
  return OK;
}

int bench_moves_run(void)
{
  struct moves *m = &moves;
  struct refit_state *f = &m->state;
  const struct sweep_task sweep = {.classes = &m->classes, .q = m->q, .what = "rates"};
  struct sweep_counts counts;
  int stopped;
  memcpy(f->frames, m->frames, (size_t)m->k * (size_t)m->p * sizeof *m->frames);
  memcpy(f->codes, m->codes, (size_t)f->n * sizeof *m->codes);
  if (!m->resident.is_on) return refit_sweep(f, &sweep, m->phases, m->steps, &counts, &stopped);
  TRY(coded_put(&m->coder, &m->coded, f->codes));
  return resident_sweep(&m->resident, &m->classes, m->steps, &counts);
}

int bench_moves_end(void)
{
  struct moves *m = &moves;
  int status = OK;
  classes_free(&m->classes);
  resident_close(&m->resident);
  if (m->all) {
    sparse_coder_leave(&m->coder);
    status = comm_unite(m->all, &m->alone);
    coded_close(&m->coder, &m->coded);
    sparse_coder_close(&m->coder);
  }
  refit_state_free(&m->state);
  arena_free(&m->arena);
  return status;
}

/* The supports of a rank, unless its GPU has them. */
static struct {
  struct arena arena;
  struct support_view view;
  struct comm *c;
  int threads, gpu;
} colored;

/* Draw the atoms of each row. */
static int supports_make(idx s, idx atoms, uint64_t stream)
{
  gidx *start;
  idx *entries;
  TRY(arena_alloc(&colored.arena, &start, COLOR_ROWS + 1, sizeof *start));
  TRY(arena_alloc(&colored.arena, &entries, (gidx)COLOR_ROWS * s, sizeof *entries));
  colored.view = (struct support_view){COLOR_ROWS, atoms, start, entries};
  for (gidx i = 0; i <= COLOR_ROWS; i++) start[i] = i * s;
  for (gidx i = 0; i < COLOR_ROWS; i++) {
    gidx row = i ^ (gidx)(stream << 40);
    gidx first = (gidx)(mix64((uint64_t)row) % (uint64_t)atoms), step = distance_of(row, atoms, s);
    for (idx j = 0; j < s; j++) entries[i * s + j] = (idx)((first + j * step) % atoms);
  }
  return OK;
}

/* On GPUs every rank has the rows of all. */
static int gpu_color_open(idx s, idx atoms, const struct bench_common *common, struct comm *c)
{
  moves = (struct moves){.n = GPU_COLOR_ROWS,
                         .p = GPU_COLOR_COLUMNS,
                         .k = atoms,
                         .s = s,
                         .q = 1,
                         .atom_rows = GPU_COLOR_ROWS / atoms};
  return gpu_open(&moves, common, c);
}

int bench_color_begin(idx s, idx atoms, const struct bench_common *common, struct comm *c,
                      double *work)
{
  colored.c = c;
  colored.threads = common->threads;
  colored.gpu = strcmp(common->device, "cuda") == 0;
  double rows = colored.gpu ? (double)GPU_COLOR_ROWS / c->size : COLOR_ROWS;
  *work = rows * (double)s * s / 2;
  if (colored.gpu) return gpu_color_open(s, atoms, common, c);
  return comm_agree(c, supports_make(s, atoms, (uint64_t)c->rank));
}

int bench_color_run(void)
{
  struct classes classes;
  if (colored.gpu)
    TRY(color_state(&moves.state, resident_looker(&moves.resident), &classes));
  else
    TRY(coloring_run(colored.c, &colored.view, colored.threads, NULL, &classes));
  classes_free(&classes);
  return OK;
}

int bench_color_end(void)
{
  arena_free(&colored.arena);
  return colored.gpu ? bench_moves_end() : OK;
}
