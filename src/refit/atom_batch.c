/* SPDX-License-Identifier: BSD-3-Clause
 * To make a batch, find the sizes, allocate the arrays, deal the members, list their rows, and
 * count what ranks exchange.  This file also gathers rows at owners. */
#include "refit/atom_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/sums.h"
#include "base/status.h"

static const gidx BATCH_BYTES = (gidx)128 << 20; /* bytes that grow with the atoms of a batch */

/* How many of count members a rank owns when they are dealt round robin. */
static idx members_of(idx count, int size, int rank)
{
  return count <= rank ? 0 : (count - rank + size - 1) / size;
}

struct load {
  gidx rows;
  idx atom;
};

/* Allocate the arrays of a batch that has its sizes; *load [count] is used for dealing. */
static int arrays_alloc(struct atom_batch *b, const struct refit_state *f, struct load **load)
{
  struct arena *a = &b->arena;
  int size = f->c->size;
  TRY(arena_alloc(a, load, b->count, sizeof **load));
  TRY(arena_alloc(a, &b->atom, b->count, sizeof *b->atom));
  TRY(arena_alloc(a, &b->owned, size, sizeof *b->owned));
  TRY(arena_alloc(a, &b->start, (gidx)b->count + 1, sizeof *b->start));
  TRY(arena_alloc(a, &b->rows, b->own_rows, sizeof *b->rows));
  TRY(arena_alloc(a, &b->entry, b->own_rows, sizeof *b->entry));
  TRY(arena_alloc(a, &b->codes, b->own_rows * f->d, sizeof *b->codes));
  TRY(arena_alloc(a, &b->segment, b->segments, sizeof *b->segment));
  TRY(arena_alloc(a, &b->whole, (gidx)b->mine + 1, sizeof *b->whole));
  TRY(arena_alloc(a, &b->send, size, sizeof *b->send));
  return arena_alloc(a, &b->receive, size, sizeof *b->receive);
}

/* The largest number of rows that count atoms can have, among n rows of s atoms. */
static gidx rows_bound(gidx n, idx s, idx count, enum batch_rows rows)
{
  gidx entries = n * s;
  if (rows == ROWS_NONE) return 0;
  return imin(entries, rows == ROWS_OF_CLASS ? n : count * n);
}

int atom_batch_bound(struct atom_batch *b, const struct refit_state *f, idx count,
                     enum batch_rows rows)
{
  struct load *load;
  gidx blocks = count * f->blocks;
  *b = (struct atom_batch){.count = count, .arena.is_dry = 1};
  b->mine = members_of(count, f->c->size, f->c->rank);
  b->own_rows = rows_bound(f->n, f->s, count, rows);
  b->owner_rows = rows_bound(f->total, f->s, count, rows);
  b->segments = rows == ROWS_NONE ? blocks : imin(b->own_rows, blocks);
  return arrays_alloc(b, f, &load);
}

int atom_batch_max(const struct refit_state *f, batch_bytes_of *bytes_of, idx q, idx *max)
{
  struct comm root = *f->c;
  struct refit_state first;
  struct atom_batch b;
  gidx one, bytes;
  root.rank = 0;
  TRY(refit_state_shape(&first, f->task, &root));
  TRY(atom_batch_bound(&b, &first, 1, ROWS_NONE));
  TRY(bytes_of(&first, &b, q, &one));
  *max = 1;
  for (idx high = f->k; *max < high;) { /* *max fit, or *max is 1; high + 1 do not, or high is k */
    idx middle = *max + (high - *max + 1) / 2;
    TRY(atom_batch_bound(&b, &first, middle, ROWS_NONE));
    TRY(bytes_of(&first, &b, q, &bytes));
    if (bytes - one <= BATCH_BYTES)
      *max = middle;
    else
      high = middle - 1;
  }
  return OK;
}

static int load_compare(const void *x, const void *y)
{
  const struct load *a = x, *b = y;
  if (a->rows != b->rows) return a->rows > b->rows ? -1 : 1;
  return (a->atom > b->atom) - (a->atom < b->atom);
}

static void members_deal(struct atom_batch *b, const struct refit_state *f, const idx *atoms,
                         struct load *load)
{
  int size = f->c->size;
  idx at = 0;
  for (idx m = 0; m < b->count; m++)
    load[m] = (struct load){refit_atom_rows(f, atoms[m]), atoms[m]};
  qsort(load, (size_t)b->count, sizeof *load, load_compare);
  for (int r = 0; r < size; r++) {
    if (r == f->c->rank) b->mine_first = at;
    for (idx m = r; m < b->count; m += size) b->atom[at++] = load[m].atom;
    b->owned[r] = members_of(b->count, size, r);
  }
}

static gidx block_of(const struct refit_state *f, gidx entry)
{
  return (f->first + entry / f->s) / ROW_BLOCK;
}

/* Does a segment begin with entry e of an atom, whose first entry is `first`? */
static int is_begin(const struct refit_state *f, gidx first, gidx e)
{
  return e == first || block_of(f, f->entry[e - 1]) != block_of(f, f->entry[e]);
}

static void sizes_find(struct atom_batch *b, const struct refit_state *f, const idx *atoms)
{
  b->mine = members_of(b->count, f->c->size, f->c->rank);
  for (idx m = 0; m < b->count; m++) {
    gidx first = f->start[atoms[m]], end = f->start[atoms[m] + 1];
    b->own_rows += end - first;
    for (gidx e = first; e < end; e++) b->segments += is_begin(f, first, e);
  }
}

/* List the own rows of each member, and the segments that they lie in. */
static void rows_list(struct atom_batch *b, const struct refit_state *f)
{
  gidx at = 0, g = -1;
  for (idx m = 0; m < b->count; m++) {
    gidx first = f->start[b->atom[m]], end = f->start[b->atom[m] + 1];
    b->start[m] = at;
    for (gidx e = first; e < end; e++, at++) {
      gidx entry = f->entry[e];
      b->entry[at] = entry;
      b->rows[at] = (idx)(entry / f->s);
      memcpy(b->codes + at * f->d, f->codes + entry * f->d, (size_t)f->d * sizeof(real));
      if (is_begin(f, first, e)) b->segment[++g] = (struct segment){m, 0, block_of(f, entry), at};
      b->segment[g].n++;
    }
  }
  b->start[b->count] = at;
}

static int counts_find(struct atom_batch *b, const struct refit_state *f)
{
  idx m = 0;
  for (int r = 0; r < f->c->size; r++) {
    gidx receive = 0;
    TRY(comm_count(b->start[m + b->owned[r]] - b->start[m], &b->send[r]));
    m += b->owned[r];
    for (idx i = 0; i < b->mine; i++)
      receive += f->counts[(gidx)r * f->k + b->atom[b->mine_first + i]];
    TRY(comm_count(receive, &b->receive[r]));
  }
  for (idx i = 0; i < b->mine; i++)
    b->whole[i + 1] = b->whole[i] + refit_atom_rows(f, b->atom[b->mine_first + i]);
  b->owner_rows = b->whole[b->mine];
  return OK;
}

int atom_batch_make(struct atom_batch *b, const struct refit_state *f, const idx *atoms, idx count)
{
  struct load *load = NULL;
  *b = (struct atom_batch){.count = count};
  sizes_find(b, f, atoms);
  TRY(arrays_alloc(b, f, &load));
  members_deal(b, f, atoms, load);
  rows_list(b, f);
  return counts_find(b, f);
}

void atom_batch_free(struct atom_batch *b)
{
  arena_free(&b->arena);
  *b = (struct atom_batch){0};
}

static int received_alloc(struct rows_received *r, const struct atom_batch *b, idx width)
{
  TRY(arena_alloc(&r->arena, &r->values, b->owner_rows * width, sizeof *r->values));
  return arena_alloc(&r->arena, &r->next, b->mine, sizeof *r->next);
}

int rows_received_open(struct rows_received *r, const struct atom_batch *b,
                       const struct refit_state *f, idx width)
{
  *r = (struct rows_received){0};
  return f->c->size > 1 ? received_alloc(r, b, width) : OK;
}

void rows_received_close(struct rows_received *r)
{
  arena_free(&r->arena);
}

int atom_batch_rows_bytes(const struct atom_batch *b, const struct refit_state *f, idx width,
                          gidx *bytes)
{
  struct rows_received r = {.arena.is_dry = 1};
  if (f->c->size > 1) TRY(received_alloc(&r, b, width));
  *bytes = (gidx)r.arena.bytes;
  return OK;
}

int rows_received_take(struct rows_received *r, const struct atom_batch *b,
                       const struct refit_state *f, const real *values, idx width, real *out)
{
  struct comm *c = f->c;
  size_t unit = (size_t)width * sizeof *values;
  if (c->size == 1) {
    TRY(comm_agree(c, OK));
    memcpy(out, values, (size_t)b->owner_rows * unit);
    return OK;
  }
  TRY(comm_alltoallv(c, values, b->send, r->values, b->receive, unit));
  const real *from = r->values;
  memcpy(r->next, b->whole, (size_t)b->mine * sizeof *r->next);
  for (int q = 0; q < c->size; q++)
    for (idx i = 0; i < b->mine; i++) {
      gidx n = f->counts[(gidx)q * f->k + b->atom[b->mine_first + i]];
      memcpy(out + r->next[i] * width, from, (size_t)n * unit);
      r->next[i] += n;
      from += n * width;
    }
  return OK;
}

int atom_batch_rows_to_owner(const struct atom_batch *b, const struct refit_state *f,
                             const real *values, idx width, real *out)
{
  struct rows_received received = {0};
  if (comm_proceeds(f->c))
    TRY(comm_record_needed(f->c, rows_received_open(&received, b, f, width)));
  TRY(rows_received_take(&received, b, f, values, width, out));
  rows_received_close(&received);
  return OK;
}

int atom_batch_allgather(const struct atom_batch *b, struct comm *c, const void *mine, size_t unit,
                         void *all)
{
  return comm_allgather(c, mine, b->owned, unit, all);
}
