/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: ranks of a joint update have the bits of the reference, over rows of several sum blocks,
 * and receive exactly the bytes of the formula.  A rank receives its columns of the other ranks'
 * rows once, lists once per update, and rows of the Gram matrix once per pass.  If ranks of a node
 * share memory, the node receives lists and rows of the Gram matrix once.
 * RUN: np=1 2 3 7 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "comm/comm.h"
#include "device/device.h"
#include "fit/update.h"
#include "model/normal.h"
#include "model/state.h"
#include "refit/state.h"
#include "tap.h"

enum { N = 9 * ROW_BLOCK + 100, P = 13, K = 150, S = 3, PASSES = 2 };
static const real BETA = 0.5;

/* node_ranks ranks form a node.  0: all ranks form one node, and each has its own lists.  The
 * program finds its nodes by MPI_Comm_split_type(), which is replaced here. */
static int node_ranks;
int MPI_Comm_split_type(MPI_Comm ranks, int type, int key, MPI_Info info, MPI_Comm *node)
{
  int rank;
  (void)type, (void)info;
  MPI_Comm_rank(ranks, &rank);
  return MPI_Comm_split(ranks, node_ranks ? rank / node_ranks : 0, key, node);
}

/* The rows, supports and codes of all ranks, and the results of the reference. */
static idx slots[2][N * S];
static float codes[2][N * S], x[N * P];
static real gram[K * K], target[K * P], atoms[K * P];

/* Draw the rows, and their supports and codes before each of two updates. */
static void problem_fill(void)
{
  for (int u = 0; u < 2; u++)
    for (gidx i = 0; i < N * S; i++) {
      slots[u][i] = (idx)((i / S * (7 + u) + i % S * 41) % K);
      codes[u][i] = (float)random_normal(1, 1 + (uint64_t)u, (uint64_t)i);
    }
  for (gidx i = 0; i < N * P; i++) x[i] = (float)random_normal(1, 3, (uint64_t)i);
}

static void frame_scale(real *frame)
{
  real norm = sqrt(chain_dot(frame, frame, P));
  for (idx c = 0; c < P; c++) frame[c] /= norm;
}

static void problem_answer(void)
{
  for (int u = 0; u < 2; u++) {
    const struct normal_rows rows = {N, S, P, slots[u], codes[u], x};
    if (u) normal_decay(BETA, K * K, gram);
    if (u) normal_decay(BETA, K * P, target);
    normal_add(&rows, K, gram, target);
  }
  for (gidx i = 0; i < K * P; i++) atoms[i] = random_normal(1, 4, (uint64_t)i);
  for (int i = 0; i < PASSES; i++) normal_descend(gram, target, K, P, atoms);
  for (idx a = 0; a < K; a++) frame_scale(atoms + a * P);
}

/* The state of a rank. */
struct side {
  struct refit_task task;
  struct refit_state state;
  struct device device;
  struct update update;
  struct atom_step steps[K];
  double received[3]; /* bytes received in each of two updates, and while atoms move */
};

static struct buffer part_of(void *all, gidx first, gidx n, gidx unit)
{
  char *at = (char *)all + first * unit;
  return (struct buffer){.host = at, .device = at, .bytes = n * unit};
}

static int side_add(struct side *e, int u)
{
  const struct refit_state *f = &e->state;
  const struct buffer own_slots = part_of(slots[u], f->first, f->n, S * sizeof(idx));
  const struct buffer own_codes = part_of(codes[u], f->first, f->n, S * sizeof(float));
  const struct buffer own_x = part_of(x, f->first, f->n, P * sizeof(float));
  const struct update_rows rows = {&own_slots, &own_codes, &own_x};
  double before = f->c->bytes;
  TRY(update_add(&e->update, &rows, u ? BETA : 0));
  e->received[u] = f->c->bytes - before;
  return OK;
}

static int side_run(struct side *e, struct comm *c, int shares)
{
  struct device_options options = {.p = P, .d = 1, .threads = 1, .variant = "auto", .kind = "cpu"};
  gidx first, n = refit_rows_partition(N, c->size, c->rank, &first);
  e->task.shares_gram = shares;
  e->state = (struct refit_state){.task = &e->task,
                                  .c = c,
                                  .k = K,
                                  .d = 1,
                                  .p = P,
                                  .s = S,
                                  .total = N,
                                  .first = first,
                                  .n = (idx)n,
                                  .frames = calloc(K * P, sizeof(real))};
  for (gidx i = 0; i < K * P; i++) e->state.frames[i] = random_normal(1, 4, (uint64_t)i);
  TRY(comm_agree(c, device_open(&e->device, &options)));
  TRY(comm_agree(c, update_open(&e->update, &e->state, &e->device, N)));
  for (int u = 0; u < 2; u++) TRY(side_add(e, u));
  double before = c->bytes;
  TRY(update_apply(&e->update, PASSES, e->steps));
  e->received[2] = c->bytes - before;
  return OK;
}

static int sums_same(struct side *e)
{
  const real *all_gram, *all_target;
  if (update_get(&e->update, &all_gram, &all_target)) return 0;
  if (e->state.c->rank) return 1;
  return !memcmp(all_gram, gram, sizeof gram) && !memcmp(all_target, target, sizeof target);
}

/* The bytes that a rank receives of the rows of other ranks: its own columns. */
static double columns_bytes(const struct side *e)
{
  const struct update *u = &e->update;
  return (double)(u->end - u->begin) * sizeof(float) * (double)(N - e->state.n);
}

/* The bytes of lists that a rank receives.  Each rank of a node receives the lists of some ranks of
 * other nodes, for all ranks of its node. */
static double lists_bytes(const struct side *e)
{
  const struct comm *c = e->state.c;
  gidx first, rows = N - e->state.n;
  int node = node_ranks ? c->rank / node_ranks : 0, begin = node * node_ranks;
  int ranks = c->size - begin < node_ranks ? c->size - begin : node_ranks;
  if (node_ranks) rows = 0;
  for (int r = 0; r < c->size && node_ranks; r++)
    if (r / node_ranks != node && r % ranks == c->rank - begin)
      rows += refit_rows_partition(N, c->size, r, &first);
  return 8.0 * S * (double)rows;
}

/* The number of rows of the Gram matrix that a rank has. */
static idx gram_rows(const struct comm *c, int rank)
{
  idx rows = 0;
  for (idx a = 0; a < K; a++) rows += a / NORMAL_BLOCK % c->size == rank;
  return rows;
}

/* The bytes that a rank receives while atoms move: rows of the Gram matrix in each pass, then the
 * columns of atoms that other ranks have. */
static double moving_bytes(const struct side *e)
{
  const struct comm *c = e->state.c;
  double rows = 0;
  int node = node_ranks ? c->rank / node_ranks : 0, begin = node * node_ranks;
  int ranks = c->size - begin < node_ranks ? c->size - begin : node_ranks;
  for (int r = 0; r < c->size; r++) {
    int comes = node_ranks ? r / node_ranks != node && r % ranks == c->rank - begin : r != c->rank;
    if (comes) rows += gram_rows(c, r);
  }
  return sizeof(real) * K * (PASSES * rows + P - (e->update.end - e->update.begin));
}

static void check_side(struct comm *c, int ranks)
{
  struct side *e = calloc(1, sizeof *e);
  node_ranks = ranks;
  claim_begin("%d ranks per node share lists: the bits of the reference", ranks);
  int status = side_run(e, c, ranks > 0);
  ok(status == OK, "runs: %s", status_message());
  ok(!memcmp(e->state.frames, atoms, sizeof atoms), "atoms");
  ok(sums_same(e), "sums");
  claim_end();
  claim_begin(
      "%d ranks per node share lists: columns come once, lists once per update, rows of the "
      "Gram matrix once per pass",
      ranks);
  double lists = lists_bytes(e), columns = columns_bytes(e);
  ok(e->received[0] == lists + columns, "%.0f bytes, %.0f wanted", e->received[0], lists + columns);
  ok(e->received[1] == lists, "then %.0f bytes, %.0f wanted", e->received[1], lists);
  double moving = moving_bytes(e);
  ok(e->received[2] == moving, "moving %.0f bytes, %.0f wanted", e->received[2], moving);
  claim_end();
  free(e->state.frames);
  update_free(&e->update);
  device_close(&e->device);
  free(e);
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  problem_fill();
  problem_answer();
  check_side(&c, 0);
  for (int ranks = 1; ranks < c.size; ranks += 2) check_side(&c, ranks);
  gram_slab_bytes = 1; /* so that each round of an exchange has one block */
  check_side(&c, 0);
  if (c.size > 2) check_side(&c, 2);
  comm_close(&c);
  return done_testing();
}
