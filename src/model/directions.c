/* SPDX-License-Identifier: BSD-3-Clause
 * Candidates are computed one after another.  Rows are summed one after another inside a sum block,
 * and blocks by the tree of (N.0), which leaves out blocks without rows. */
#include "model/directions.h"

#include <math.h>
#include <string.h>

#include "base/block_tree.h"
#include "base/sums.h"
#include "base/status.h"
#include "model/dictionary.h"

/* Subtract from v its components along the unit vectors b[count][p]; parts[count] has the sizes of
 * these components. */
static void project_out(const real *b, const real *parts, idx count, idx p, real *v)
{
  for (idx i = 0; i < count; i++)
    for (idx c = 0; c < p; c++) v[c] = fma(-parts[i], b[(gidx)i * p + c], v[c]);
}

int direction_keep(const real *frame, idx d, const real *kept, idx count, idx p, real *candidate)
{
  real before = sqrt(lane_product(candidate, candidate, p));
  real along_frame[MAX_FRAME], along_kept[MAX_DIRECTIONS];
  for (int pass = 0; pass < 2; pass++) {
    for (idx m = 0; m < d; m++) along_frame[m] = lane_product(frame + (gidx)m * p, candidate, p);
    for (idx j = 0; j < count; j++) along_kept[j] = lane_product(kept + (gidx)j * p, candidate, p);
    project_out(frame, along_frame, d, p, candidate);
    project_out(kept, along_kept, count, p, candidate);
  }
  real norm = sqrt(lane_product(candidate, candidate, p));
  if (!(norm > DIRECTION_TOLERANCE * before) || !isfinite(norm)) return 0;
  for (idx c = 0; c < p; c++) candidate[c] /= norm;
  return 1;
}

/* out[p] <- sum_i r_i weight[i * stride] by (N.0). */
static int rows_sum(const struct atom_view *a, const real *weight, idx stride, real *out)
{
  struct arena arena = {0};
  struct block_tree tree;
  real *chain;
  gidx blocks = a->n ? a->row[a->n - 1] / ROW_BLOCK + 1 : 0, i = 0;
  int status = block_tree_init(&tree, &arena, a->p, 0, blocks);
  if (!status) status = arena_alloc(&arena, &chain, a->p, sizeof *chain);
  for (gidx block = 0; block < blocks && !status; block++) {
    struct block_node node = {.index = block};
    memset(chain, 0, (size_t)a->p * sizeof *chain);
    for (; i < a->n && a->row[i] / ROW_BLOCK == block; i++) {
      node.present = 1;
      for (idx c = 0; c < a->p; c++)
        chain[c] = fma(a->residual[i][c], weight[i * stride], chain[c]);
    }
    block_tree_push(&tree, node, chain);
  }
  if (!status) block_tree_total(&tree, out);
  arena_free(&arena);
  return status;
}

/* out[p] <- candidate number `at`; weight[n] is work space. */
static int candidate_find(const struct atom_view *a, const real *e, idx at, real *weight, real *out)
{
  if (at < a->d) return rows_sum(a, a->codes + at, a->d, out);
  for (gidx i = 0; i < a->n; i++)
    weight[i] = lane_product(a->residual[i], e + (gidx)(at - a->d) * a->p, a->p);
  return rows_sum(a, weight, 1, out);
}

int directions_reference(const struct atom_view *a, idx q, real *e, idx *kept)
{
  struct arena arena = {0};
  real *weight;
  int status = arena_alloc(&arena, &weight, a->n, sizeof *weight);
  *kept = 0;
  for (idx at = 0; at < a->d + *kept && *kept < q && !status; at++) {
    real *candidate = e + (gidx)*kept * a->p;
    status = candidate_find(a, e, at, weight, candidate);
    if (!status) *kept += direction_keep(a->frame, a->d, e, *kept, a->p, candidate);
  }
  arena_free(&arena);
  return status;
}
