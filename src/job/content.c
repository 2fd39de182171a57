/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank reads its share piece by piece; terms are added, so that no order matters. */
#include "job/content.h"

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/access.h"
#include "model/identity.h"

enum { PIECE_BYTES = 16 << 20 }; /* read at a time */

/* How many items of a width are read at a time. */
static idx piece_of(gidx width)
{
  return (idx)imin(ROW_BLOCK, 1 + PIECE_BYTES / (width * (gidx)sizeof(float)));
}

static int terms_sum(struct comm *c, uint64_t own, uint64_t *terms)
{
  gidx sum = (gidx)own;
  TRY(comm_sum(c, &sum, 1));
  *terms = (uint64_t)sum;
  return OK;
}

/* The terms of this rank's share of the rows. */
static int rows_terms(const struct comm *c, struct row_reader *r, gidx place, uint64_t *terms)
{
  gidx first, count;
  comm_share(r->rows->n, c->size, c->rank, &first, &count);
  for (gidx end = first + count, n; first < end; first += n) {
    n = imin(r->most, end - first);
    TRY(row_reader_take(r, first, n, first + n, end - first - n));
    *terms += items_terms(r->x, n, r->rows->p, place + first);
  }
  return OK;
}

/* The same of the atoms. */
static int atoms_terms(const struct comm *c, const struct atom_source *atoms, float *x,
                       uint64_t *terms)
{
  gidx first, count, frame = (gidx)atoms->d * atoms->p;
  idx piece = piece_of(frame);
  comm_share(atoms->k, c->size, c->rank, &first, &count);
  for (gidx end = first + count, n; first < end; first += n) {
    n = imin(piece, end - first);
    TRY(atoms->read(atoms->self, (idx)first, (idx)n, x));
    *terms += items_terms(x, n, frame, first);
  }
  return OK;
}

int rows_content(struct comm *c, const struct row_source *rows, gidx first, uint64_t *terms)
{
  struct arena arena = {0};
  struct row_reader reader = {0};
  uint64_t own = 0;
  int status = row_reader_open(&reader, rows, &arena);
  if (!status) status = rows_terms(c, &reader, first, &own);
  row_reader_close(&reader);
  arena_free(&arena);
  TRY(comm_agree(c, status)); /* ranks ascend with their rows */
  return terms_sum(c, own, terms);
}

int atoms_content(struct comm *c, const struct atom_source *atoms, uint64_t *terms)
{
  struct arena arena = {0};
  gidx frame = (gidx)atoms->d * atoms->p;
  uint64_t own = 0;
  float *x;
  int status = arena_alloc(&arena, &x, imin(piece_of(frame), atoms->k) * frame, sizeof *x);
  if (!status) status = atoms_terms(c, atoms, x, &own);
  if (!status && c->rank == 0 && atoms->confirm) status = atoms->confirm(atoms->self);
  arena_free(&arena);
  TRY(comm_agree(c, status));
  return terms_sum(c, own, terms);
}
