/* SPDX-License-Identifier: BSD-3-Clause
 * solutions.h5: steps, and one array for each member of an outcome. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/schema.h"
#include "io/systems.h"

enum { SLACK_BYTES = 16 << 20 };

/* A member of struct arrow_outcome: a real, a gidx, or an int when it is 4 bytes. */
static const struct outcome_row {
  const char *path;
  size_t offset, bytes;
} outcome_rows[OUTCOME_ARRAYS] = {
#define MEMBER(path, name)                                                                         \
  {                                                                                                \
    path, offsetof(struct arrow_outcome, name), sizeof(((struct arrow_outcome *)0)->name)          \
  }
    MEMBER("/solutions/log_det_hessian", log_det),
    MEMBER("/solutions/log_det_mantissa", pair.m),
    MEMBER("/solutions/log_det_exponent", pair.e),
    MEMBER("/solutions/status", status),
    MEMBER("/solutions/failed_at", failed_at),
    MEMBER("/solutions/suggested_bump", suggested_bump),
    MEMBER("/solutions/ridge_t", ridge_t),
    MEMBER("/solutions/ridge_beta", ridge_b),
    MEMBER("/solutions/retries", retries),
};

gidx solutions_bytes(const struct systems_shape *s)
{
  double reals = (double)s->g[s->count] + (double)s->border[s->count] + 8 * (double)s->count;
  return (gidx)(8 * reals * (1 + 0x1p-10)) + SLACK_BYTES;
}

static int outcomes_write(struct solutions_result *r, const struct solution_block *block,
                          char *column)
{
  for (int i = 0; i < OUTCOME_ARRAYS; i++) {
    const struct outcome_row *row = &outcome_rows[i];
    for (gidx a = 0; a < block->count; a++)
      memcpy(column + (size_t)a * row->bytes, (const char *)(block->outcomes + a) + row->offset,
             row->bytes);
    TRY(h5_array_write(&r->outcomes[i], block->first, block->count, column));
  }
  return OK;
}

static int block_write(void *self, const struct solution_block *block)
{
  struct solutions_result *r = self;
  const gidx *g = r->shape->g, *border = r->shape->border;
  gidx first = block->first, end = first + block->count;
  TRY(h5_array_write(&r->step_t, g[first], g[end] - g[first], block->step_t));
  TRY(h5_array_write(&r->step_b, border[first], border[end] - border[first], block->step_b));
  char *column = malloc((size_t)block->count * sizeof(real) + 1);
  CHECK(column, ERR_MEMORY, "cannot allocate %lld bytes", (long long)block->count * 8);
  int status = outcomes_write(r, block, column);
  free(column);
  return status;
}

int solutions_create(struct solutions_result *r, const char *path,
                     const struct systems_shape *shape, const struct arrow_options *options)
{
  memset(r, 0, sizeof *r);
  r->shape = shape;
  r->sink = (struct solution_sink){r, block_write};
  const struct h5_file *h5 = &r->result.h5;
  gidx count = shape->count;
  TRY(result_create(&r->result, path, solutions_bytes(shape)));
  TRY(h5_attribute_text(h5, "/", "kind", "solutions"));
  TRY(h5_attribute_real(h5, "/", "ridge_t", options->ridge_t));
  TRY(h5_attribute_real(h5, "/", "ridge_b", options->ridge_b));
  TRY(h5_attribute_long(h5, "/", "escalate", options->escalate));
  TRY(object_create(h5, "/solutions/delta_t", 1, &shape->g[count], 0, &r->step_t));
  TRY(object_create(h5, "/solutions/delta_beta", 1, &shape->border[count], 0, &r->step_b));
  for (int i = 0; i < OUTCOME_ARRAYS; i++)
    TRY(object_create(h5, outcome_rows[i].path, 1, &count, 0, &r->outcomes[i]));
  return OK;
}

int solutions_finish(struct solutions_result *r, const struct run_fact *facts, int n_facts)
{
  TRY(h5_array_close(&r->step_t));
  TRY(h5_array_close(&r->step_b));
  for (int i = 0; i < OUTCOME_ARRAYS; i++) TRY(h5_array_close(&r->outcomes[i]));
  TRY(result_publish(&r->result, facts, n_facts));
  return OK;
}
