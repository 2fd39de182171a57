/* SPDX-License-Identifier: BSD-3-Clause
 * They are encoded, and the codes go nowhere. */
#include "fit/judge.h"

#include <math.h>

#include "base/num.h"
#include "base/status.h"
#include "encode/encode.h"
#include "encode/shard.h"

static int nothing_write(void *self, const struct support_block *block)
{
  (void)self, (void)block;
  return OK;
}

static int variance_check(const struct judge_task *t, real explained)
{
  CHECK(!isnan(explained), ERR_INPUT,
        "the held-out rows of '%s' do not vary: their explained variance is not defined",
        t->rows->name);
  return OK;
}

int judge_rows(const struct judge_task *t, struct comm *c, real *explained, uint64_t *hash)
{
  const struct support_sink nowhere = {NULL, nothing_write};
  struct encode_result result;
  idx k = t->atoms->k;
  *explained = nan_canonical();
  *hash = 0;
  if (t->rows->n == 0) return OK;
  struct encode_task task = {.rows = t->rows,
                             .atoms = t->atoms,
                             .mean = t->mean,
                             .sink = &nowhere,
                             .top_s = t->top_s,
                             .rounds = (idx)imin(t->rounds, t->top_s),
                             .tile = (idx)imin(tile_width_default(k, c->size), k),
                             .threads = t->threads,
                             .device = "cpu",
                             .variant = t->variant,
                             .filter = t->filter,
                             .codes = 1,
                             .nonnegative = t->nonnegative};
  task.block = encode_block_rows(&task, c->size);
  TRY(encode_run(&task, c, &result));
  *explained = result.metrics.explained_variance;
  *hash = result.inputs.rows;
  encode_free(&result);
  return comm_agree(c, c->rank ? OK : variance_check(t, *explained));
}
