/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over sum blocks: each rank joins its own blocks as far as possible, and owners complete the
 * trees.
 *
 * A node of a tree is sent as its presence, 1 or 0, and its sums. */
#include "refit/atom_batch_sums.h"

#include "base/status.h"
#include "refit/sums.h"

static int is_active(const struct batch_sums *s, idx member)
{
  return !s->active || s->active[member];
}

/* Allocate the arrays for sums of all members.  A rank sends the nodes that its own sum blocks join
 * to; an owner receives the nodes of every rank. */
static int sums_alloc(struct batch_sums *s, idx width)
{
  const struct refit_state *f = s->f;
  gidx nodes = 0, first, blocks, unit = 1 + (gidx)width;
  for (int r = 0; r < f->c->size; r++) {
    refit_blocks_partition(f->total, f->c->size, r, &first, &blocks);
    nodes += block_nodes_count(first, blocks);
  }
  gidx sent = s->b->count * (gidx)block_nodes_count(f->block_first, f->blocks);
  TRY(arena_alloc(&s->arena, &s->send, f->c->size, sizeof *s->send));
  TRY(arena_alloc(&s->arena, &s->receive, f->c->size, sizeof *s->receive));
  TRY(arena_alloc(&s->arena, &s->from, f->c->size, sizeof *s->from));
  TRY(arena_alloc(&s->arena, &s->out, sent * unit, sizeof *s->out));
  TRY(arena_alloc(&s->arena, &s->in, s->b->mine * nodes * unit, sizeof *s->in));
  int depth = refit_sums_depth(f->total, f->c->size, f->c->rank);
  return block_tree_deep(&s->tree, &s->arena, width, depth);
}

int atom_batch_sums_bytes(const struct atom_batch *b, const struct refit_state *f, idx width,
                          gidx *bytes)
{
  struct batch_sums s = {.b = b, .f = f, .arena.is_dry = 1};
  TRY(sums_alloc(&s, width));
  *bytes = (gidx)s.arena.bytes;
  return OK;
}

int batch_sums_open(struct batch_sums *s, const struct atom_batch *b, const struct refit_state *f,
                    idx width)
{
  *s = (struct batch_sums){.b = b, .f = f};
  TRY(sums_alloc(s, width));
  s->is_open = 1;
  return OK;
}

void batch_sums_close(struct batch_sums *s)
{
  arena_free(&s->arena);
}

/* How many of the `count` members from `first` on are active. */
static gidx active_count(const struct batch_sums *s, idx first, idx count)
{
  gidx active = 0;
  for (idx m = first; m < first + count; m++) active += is_active(s, m);
  return active;
}

/* send[], receive[] <- numbers of nodes sent to, and received from, each rank; from[r] <- where the
 * nodes from rank r begin in `in`. */
static int counts_find(struct batch_sums *s)
{
  const struct atom_batch *b = s->b;
  const struct refit_state *f = s->f;
  gidx own = active_count(s, b->mine_first, b->mine), first, blocks;
  const real *from = s->in;
  idx m = 0;
  for (int r = 0; r < f->c->size; r++) {
    refit_blocks_partition(f->total, f->c->size, r, &first, &blocks);
    gidx members = active_count(s, m, b->owned[r]);
    TRY(comm_count(members * block_nodes_count(f->block_first, f->blocks), &s->send[r]));
    TRY(comm_count(own * block_nodes_count(first, blocks), &s->receive[r]));
    s->from[r] = from;
    from += (gidx)s->receive[r] * (1 + s->tree.width);
    m += b->owned[r];
  }
  return OK;
}

/* Join the segments of a member, from *segment on, and write the remaining nodes to *to. */
static void member_join(struct batch_sums *s, idx member, gidx *segment, const real *values,
                        real **to)
{
  const struct atom_batch *b = s->b;
  s->tree.count = 0;
  for (gidx i = 0; i < s->f->blocks; i++) {
    struct block_node node = {.index = s->f->block_first + i};
    const struct segment *next = b->segment + *segment;
    node.present = *segment < b->segments && next->member == member && next->block == node.index;
    block_tree_push(&s->tree, node, values + *segment * s->tree.width);
    *segment += node.present;
  }
  for (int i = 0; i < s->tree.count; i++) {
    const real *from = s->tree.values + (gidx)i * s->tree.width;
    *(*to)++ = s->tree.node[i].present;
    for (idx v = 0; v < s->tree.width; v++) *(*to)++ = s->tree.node[i].present ? from[v] : 0;
  }
}

/* Write the nodes of all active members to `out`, member by member. */
static void sums_send(struct batch_sums *s, const real *values)
{
  const struct atom_batch *b = s->b;
  real *to = s->out;
  gidx segment = 0;
  for (idx m = 0; m < b->count; m++) {
    if (is_active(s, m)) member_join(s, m, &segment, values, &to);
    while (segment < b->segments && b->segment[segment].member == m) segment++;
  }
}

/* Sum up the next active member: its nodes from rank r are at from[r], which moves on. */
static void member_complete(struct batch_sums *s, real *out)
{
  gidx first, blocks;
  s->tree.count = 0;
  for (int r = 0; r < s->f->c->size; r++) {
    refit_blocks_partition(s->f->total, s->f->c->size, r, &first, &blocks);
    for (gidx end = first + blocks; first < end;) {
      struct block_node node = block_node_next(first, end);
      first += (gidx)1 << node.level;
      node.present = s->from[r][0] != 0;
      block_tree_push(&s->tree, node, s->from[r] + 1);
      s->from[r] += 1 + s->tree.width;
    }
  }
  block_tree_total(&s->tree, out);
}

/* Write the nodes to be sent, and count those to be received. */
static int sums_prepare(struct batch_sums *s, const real *values)
{
  TRY(counts_find(s));
  sums_send(s, values);
  return OK;
}

int batch_sums_to_owner(struct batch_sums *s, const real *values, idx width, const idx *active,
                        real *out)
{
  const struct atom_batch *b = s->b;
  struct comm *c = s->f->c;
  size_t unit = (1 + (size_t)width) * sizeof *values;
  s->active = active;
  s->tree.width = width;
  /* A rank that has failed but has memory knows the counts, too, and sends what it has. */
  int status = s->is_open ? sums_prepare(s, values) : OK;
  if (!comm_failure(c)) comm_record(c, status);
  TRY(comm_alltoallv(c, s->out, s->send, s->in, s->receive, unit));
  for (idx i = 0; i < b->mine; i++)
    if (is_active(s, b->mine_first + i)) member_complete(s, out + (gidx)i * width);
  return OK;
}
