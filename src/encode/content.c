/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank reads its share piece by piece; terms are added, so their order does not matter. */
#include "encode/content.h"

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/access.h"
#include "model/identity.h"

/* The terms of this rank's share of the rows. */
static int rows_terms(const struct comm *c, struct row_reader *r, gidx place, uint64_t *terms)
{
  gidx first, count;
  comm_partition(r->rows->n, c->size, c->rank, &first, &count);
  for (gidx end = first + count, n; first < end; first += n) {
    n = imin(r->most, end - first);
    TRY(row_reader_take(r, first, n, first + n, end - first - n));
    *terms += items_terms(r->x, n, r->rows->p, place + first);
  }
  return OK;
}

int rows_content(struct comm *c, const struct row_source *rows, gidx first, uint64_t *terms)
{
  struct arena arena = {0};
  struct row_reader reader = {0};
  int status = row_reader_open(&reader, rows, &arena);
  *terms = 0;
  if (!status) status = rows_terms(c, &reader, first, terms);
  row_reader_close(&reader);
  arena_free(&arena);
  TRY(comm_agree(c, status)); /* the lowest rank with an error has the first bad row */
  gidx sum = (gidx)*terms;
  TRY(comm_sum(c, &sum, 1));
  *terms = (uint64_t)sum;
  return OK;
}

/* Atoms read as rows of d P numbers each. */
static int frames_read(void *self, gidx first, idx count, float *out)
{
  const struct atom_source *atoms = self;
  return atoms->read(atoms->self, (idx)first, count, out);
}

int atoms_content(struct comm *c, const struct atom_source *atoms, uint64_t *terms)
{
  const struct row_source frames = {.n = atoms->k,
                                    .p = atoms->d * atoms->p,
                                    .name = atoms->name,
                                    .self = (void *)atoms,
                                    .read = frames_read};
  TRY(rows_content(c, &frames, 0, terms));
  return comm_agree(c, c->rank || !atoms->confirm ? OK : atoms->confirm(atoms->self));
}
