/* SPDX-License-Identifier: BSD-3-Clause
 * Freeing a result, and the order of cross pairs. */
#include "model/terminal.h"

void terminal_result_free(struct terminal_result *r)
{
  artifact_free(&r->artifact);
  arena_free(&r->arena);
  *r = (struct terminal_result){0};
}

int cross_before(const struct cross *a, const struct cross *b)
{
  if (a->strength != b->strength) return a->strength > b->strength;
  if (a->first != b->first) return a->first < b->first;
  return a->second < b->second;
}
