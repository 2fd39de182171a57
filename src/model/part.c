/* SPDX-License-Identifier: BSD-3-Clause
 * The nodes of all parts are pushed on one tree; where the first does not begin at row 0, absent
 * ones come before. */
#include "model/part.h"

#include "base/block_tree.h"
#include "base/status.h"

idx part_width(idx p)
{
  return 2 * p + 2;
}

/* Push the nodes of blocks first .. end - 1: values[] of each, or with NULL absent ones. */
static void nodes_push(struct block_tree *t, gidx first, gidx end, const real *values)
{
  while (first < end) {
    struct block_node node = block_node_next(first, end);
    node.present = values != NULL;
    block_tree_push(t, node, values);
    if (values) values += t->width;
    first += (gidx)1 << node.level;
  }
}

int part_sums_total(const struct part_sums *const *parts, int count, real *total)
{
  struct arena arena = {0};
  struct block_tree tree;
  const struct part_sums *last = parts[count - 1];
  int status = block_tree_init(&tree, &arena, part_width(last->p), 0, last->first + last->count);
  if (!status) {
    nodes_push(&tree, 0, parts[0]->first, NULL);
    for (int i = 0; i < count; i++)
      nodes_push(&tree, parts[i]->first, parts[i]->first + parts[i]->count, parts[i]->values);
    block_tree_total(&tree, total);
  }
  arena_free(&arena);
  return status;
}

void part_metrics(struct metrics *m, const real *total, gidx n, idx p, gidx nonzero)
{
  const real *sums = total, *squares = total + p;
  real tss = 0;
  for (idx c = 0; c < p; c++) tss += n ? squares[c] - sums[c] * sums[c] / (real)n : 0;
  m->n = n;
  m->p = p;
  metrics_fit(m, total[2 * p], tss, total[2 * p + 1], nonzero);
}
