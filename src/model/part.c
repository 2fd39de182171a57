/* SPDX-License-Identifier: BSD-3-Clause
 * The nodes of all parts are pushed on one tree (base/block_tree.h).  For a total the tree begins
 * at row 0, so nodes marked absent are pushed for the blocks before the first part. */
#include "model/part.h"

#include "base/block_tree.h"
#include "base/status.h"

idx part_width(idx p)
{
  return 2 * p + 2;
}

/* Push the nodes of blocks first .. end - 1, with values[] for each; values NULL: absent nodes. */
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

/* Join the nodes of all parts. */
static int sums_join(const struct encode_part *const *parts, int count, struct arena *arena,
                     struct part_sums *sums)
{
  struct block_tree tree;
  TRY(block_tree_init(&tree, arena, part_width(sums->p), sums->first, sums->count));
  for (int i = 0; i < count; i++) {
    const struct part_sums *s = &parts[i]->sums;
    nodes_push(&tree, s->first, s->first + s->count, s->values);
  }
  sums->nodes = tree.count;
  sums->values = tree.values;
  return OK;
}

/* Join the norms of all parts; NULL if a part has none. */
static int norms_of(const struct encode_part *const *parts, int count, struct arena *arena,
                    const struct norms **out)
{
  struct norms *all;
  *out = NULL;
  for (int i = 0; i < count; i++)
    if (!parts[i]->norms) return OK;
  TRY(arena_alloc(arena, &all, 1, sizeof *all));
  for (int i = 0; i < count; i++) norms_join(all, parts[i]->norms);
  *out = all;
  return OK;
}

int part_join(const struct encode_part *const *parts, int count, struct arena *arena,
              struct encode_part *whole)
{
  *whole = *parts[0];
  for (int i = 1; i < count; i++) {
    const struct encode_part *part = parts[i];
    whole->n += part->n;
    whole->rows_terms += part->rows_terms;
    whole->fingerprint += part->fingerprint;
    whole->nonzero += part->nonzero;
    whole->codes.all += part->codes.all;
    whole->codes.negative += part->codes.negative;
    whole->codes.zero += part->codes.zero;
    whole->sums.count += part->sums.count;
  }
  TRY(norms_of(parts, count, arena, &whole->norms));
  return whole->shift ? sums_join(parts, count, arena, &whole->sums) : OK;
}

/* total[part_width(p)] <- the sums over a part; rows outside of it are absent. */
static int sums_total(const struct part_sums *s, struct arena *arena, real *total)
{
  struct block_tree tree;
  TRY(block_tree_init(&tree, arena, part_width(s->p), 0, s->first + s->count));
  nodes_push(&tree, 0, s->first, NULL);
  nodes_push(&tree, s->first, s->first + s->count, s->values);
  block_tree_total(&tree, total);
  return OK;
}

int part_metrics(struct metrics *m, const struct encode_part *part)
{
  struct arena arena = {0};
  idx p = part->p;
  real *total, tss = 0;
  int status = arena_alloc(&arena, &total, part_width(p), sizeof *total);
  if (!status) status = sums_total(&part->sums, &arena, total);
  if (!status) {
    const real *sums = total, *squares = total + p;
    for (idx c = 0; c < p; c++) tss += part->n ? squares[c] - sums[c] * sums[c] / (real)part->n : 0;
    m->n = part->n;
    m->p = p;
    metrics_fit(m, total[2 * p], tss, total[2 * p + 1], part->nonzero);
    metrics_codes(m, &part->codes);
    metrics_rows(m, part->norms, tss);
  }
  arena_free(&arena);
  return status;
}
