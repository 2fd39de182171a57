/* SPDX-License-Identifier: BSD-3-Clause
 * Dealing, and gathering rows at owners. */
#include "stage/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/status.h"

static const gidx BATCH_REALS = (gidx)16 << 20; /* that a batch may take, about */

idx batch_most(const struct fit *f, gidx reals, gidx width)
{
  gidx blocks = (f->total + ROW_BLOCK - 1) / ROW_BLOCK, each = blocks / f->c->size + 1;
  gidx most = BATCH_REALS / (reals + each * width + 1);
  return (idx)(most < 1 ? 1 : most > INT32_MAX / 2 ? INT32_MAX / 2 : most);
}

static gidx rows_of(const struct fit *f, idx atom)
{
  gidx rows = 0;
  for (int r = 0; r < f->c->size; r++) rows += f->counts[(gidx)r * f->k + atom];
  return rows;
}

struct load {
  gidx rows;
  idx atom;
};

static int load_compare(const void *x, const void *y)
{
  const struct load *a = x, *b = y;
  if (a->rows != b->rows) return a->rows > b->rows ? -1 : 1;
  return (a->atom > b->atom) - (a->atom < b->atom);
}

static int members_deal(struct batch *b, const struct fit *f, const idx *atoms)
{
  struct load *load;
  int size = f->c->size;
  idx at = 0;
  TRY(arena_take(&b->arena, &load, b->count, sizeof *load));
  TRY(arena_take(&b->arena, &b->atom, b->count, sizeof *b->atom));
  TRY(arena_take(&b->arena, &b->owned, size, sizeof *b->owned));
  for (idx m = 0; m < b->count; m++) load[m] = (struct load){rows_of(f, atoms[m]), atoms[m]};
  qsort(load, (size_t)b->count, sizeof *load, load_compare);
  for (int r = 0; r < size; r++) {
    if (r == f->c->rank) b->mine_first = at;
    for (idx m = r; m < b->count; m += size) b->atom[at++] = load[m].atom;
    b->owned[r] = (b->count - r + size - 1) / size;
    if (b->count <= r) b->owned[r] = 0;
  }
  b->mine = b->owned[f->c->rank];
  return OK;
}

static int rows_list(struct batch *b, const struct fit *f)
{
  gidx total = 0, at = 0;
  for (idx m = 0; m < b->count; m++) total += f->start[b->atom[m] + 1] - f->start[b->atom[m]];
  TRY(arena_take(&b->arena, &b->start, (gidx)b->count + 1, sizeof *b->start));
  TRY(arena_take(&b->arena, &b->rows, total, sizeof *b->rows));
  TRY(arena_take(&b->arena, &b->entry, total, sizeof *b->entry));
  TRY(arena_take(&b->arena, &b->codes, total * f->d, sizeof *b->codes));
  for (idx m = 0; m < b->count; m++) {
    b->start[m] = at;
    for (gidx e = f->start[b->atom[m]]; e < f->start[b->atom[m] + 1]; e++, at++) {
      b->entry[at] = f->entry[e];
      b->rows[at] = (idx)(f->entry[e] / f->s);
      memcpy(b->codes + at * f->d, f->codes + f->entry[e] * f->d, (size_t)f->d * sizeof(real));
    }
  }
  b->start[b->count] = at;
  return OK;
}

static gidx block_of(const struct fit *f, idx row)
{
  return (f->first + row) / ROW_BLOCK;
}

static int segments_cut(struct batch *b, const struct fit *f)
{
  gidx cuts = 0;
  for (int pass = 0; pass < 2; pass++) {
    if (pass) TRY(arena_take(&b->arena, &b->segment, cuts, sizeof *b->segment));
    for (idx m = 0; m < b->count; m++)
      for (gidx i = b->start[m]; i < b->start[m + 1]; i++) {
        gidx block = block_of(f, b->rows[i]);
        int begins = i == b->start[m] || block_of(f, b->rows[i - 1]) != block;
        if (!pass) {
          cuts += begins;
          continue;
        }
        if (begins) b->segment[b->segments++] = (struct segment){m, 0, block, i};
        b->segment[b->segments - 1].n++;
      }
  }
  return OK;
}

static int counts_find(struct batch *b, const struct fit *f)
{
  int size = f->c->size;
  idx m = 0;
  TRY(arena_take(&b->arena, &b->whole, (gidx)b->mine + 1, sizeof *b->whole));
  TRY(arena_take(&b->arena, &b->send, size, sizeof *b->send));
  TRY(arena_take(&b->arena, &b->receive, size, sizeof *b->receive));
  for (int r = 0; r < size; r++) {
    b->send[r] = (idx)(b->start[m + b->owned[r]] - b->start[m]);
    m += b->owned[r];
    for (idx i = 0; i < b->mine; i++)
      b->receive[r] += f->counts[(gidx)r * f->k + b->atom[b->mine_first + i]];
  }
  for (idx i = 0; i < b->mine; i++)
    b->whole[i + 1] = b->whole[i] + rows_of(f, b->atom[b->mine_first + i]);
  return OK;
}

static int batch_fill(struct batch *b, const struct fit *f, const idx *atoms)
{
  TRY(members_deal(b, f, atoms));
  TRY(rows_list(b, f));
  TRY(segments_cut(b, f));
  return counts_find(b, f);
}

int batch_make(struct batch *b, const struct fit *f, const idx *atoms, idx count)
{
  *b = (struct batch){.count = count};
  return comm_agree(f->c, batch_fill(b, f, atoms));
}

void batch_free(struct batch *b)
{
  arena_free(&b->arena);
  *b = (struct batch){0};
}

int batch_rows_to_owner(const struct batch *b, const struct fit *f, const real *values, idx width,
                        real *out)
{
  struct comm *c = f->c;
  struct arena arena = {0};
  size_t unit = (size_t)width * sizeof *values;
  real *received;
  if (c->size == 1) {
    memcpy(out, values, (size_t)b->whole[b->mine] * unit);
    return OK;
  }
  TRY(comm_agree(c, arena_take(&arena, &received, b->whole[b->mine] * width, sizeof *received)));
  TRY(comm_exchange(c, values, b->send, received, b->receive, unit));
  gidx *next;
  TRY(comm_agree(c, arena_take(&arena, &next, b->mine, sizeof *next)));
  memcpy(next, b->whole, (size_t)b->mine * sizeof *next);
  const real *from = received;
  for (int r = 0; r < c->size; r++)
    for (idx i = 0; i < b->mine; i++) {
      gidx n = f->counts[(gidx)r * f->k + b->atom[b->mine_first + i]];
      memcpy(out + next[i] * width, from, (size_t)n * unit);
      next[i] += n;
      from += n * width;
    }
  arena_free(&arena);
  return OK;
}

int batch_spread(const struct batch *b, struct comm *c, const void *mine, size_t unit, void *all)
{
  return comm_gather_all(c, mine, b->owned, unit, all);
}
