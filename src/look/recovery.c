/* SPDX-License-Identifier: BSD-3-Clause
 * Codes and truth are read in blocks of the same rows. */
#include "look/recovery.h"

#include "base/num.h"
#include "base/status.h"

/* Add the rows of a block to the counts.  supports_block() has limited the codes and the truth of
 * the block to a few million entries each. */
static int block_count(const struct recovery_task *t, gidx first, gidx n, struct supports *codes,
                       struct supports *truth, struct recovery_counts *counts)
{
  TRY(supports_load(codes, t->codes, first, n, 1));
  TRY(supports_load(truth, t->truth, first, n, 1));
  const gidx *a = codes->view.start, *b = truth->view.start;
  for (gidx i = 0; i < n; i++)
    recovery_count(counts, a[i + 1] - a[i], codes->view.atoms + a[i], codes->codes + a[i],
                   b[i + 1] - b[i], truth->view.atoms + b[i], truth->codes + b[i]);
  return OK;
}

static int blocks_count(const struct recovery_task *t, struct recovery_counts *counts)
{
  gidx n = t->codes->n, begin;
  for (gidx first = 0, count; first < n; first += count) {
    struct supports codes = {0}, truth = {0};
    TRY(supports_block(t->truth, first, n - first, &count, &begin));
    TRY(supports_block(t->codes, first, count, &count, &begin));
    int status = block_count(t, first, count, &codes, &truth, counts);
    supports_free(&codes);
    supports_free(&truth);
    TRY(status);
  }
  return OK;
}

int recovery_run(const struct recovery_task *t, struct recovery *result)
{
  struct arena arena = {0};
  struct recovery_counts counts;
  int status = recovery_init(&counts, t->codes->k, t->truth->k, &arena);
  counts.nearest = t->nearest;
  if (!status) status = blocks_count(t, &counts);
  if (!status) recovery_finish(&counts, result);
  arena_free(&arena);
  return status;
}
