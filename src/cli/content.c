/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank reads its share piece by piece; terms are added, so that no order matters. */
#include "cli/content.h"

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/access.h"
#include "model/identity.h"

enum { PIECE_BYTES = 16 << 20 }; /* read at a time */

static idx piece_rows(const struct row_source *rows)
{
  gidx fit = 1 + PIECE_BYTES / ((gidx)rows->p * (gidx)sizeof(float));
  return (idx)imin(imin(ROW_BLOCK, rows->n), fit);
}

/* The terms of this rank's share; x has room for a piece. */
static int share_read(const struct comm *c, const struct row_source *rows, float *x,
                      uint64_t *terms)
{
  struct worker worker;
  gidx first, count;
  int status = OK;
  comm_share(rows->n, c->size, c->rank, &first, &count);
  TRY(worker_open(&worker));
  for (gidx end = first + count, n; first < end && !status; first += n) {
    n = imin(piece_rows(rows), end - first);
    status = rows_access(&worker, (struct rows_access){rows, first, n, x});
    if (!status) *terms += items_terms(x, n, rows->p, first);
  }
  worker_close(&worker);
  return status;
}

int rows_content(struct comm *c, const struct row_source *rows, uint64_t *terms)
{
  struct arena arena = {0};
  uint64_t own = 0;
  float *x;
  int status = arena_alloc(&arena, &x, (gidx)piece_rows(rows) * rows->p, sizeof *x);
  if (!status) status = share_read(c, rows, x, &own);
  arena_free(&arena);
  TRY(comm_agree(c, status)); /* ranks ascend with their rows */
  gidx sum = (gidx)own;
  TRY(comm_sum(c, &sum, 1));
  *terms = (uint64_t)sum;
  return OK;
}
