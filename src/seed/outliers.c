/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank reads a run of the rows and keeps their squared norms.  The median comes from counts of
 * all norms by size; counts are integers, so their sums do not depend on ranks. */
#include "seed/outliers.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "model/access.h"
#include "model/norms.h"

struct search {
  struct comm *c;
  const struct row_source *rows;
  struct arena arena;
  struct row_reader reader;
  real *shift;         /* [p] */
  gidx first, n;       /* rows of this rank */
  real *square;        /* [n] */
  gidx *starts;        /* [size + 1] number of rows that all lower ranks leave out */
  struct norms *norms; /* of all rows */
};

static int search_alloc(struct search *s, real **shift, struct arena *arena)
{
  comm_partition(s->rows->n, s->c->size, s->c->rank, &s->first, &s->n);
  TRY(row_reader_open(&s->reader, s->rows, &s->arena));
  TRY(arena_alloc(&s->arena, &s->square, imax(s->n, 1), sizeof *s->square));
  TRY(arena_alloc(&s->arena, &s->starts, (gidx)s->c->size + 1, sizeof *s->starts));
  TRY(arena_alloc(&s->arena, &s->norms, 1, sizeof *s->norms));
  return *shift ? OK : arena_alloc(arena, shift, s->rows->p, sizeof **shift);
}

static int float_compare(const void *a, const void *b)
{
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* shift[p] <- the medians of the columns of x[n][p]; massive rows would dominate means. */
static void medians_find(const float *x, gidx n, idx p, float *column, real *shift)
{
  for (idx c = 0; c < p; c++) {
    for (gidx i = 0; i < n; i++) column[i] = x[i * p + c];
    qsort(column, (size_t)n, sizeof *column, float_compare);
    shift[c] = column[(n - 1) / 2];
  }
}

/* shift[p] <- the medians of the first rows.  Rank 0. */
static int shift_find(const struct row_source *rows, real *shift)
{
  struct arena arena = {0};
  struct worker worker = {0};
  gidx n = imin(SHIFT_ROWS, rows->n);
  float *x, *column;
  int status = arena_alloc(&arena, &x, n * rows->p, sizeof *x);
  if (!status) status = arena_alloc(&arena, &column, n, sizeof *column);
  if (!status) status = worker_open(&worker);
  if (!status) status = rows_access(&worker, (struct rows_access){rows, 0, n, x});
  if (!status) medians_find(x, n, rows->p, column, shift);
  worker_close(&worker);
  arena_free(&arena);
  return status;
}

/* Find the squared norms of this rank's rows. */
static int squares_find(struct search *s)
{
  struct row_reader *r = &s->reader;
  idx p = s->rows->p;
  for (gidx done = 0, n; done < s->n; done += n) {
    n = imin(r->most, s->n - done);
    TRY(row_reader_take(r, s->first + done, n, s->first + done + n, s->n - done - n));
    for (gidx i = 0; i < n; i++) {
      real square = norms_square(r->x + i * p, p, s->shift);
      s->square[done + i] = square;
      norms_add(s->norms, square);
    }
  }
  return OK;
}

/* *count, out[*count] <- the rows of all ranks whose squared norm is at least bound, ascending. */
static int rows_list(struct search *s, real bound, struct arena *arena, gidx **out, gidx *count)
{
  struct comm *c = s->c;
  gidx *starts = s->starts, at;
  for (gidx i = 0; i < s->n; i++) starts[c->rank + 1] += s->square[i] >= bound;
  TRY(comm_sum(c, starts, (gidx)c->size + 1));
  for (int r = 0; r < c->size; r++) starts[r + 1] += starts[r];
  *count = starts[c->size];
  TRY(comm_agree(c, arena_alloc(arena, out, imax(*count, 1), sizeof **out)));
  at = starts[c->rank];
  for (gidx i = 0; i < s->n; i++)
    if (s->square[i] >= bound) (*out)[at++] = s->first + i;
  return comm_sum(c, *out, *count);
}

/* Find the rows to leave out.  If *bound is 0, the shift and the bound are computed first. */
static int search_run(struct search *s, real multiple, struct outliers *o, int which, real *bound)
{
  struct comm *c = s->c;
  gidx *out;
  if (!*bound) {
    TRY(comm_agree(c, c->rank ? OK : shift_find(s->rows, s->shift)));
    TRY(comm_broadcast(c, s->shift, s->rows->p, sizeof *s->shift));
  }
  TRY(comm_agree_at(c, squares_find(s), s->first));
  TRY(comm_sum(c, s->norms->count, NORM_BINS));
  TRY(comm_sum(c, s->norms->sum, NORM_BINS));
  if (!*bound) *bound = norms_bound(s->norms, multiple);
  TRY(rows_list(s, *bound, &o->arena, &out, &o->count[which]));
  o->kept[which] = (struct kept_rows){s->rows, o->count[which], out};
  kept_rows_source(&o->kept[which], &o->source[which]);
  o->share[which] = norms_fraction(s->norms, *bound);
  return OK;
}

static int leave_out(struct outliers *o, struct comm *c, real multiple, int which,
                     const struct row_source **rows, real **shift, real *bound)
{
  struct search s = {.c = c, .rows = *rows};
  int status = comm_agree(c, search_alloc(&s, shift, &o->arena));
  s.shift = *shift;
  if (!status) status = search_run(&s, multiple, o, which, bound);
  row_reader_close(&s.reader);
  arena_free(&s.arena);
  if (!status) *rows = &o->source[which];
  return status;
}

int outliers_leave_out(struct outliers *o, struct comm *c, real multiple,
                       const struct row_source **rows, const struct row_source **held)
{
  real *shift = NULL, bound = 0;
  if (!(multiple > 0) || (*rows)->n == 0) return OK;
  CHECK(multiple > 1, ERR_USAGE,
        "'--max-norm' is %g, which leaves the median row out: give more than 1, such as 8, or 0 to "
        "leave out none",
        multiple);
  TRY(leave_out(o, c, multiple, 0, rows, &shift, &bound));
  if (!*held || (*held)->n == 0 || (*held)->p != (*rows)->p) return OK; /* refused later */
  const char *name = (*held)->name;
  TRY(leave_out(o, c, multiple, 1, held, &shift, &bound));
  CHECK((*held)->n > 0, ERR_INPUT,
        "no row of '%s' has less than %g times the median norm of '%s': raise '--max-norm', or "
        "judge by rows of the same scale",
        name, multiple, (*rows)->name);
  return OK;
}

void outliers_log(const struct outliers *o, real multiple)
{
  for (int i = 0; i < 2; i++) {
    const struct row_source *rows = o->kept[i].rows;
    if (rows)
      log_info("left out %lld of %lld rows of '%s': norms of %g times the median or more, %.4g of "
               "all squares",
               (long long)o->count[i], (long long)rows->n, rows->name, multiple, o->share[i]);
  }
}

void outliers_free(struct outliers *o)
{
  arena_free(&o->arena);
  *o = (struct outliers){0};
}
