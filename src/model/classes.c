/* SPDX-License-Identifier: BSD-3-Clause
 * Greedy colouring without a graph: every row keeps the classes of its atoms that are coloured so
 * far.  So an atom finds its forbidden classes in its rows. */
#include "model/classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"

enum { AHEAD = 8 }; /* rows whose classes are prefetched before they are needed */

struct coloring {
  const struct support_view *supports;
  struct arena arena;
  idx *color;      /* [k] the class of each atom, -1: in no row */
  gidx *start;     /* [k + 1] atom a is in rows[start[a] .. start[a + 1] - 1] */
  idx *rows;       /* [entries] ascending for each atom */
  idx *order;      /* [k] atoms in the order of (N.6) */
  idx *begin;      /* [n + 2] where the atoms with each number of rows begin in `order` */
  idx *classes;    /* [entries] from each row's start on: the classes of its coloured atoms */
  idx *n_coloured; /* [n] how many atoms of each row are coloured */
  idx *taken;      /* [k + 1] 1 + the last position in the order for which the class is forbidden */
};

void classes_free(struct classes *c)
{
  arena_free(&c->arena);
  *c = (struct classes){0};
}

/* Allocate every array except the result, for n rows over k atoms with `entries` entries in all. */
static int coloring_alloc(struct coloring *w, gidx n, idx k, gidx entries)
{
  struct arena *a = &w->arena;
  CHECK(n <= INT32_MAX, ERR_INPUT,
        "%lld rows are more than can be coloured: give fewer rows at a time, as by --minibatch of "
        "fit",
        (long long)n);
  TRY(arena_alloc(a, &w->color, k, sizeof *w->color));
  TRY(arena_alloc(a, &w->start, (gidx)k + 2, sizeof *w->start));
  TRY(arena_alloc(a, &w->rows, entries, sizeof *w->rows));
  TRY(arena_alloc(a, &w->order, k, sizeof *w->order));
  TRY(arena_alloc(a, &w->begin, n + 2, sizeof *w->begin));
  TRY(arena_alloc(a, &w->classes, entries, sizeof *w->classes));
  TRY(arena_alloc(a, &w->n_coloured, n, sizeof *w->n_coloured));
  return arena_alloc(a, &w->taken, (gidx)k + 1, sizeof *w->taken);
}

/* Find the rows of each atom, by a counting sort of the entries. */
static void rows_find(struct coloring *w)
{
  const struct support_view *s = w->supports;
  gidx entries = s->start[s->n];
  gidx *next = w->start + 1; /* first counts, then where the next row of each atom is stored */
  for (gidx e = 0; e < entries; e++) next[s->atoms[e] + 1]++;
  for (idx a = 0; a < s->k; a++) next[a + 1] += next[a];
  for (gidx i = 0; i < s->n; i++)
    for (gidx e = s->start[i]; e < s->start[i + 1]; e++) w->rows[next[s->atoms[e]]++] = (idx)i;
}

/* Number of rows of an atom. */
static gidx rows_of(const struct coloring *w, idx atom)
{
  return w->start[atom + 1] - w->start[atom];
}

/* Sort atoms by falling number of rows.  The counting sort is stable, so of equal numbers the lower
 * index comes first. */
static void atoms_order(struct coloring *w)
{
  idx k = w->supports->k, *begin = w->begin;
  gidx max = 0;
  for (idx a = 0; a < k; a++) max = imax(rows_of(w, a), max);
  for (idx a = 0; a < k; a++) begin[max - rows_of(w, a) + 1]++;
  for (gidx size = 0; size <= max; size++) begin[size + 1] += begin[size];
  for (idx a = 0; a < k; a++) w->order[begin[max - rows_of(w, a)]++] = a;
}

/* Colour the atom at a position of the order, and enter its class in its rows. */
static idx atom_color(struct coloring *w, idx position)
{
  const gidx *row_start = w->supports->start;
  idx atom = w->order[position], color = 0;
  gidx begin = w->start[atom], end = w->start[atom + 1];
  for (gidx r = begin; r < end; r++) {
    if (r + AHEAD < end) __builtin_prefetch(w->classes + row_start[w->rows[r + AHEAD]]);
    const idx *used = w->classes + row_start[w->rows[r]];
    for (idx j = 0; j < w->n_coloured[w->rows[r]]; j++) w->taken[used[j]] = position + 1;
  }
  while (w->taken[color] == position + 1) color++;
  for (gidx r = begin; r < end; r++)
    w->classes[row_start[w->rows[r]] + w->n_coloured[w->rows[r]]++] = color;
  return color;
}

/* color[k] <- the classes; returns how many there are. */
static idx atoms_color(struct coloring *w)
{
  idx count = 0;
  rows_find(w);
  atoms_order(w);
  for (idx i = 0; i < w->supports->k; i++) {
    idx atom = w->order[i];
    w->color[atom] = rows_of(w, atom) > 0 ? atom_color(w, i) : -1;
    if (w->color[atom] >= count) count = w->color[atom] + 1;
  }
  return count;
}

int classes_color(struct classes *c, const struct support_view *s)
{
  struct coloring w = {.supports = s};
  *c = (struct classes){0};
  int status = coloring_alloc(&w, s->n, s->k, s->start[s->n]);
  if (!status) status = classes_from_colors(c, w.color, s->k, atoms_color(&w));
  arena_free(&w.arena);
  return status;
}

static int classes_alloc(struct classes *c, idx k, idx count)
{
  TRY(arena_alloc(&c->arena, &c->color, k, sizeof *c->color));
  TRY(arena_alloc(&c->arena, &c->start, (gidx)count + 2, sizeof *c->start));
  return arena_alloc(&c->arena, &c->atoms, k, sizeof *c->atoms);
}

int classes_bytes(idx k, gidx *bytes)
{
  struct classes c = {.arena.is_dry = 1};
  TRY(classes_alloc(&c, k, k));
  *bytes = (gidx)c.arena.bytes;
  return OK;
}

int classes_from_colors(struct classes *c, const idx *color, idx k, idx count)
{
  *c = (struct classes){.k = k, .count = count};
  TRY(classes_alloc(c, k, count));
  gidx *next = c->start + 1;
  memcpy(c->color, color, (size_t)k * sizeof *color);
  for (idx a = 0; a < k; a++) {
    CHECK(color[a] >= -1 && color[a] < count, ERR_INPUT, "atom %d has class %d of %d" ANEW, a,
          color[a], count);
    if (color[a] >= 0) next[color[a] + 1]++;
  }
  for (idx class = 0; class < count; class ++) next[class + 1] += next[class];
  for (idx a = 0; a < k; a++)
    if (color[a] >= 0) c->atoms[next[color[a]]++] = a;
  return OK;
}

/* Check one row.  seen[class] is the atom of this row that is in the class, -1: none; it is all -1
 * before and after. */
static int row_check(const struct classes *c, const idx *atoms, gidx length, idx *seen, gidx row,
                     const char *name)
{
  for (gidx j = 0; j < length; j++) {
    idx class = c->color[atoms[j]];
    CHECK(class >= 0, ERR_INPUT,
          "row %lld has atom %d, which is in no class of '%s': color these supports anew",
          (long long)row, atoms[j], name);
    CHECK(seen[class] < 0, ERR_INPUT,
          "row %lld has atoms %d and %d, both of class %d of '%s': color these supports anew",
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
  out->mean = c->count ? (real)c->start[c->count] / c->count : nan_canonical();
  for (idx class = 0; class < c->count; class ++) {
    gidx size = c->start[class + 1] - c->start[class];
    int bin = 0;
    while (size >> (bin + 1)) bin++;
    out->histogram[bin]++;
    out->atoms[bin] += size;
    if (class == 0 || size < out->min) out->min = size;
    if (size > out->max) out->max = size;
  }
}
