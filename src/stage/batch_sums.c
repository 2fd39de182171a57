/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over row blocks: each rank joins what its own blocks allow, owners complete the trees.
 *
 * A node travels as its presence, 1 or 0, and its sums. */
#include "base/block_tree.h"
#include "base/status.h"
#include "stage/batch.h"

struct sums {
  const struct batch *b;
  const struct fit *f;
  const idx *active;
  idx width;
  struct arena arena;
  struct block_tree tree; /* of own blocks, then of all */
  real *out, *in;         /* nodes sent and received */
  idx *send, *receive;    /* [size] nodes */
};

static int is_active(const struct sums *s, idx member)
{
  return !s->active || s->active[member];
}

static int sums_take(struct sums *s)
{
  const struct batch *b = s->b;
  const struct comm *c = s->f->c;
  gidx sent = 0, received = 0, first, blocks, unit = 1 + (gidx)s->width;
  int mine = block_nodes_count(s->f->block_first, s->f->blocks);
  TRY(arena_take(&s->arena, &s->send, c->size, sizeof *s->send));
  TRY(arena_take(&s->arena, &s->receive, c->size, sizeof *s->receive));
  for (idx m = 0, r = 0, of_r = 0; m < b->count; m++, of_r++) {
    for (; of_r == b->owned[r]; r++) of_r = 0;
    s->send[r] += is_active(s, m) ? mine : 0;
    sent += is_active(s, m) ? mine : 0;
  }
  for (int r = 0; r < c->size; r++) {
    fit_share(s->f->total, c->size, r, &first, &blocks);
    for (idx i = 0; i < b->mine; i++)
      s->receive[r] += is_active(s, b->mine_first + i) ? block_nodes_count(first, blocks) : 0;
    received += s->receive[r];
  }
  TRY(arena_take(&s->arena, &s->out, sent * unit, sizeof *s->out));
  return arena_take(&s->arena, &s->in, received * unit, sizeof *s->in);
}

/* Join the segments of a member and put the nodes that are left at *to. */
static void member_join(struct sums *s, idx member, gidx *segment, const real *values, real **to)
{
  const struct batch *b = s->b;
  s->tree.count = 0;
  for (gidx i = 0; i < s->f->blocks; i++) {
    struct block_node node = {.index = s->f->block_first + i};
    const struct segment *next = b->segment + *segment;
    node.present = *segment < b->segments && next->member == member && next->block == node.index;
    block_tree_push(&s->tree, node, values + *segment * s->width);
    *segment += node.present;
  }
  for (int i = 0; i < s->tree.count; i++) {
    const real *from = s->tree.values + (gidx)i * s->width;
    *(*to)++ = s->tree.node[i].present;
    for (idx v = 0; v < s->width; v++) *(*to)++ = s->tree.node[i].present ? from[v] : 0;
  }
}

static void sums_send(struct sums *s, const real *values)
{
  const struct batch *b = s->b;
  real *to = s->out;
  gidx segment = 0;
  for (idx m = 0; m < b->count; m++) {
    if (is_active(s, m)) member_join(s, m, &segment, values, &to);
    while (segment < b->segments && b->segment[segment].member == m) segment++;
  }
}

/* The nodes that came from rank r for each active member, from[r] on, go into the member's tree. */
static void member_complete(struct sums *s, const real **from, real *out)
{
  gidx first, blocks;
  s->tree.count = 0;
  for (int r = 0; r < s->f->c->size; r++) {
    fit_share(s->f->total, s->f->c->size, r, &first, &blocks);
    for (gidx end = first + blocks; first < end;) {
      struct block_node node = block_node_next(first, end);
      first += (gidx)1 << node.level;
      node.present = from[r][0] != 0;
      block_tree_push(&s->tree, node, from[r] + 1);
      from[r] += 1 + s->width;
    }
  }
  block_tree_total(&s->tree, out);
}

static int sums_complete(struct sums *s, real *out)
{
  const struct batch *b = s->b;
  const real **from, *at = s->in;
  TRY(arena_take(&s->arena, &from, s->f->c->size, sizeof *from));
  for (int r = 0; r < s->f->c->size; r++) {
    from[r] = at;
    at += (gidx)s->receive[r] * (1 + s->width);
  }
  for (idx i = 0; i < b->mine; i++)
    if (is_active(s, b->mine_first + i)) member_complete(s, from, out + (gidx)i * s->width);
  return OK;
}

int batch_sums_to_owner(const struct batch *b, const struct fit *f, const real *values, idx width,
                        const idx *active, real *out)
{
  struct sums s = {.b = b, .f = f, .active = active, .width = width};
  size_t unit = (1 + (size_t)width) * sizeof *values;
  gidx first, blocks;
  fit_share(f->total, f->c->size, f->c->size - 1, &first, &blocks);
  int status = sums_take(&s);
  if (!status) status = block_tree_init(&s.tree, &s.arena, width, 0, first + blocks);
  TRY(comm_agree(f->c, status));
  sums_send(&s, values);
  TRY(comm_exchange(f->c, s.out, s.send, s.in, s.receive, unit));
  TRY(comm_agree(f->c, sums_complete(&s, out)));
  arena_free(&s.arena);
  return OK;
}
