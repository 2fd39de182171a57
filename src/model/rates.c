/* SPDX-License-Identifier: BSD-3-Clause
 * The axes of a grid are found from its lines, which are few. */
#include "model/rates.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

const struct rate_row rate_rows[RATES] = {
    [RATE_ROUTE] = {"route", "multiply-adds", {"columns", "atoms", "atoms a round"}},
    [RATE_CODES] = {"codes", "rows", {"columns", "atoms a row", "rounds"}},
    [RATE_NONNEGATIVE] = {"nonnegative", "rows", {"columns", "atoms a row", "rounds"}},
    [RATE_COUNT] = {"count", "rows", {"columns", "atoms a row"}},
    [RATE_READ] = {"read", "bytes", {NULL}},
    [RATE_WRITE] = {"write", "bytes", {NULL}},
    [RATE_CHECK] = {"check", "bytes", {NULL}},
    [RATE_SUMS] = {"sums", "multiply-adds", {"columns of a rank", "atoms", "atoms a row"}},
    [RATE_DESCENT] = {"descent", "multiply-adds", {"columns of a rank", "atoms"}},
    [RATE_CONJUGATE] = {"conjugate", "multiply-adds", {"columns of a rank", "atoms a row"}},
    [RATE_MOVES] = {"moves", "multiply-adds", {"columns", "rows of an atom", "rows of a class"}},
    [RATE_MOVES_ONE] = {"moves_one",
                        "multiply-adds",
                        {"columns", "rows of an atom", "rows of a class"}},
    [RATE_COLOR] = {"color", "pairs", {"atoms a row"}},
    [RATE_STEP] = {"step", "multiply-adds", {"columns", "atoms", "batch"}},
    [RATE_SCORES] = {"scores", "multiply-adds", {"columns", "atoms", "batch"}},
    [RATE_SOLVE] = {"solve", "bytes", {"frame", "rows of a system"}},
    [RATE_EXCHANGE] = {"exchange", "bytes", {NULL}},
};

int rates_add(struct rates *r, enum rate which, const double *at, double rate)
{
  if (r->count == RATE_LINES_MOST) return 0;
  struct rate_line *line = &r->lines[r->count++];
  *line = (struct rate_line){.which = which, .rate = rate};
  for (int a = 0; a < RATE_AXES; a++) line->at[a] = rate_rows[which].axes[a] ? at[a] : 1;
  return 1;
}

/* The grid of a rate: its lines, and the sizes of each axis, ascending. */
struct grid {
  const struct rate_line *line[RATE_LINES_MOST];
  double size[RATE_AXES][RATE_LINES_MOST];
  int lines, sizes[RATE_AXES];
};

static void size_add(struct grid *g, int axis, double size)
{
  double *all = g->size[axis];
  int i = g->sizes[axis];
  for (int j = 0; j < i; j++)
    if (all[j] == size) return;
  for (; i > 0 && all[i - 1] > size; i--) all[i] = all[i - 1];
  all[i] = size;
  g->sizes[axis]++;
}

static void grid_find(const struct rates *r, enum rate which, struct grid *g)
{
  g->lines = 0;
  memset(g->sizes, 0, sizeof g->sizes);
  for (int i = 0; i < r->count; i++) {
    if (r->lines[i].which != which) continue;
    g->line[g->lines++] = &r->lines[i];
    for (int a = 0; a < RATE_AXES; a++) size_add(g, a, r->lines[i].at[a]);
  }
}

static int is_whole(const struct grid *g)
{
  if (g->lines == 0 || g->lines != g->sizes[0] * g->sizes[1] * g->sizes[2]) return 0;
  for (int i = 0; i < g->lines; i++) {
    int index[RATE_AXES] = {i / g->sizes[2] / g->sizes[1], i / g->sizes[2] % g->sizes[1],
                            i % g->sizes[2]};
    for (int a = 0; a < RATE_AXES; a++)
      if (g->line[i]->at[a] != g->size[a][index[a]]) return 0;
  }
  return 1;
}

enum rate rates_broken(const struct rates *r)
{
  struct grid g;
  for (enum rate which = 0; which < RATES; which++) {
    grid_find(r, which, &g);
    if (g.lines && !is_whole(&g)) return which;
  }
  return RATES;
}

/* *low <- the index on an axis of the largest size of the grid up to `size`, or 0.  Returns the
 * part of the way from it to the next one, in logarithms. */
static double interval_find(const struct grid *g, int axis, double size, int *low)
{
  const double *all = g->size[axis];
  int last = g->sizes[axis] - 1, i = 0;
  while (i < last && all[i + 1] <= size) i++;
  *low = i;
  if (i == last || size <= all[i]) return 0;
  return log(size / all[i]) / log(all[i + 1] / all[i]);
}

double rate_at(const struct rates *r, enum rate which, double a, double b, double c)
{
  struct grid g;
  const double at[RATE_AXES] = {a, b, c};
  double part[RATE_AXES], sum = 0;
  int low[RATE_AXES];
  grid_find(r, which, &g);
  if (!g.lines) return nan_canonical();
  for (int i = 0; i < RATE_AXES; i++) part[i] = interval_find(&g, i, at[i], &low[i]);
  for (int corner = 0; corner < 1 << RATE_AXES; corner++) {
    double weight = 1;
    int index = 0;
    for (int i = 0; i < RATE_AXES; i++) {
      int high = corner >> i & 1;
      weight *= high ? part[i] : 1 - part[i];
      index = index * g.sizes[i] + low[i] + high;
    }
    if (weight > 0) sum += weight * log(g.line[index]->rate);
  }
  return exp(sum);
}

static void add(struct times *t, const char *name, double seconds, int beside)
{
  int i = 0;
  while (i < t->count && strcmp(t->lines[i].name, name) != 0) i++;
  if (i == TIMES_MOST) return;
  if (i == t->count) t->lines[t->count++] = (struct time_line){.name = name, .beside = beside};
  t->lines[i].seconds += seconds;
}

void times_add(struct times *t, const char *name, double seconds)
{
  add(t, name, seconds, 0);
}

void times_beside(struct times *t, const char *name, double seconds)
{
  add(t, name, seconds, 1);
}

double times_total(const struct times *t)
{
  double sum[2] = {0, 0};
  for (int i = 0; i < t->count; i++) sum[t->lines[i].beside] += t->lines[i].seconds;
  return t->overlap ? fmax(sum[0], sum[1]) : sum[0] + sum[1] / t->threads;
}
