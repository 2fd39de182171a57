/* SPDX-License-Identifier: BSD-3-Clause
 * Greedy colouring without a graph: every row keeps the classes of its atoms placed so far, so that
 * an atom finds the classes it cannot take in the rows that it is in. */
#include "model/classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/results.h"

enum { AHEAD = 8 }; /* rows whose classes are asked for before they are needed */

struct coloring {
  const struct support_view *supports;
  struct arena arena;
  gidx *start;  /* [k + 1] rows of each atom: */
  idx *rows;    /* [entries], ascending inside an atom */
  idx *order;   /* [k] atoms in the order of (N.6) */
  idx *classes; /* [entries] of each row's atoms that are placed, from the row's start */
  idx *placed;  /* [n] how many those are */
  idx *taken;   /* [k] last atom of the order that cannot have the class, plus one */
};

void classes_free(struct classes *c)
{
  arena_free(&c->arena);
  *c = (struct classes){0};
}

/* The rows of each atom: counting sort by atom. */
static int rows_find(struct coloring *w)
{
  const struct support_view *s = w->supports;
  gidx entries = s->start[s->n];
  TRY(arena_take(&w->arena, &w->start, (gidx)s->k + 2, sizeof *w->start));
  TRY(arena_take(&w->arena, &w->rows, entries, sizeof *w->rows));
  gidx *next = w->start + 1; /* ends up as the starts of the atoms after */
  for (gidx e = 0; e < entries; e++) next[s->atoms[e] + 1]++;
  for (idx a = 0; a < s->k; a++) next[a + 1] += next[a];
  for (gidx i = 0; i < s->n; i++)
    for (gidx e = s->start[i]; e < s->start[i + 1]; e++) w->rows[next[s->atoms[e]]++] = (idx)i;
  return OK;
}

static gidx rows_of(const struct coloring *w, idx atom)
{
  return w->start[atom + 1] - w->start[atom];
}

/* By falling support size: counting sort, stable, so ties stay in order of index. */
static int atoms_order(struct coloring *w)
{
  idx k = w->supports->k;
  gidx most = 0, *begin = NULL;
  for (idx a = 0; a < k; a++) most = rows_of(w, a) > most ? rows_of(w, a) : most;
  TRY(arena_take(&w->arena, &w->order, k, sizeof *w->order));
  TRY(arena_take(&w->arena, &begin, most + 2, sizeof *begin));
  for (idx a = 0; a < k; a++) begin[most - rows_of(w, a) + 1]++;
  for (gidx size = 0; size <= most; size++) begin[size + 1] += begin[size];
  for (idx a = 0; a < k; a++) w->order[begin[most - rows_of(w, a)]++] = a;
  return OK;
}

/* The class of the atom at this place of the order; it is entered in the atom's rows. */
static idx atom_place(struct coloring *w, idx place)
{
  const gidx *row_start = w->supports->start;
  idx atom = w->order[place], color = 0;
  gidx begin = w->start[atom], end = w->start[atom + 1];
  for (gidx r = begin; r < end; r++) {
    if (r + AHEAD < end) __builtin_prefetch(w->classes + row_start[w->rows[r + AHEAD]]);
    const idx *used = w->classes + row_start[w->rows[r]];
    for (idx j = 0; j < w->placed[w->rows[r]]; j++) w->taken[used[j]] = place + 1;
  }
  while (w->taken[color] == place + 1) color++;
  for (gidx r = begin; r < end; r++)
    w->classes[row_start[w->rows[r]] + w->placed[w->rows[r]]++] = color;
  return color;
}

static int color_run(struct coloring *w, idx *color, idx *count)
{
  const struct support_view *s = w->supports;
  CHECK(s->n <= INT32_MAX, ERR_INPUT, "%lld rows are more than can be coloured", (long long)s->n);
  TRY(rows_find(w));
  TRY(atoms_order(w));
  TRY(arena_take(&w->arena, &w->classes, s->start[s->n], sizeof *w->classes));
  TRY(arena_take(&w->arena, &w->placed, s->n, sizeof *w->placed));
  TRY(arena_take(&w->arena, &w->taken, (gidx)s->k + 1, sizeof *w->taken));
  for (idx place = 0; place < s->k; place++) {
    idx atom = w->order[place];
    color[atom] = rows_of(w, atom) > 0 ? atom_place(w, place) : -1;
    if (color[atom] >= *count) *count = color[atom] + 1;
  }
  return OK;
}

int classes_color(struct classes *c, const struct support_view *supports)
{
  struct coloring w = {.supports = supports};
  idx *color, count = 0;
  *c = (struct classes){0};
  int status = arena_take(&w.arena, &color, supports->k, sizeof *color);
  if (!status) status = color_run(&w, color, &count);
  if (!status) status = classes_from_colors(c, color, supports->k, count);
  arena_free(&w.arena);
  return status;
}

int classes_from_colors(struct classes *c, const idx *color, idx k, idx count)
{
  *c = (struct classes){.k = k, .count = count};
  TRY(arena_take(&c->arena, &c->color, k, sizeof *c->color));
  TRY(arena_take(&c->arena, &c->start, (gidx)count + 2, sizeof *c->start));
  TRY(arena_take(&c->arena, &c->atoms, k, sizeof *c->atoms));
  gidx *next = c->start + 1;
  memcpy(c->color, color, (size_t)k * sizeof *color);
  for (idx a = 0; a < k; a++) {
    CHECK(color[a] >= -1 && color[a] < count, ERR_INPUT, "atom %d has class %d of %d", a, color[a],
          count);
    if (color[a] >= 0) next[color[a] + 1]++;
  }
  for (idx class = 0; class < count; class ++) next[class + 1] += next[class];
  for (idx a = 0; a < k; a++)
    if (color[a] >= 0) c->atoms[next[color[a]]++] = a;
  return OK;
}

/* seen[class]: the atom of this row that is in the class, -1: none yet. */
static int row_check(const struct classes *c, const idx *atoms, gidx length, idx *seen, gidx row,
                     const char *name)
{
  for (gidx j = 0; j < length; j++) {
    idx class = c->color[atoms[j]];
    CHECK(class >= 0, ERR_INPUT, "row %lld has atom %d, which is in no class of '%s'",
          (long long)row, atoms[j], name);
    CHECK(seen[class] < 0, ERR_INPUT, "row %lld has atoms %d and %d, both of class %d of '%s'",
          (long long)row, seen[class], atoms[j], class, name);
    seen[class] = atoms[j];
  }
  for (gidx j = 0; j < length; j++) seen[c->color[atoms[j]]] = -1;
  return OK;
}

int classes_check(const struct classes *c, const struct support_view *s, gidx first,
                  const char *name)
{
  idx *seen = malloc(((size_t)c->count + 1) * sizeof *seen);
  CHECK(seen, ERR_MEMORY, "cannot allocate %d classes", c->count);
  for (idx class = 0; class < c->count; class ++) seen[class] = -1;
  int status = OK;
  for (gidx i = 0; i < s->n && status == OK; i++)
    status =
        row_check(c, s->atoms + s->start[i], s->start[i + 1] - s->start[i], seen, first + i, name);
  free(seen);
  return status;
}

void classes_report(const struct classes *c, gidx longest_row, struct class_report *out)
{
  *out = (struct class_report){.classes = c->count, .longest_row = longest_row};
  out->dead = c->k - c->start[c->count];
  out->mean = c->count ? (real)c->start[c->count] / c->count : canonical_nan();
  for (idx class = 0; class < c->count; class ++) {
    gidx size = c->start[class + 1] - c->start[class];
    int bin = 0;
    while (size >> (bin + 1)) bin++;
    out->histogram[bin]++;
    if (class == 0 || size < out->least) out->least = size;
    if (size > out->most) out->most = size;
  }
}
