/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: atoms that several threads read, scale and check have the bits and the hash of one thread,
 * whichever atoms a rank reads.  If several atoms are wrong, the lowest one is named. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/team.h"
#include "encode/shard.h"
#include "model/identity.h"
#include "tap.h"

enum { K = 4003, P = 384 };
static const int threads[] = {1, 2, 3, 8, 40};
static float all[K * P], scaled[K * P];
static idx d; /* vectors of an atom; there are K / d atoms */

static int atoms_give(void *self, idx first, idx count, float *out)
{
  (void)self;
  memcpy(out, all + (gidx)first * d * P, (size_t)count * (size_t)d * P * sizeof *out);
  return OK;
}

/* A case: ranks of a group, number of groups, width of tiles, atoms that are stored together, and
 * whether each rank reads all atoms that it holds. */
struct dealt {
  int size, groups;
  idx width, unit;
  int reads_all;
};

/* Let rank `rank` of group `number` read its atoms.  The caller frees the shard. */
static int deal(const struct dealt *is, int rank, int number, int spare, struct shard *t)
{
  static struct comm like;
  static struct atom_source source;
  struct comm group = {.size = is->size, .rank = rank};
  like = (struct comm){.size = is->groups, .rank = number};
  source = (struct atom_source){.k = K / d,
                                .d = d,
                                .p = P,
                                .name = "made atoms",
                                .read = atoms_give,
                                .is_shared = 1,
                                .unit = is->unit};
  team_spare_set(spare);
  shard_init(t, &group, &source, is->width, d == 1);
  t->like = &like;
  t->reads_all = is->reads_all;
  int status = shard_alloc(t);
  return status ? status : shard_read(t);
}

/* The number of slots with a wrong atom.  A slot that the rank does not read must be zero.  *terms
 * <- the hash of its share. */
static gidx slots_wrong(const struct shard *t, const struct dealt *is, int number, uint64_t *terms)
{
  gidx first, count, wrong = 0, width = (gidx)d * P;
  comm_partition(t->held, is->groups, number, &first, &count);
  *terms = 0;
  for (gidx slot = 0; slot < t->held; slot++) {
    idx atom = tiling_atom(&t->tiling, t->rank, (idx)slot);
    const float *has = t->atoms + slot * width, *wants = scaled + atom * width;
    int is_own = slot >= first && slot < first + count;
    if (is_own) *terms += items_terms(all + atom * width, 1, width, atom);
    if (is_own || is->reads_all)
      wrong += memcmp(has, wants, (size_t)width * sizeof *has) != 0;
    else
      for (gidx i = 0; i < width; i++) wrong += has[i] != 0;
  }
  return wrong;
}

static void deals_check(struct dealt is)
{
  for (int i = 0; i < LENGTH(threads); i++) {
    gidx wrong = 0, held = 0;
    uint64_t terms, sum = 0;
    int status = OK;
    for (int rank = 0; rank < is.size * is.groups && !status; rank++) {
      struct shard t = {0};
      int number = rank / is.size;
      status = deal(&is, rank % is.size, number, threads[i], &t);
      if (!status) wrong += slots_wrong(&t, &is, number, &terms) + (t.terms != terms);
      held += number ? 0 : t.held;
      sum += t.terms;
      arena_free(&t.arena);
    }
    wrong += sum != items_terms(all, K / d, (gidx)d * P, 0);
    ok(!status && !wrong && held == K / d,
       "%d groups of %d, tiles of %d, units of %d, %s, %d threads: %lld wrong %s", is.groups,
       is.size, is.width, is.unit, is.reads_all ? "all" : "a share", threads[i], (long long)wrong,
       status_message());
    status_clear();
  }
}

/* Two atoms of the second rank of two are wrong.  The lower one is named, and the key is the first
 * atom of a piece that contains it. */
static void faults_check(idx low, idx high)
{
  const struct dealt is = {2, 1, 512, 341, 0};
  const float kept[] = {all[low * P], all[high * P]};
  char name[32];
  snprintf(name, sizeof name, "atom %d,", low);
  all[low * P] = NAN;
  all[high * P] = INFINITY;
  for (int i = 0; i < LENGTH(threads); i++) {
    struct shard t = {0};
    int status = deal(&is, 1, 0, threads[i], &t);
    ok(status == ERR_INPUT && strstr(status_message(), name) && t.key <= low && t.key > low - 512,
       "%d threads, key %lld: %s", threads[i], (long long)t.key, status_message());
    status_clear();
    arena_free(&t.arena);
  }
  all[low * P] = kept[0];
  all[high * P] = kept[1];
}

/* Fill the atoms: of any norm if d is 1, otherwise orthonormal frames. */
static void atoms_fill(void)
{
  real frame[MAX_FRAME * P];
  for (idx a = 0; a < K / d; a++) {
    for (idx i = 0; i < d * P; i++)
      frame[i] = random_normal(5, 1, (uint64_t)a * MAX_FRAME * P + (uint64_t)i);
    if (d > 1) frame_orthonormalize(frame, d, P);
    for (idx i = 0; i < d * P; i++) all[a * d * P + i] = (float)frame[i];
  }
  memcpy(scaled, all, sizeof scaled);
  for (idx a = 0; d == 1 && a < K; a++) { /* (N.1) */
    float *x = scaled + a * P;
    real square = 0;
    for (idx c = 0; c < P; c++) square += (real)x[c] * x[c];
    for (idx c = 0; c < P; c++) x[c] = (float)(x[c] / sqrt(square));
  }
}

int main(void)
{
  claim_begin("loaded atoms, and their hash, are those of the file");
  for (d = 1; d < 3; d++) {
    atoms_fill();
    for (int all_of_it = 0; all_of_it < 2; all_of_it++) {
      deals_check((struct dealt){1, 1, K, 0, all_of_it});
      deals_check((struct dealt){1, 1, 512, 341, all_of_it});
      deals_check((struct dealt){1, 3, 1000, 100, all_of_it});
      deals_check((struct dealt){3, 1, 7, 64, all_of_it});
      deals_check((struct dealt){2, 2, 600, 5000, all_of_it});
    }
  }
  claim_end();
  claim_begin("the first wrong atom is named");
  d = 1;
  atoms_fill();
  faults_check(512, 513);
  faults_check(1023, 3000);
  faults_check(1700, 3900);
  claim_end();
  return done_testing();
}
