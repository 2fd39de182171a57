/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the blocks of a paged pool are counted, shared, copied on write and freed while sequences
 * come and go.  A sequence always reads what it wrote, even if all hashes are equal. */
#include "model/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "tap.h"

enum { SEQUENCES = 12, LONGEST = 90, STEPS = 20000, SMALL = 4, FEW = 60 };

static uint64_t same_hash(const idx *tokens, idx size, uint64_t before)
{
  (void)tokens, (void)size, (void)before;
  return 7;
}

static void counts_check(void)
{
  struct pool p;
  struct pool_sequence s = {0};
  claim_begin("a sequence takes the blocks that its tokens need, and gives back the rest");
  ok(!pool_init(&p, 64, 16) && p.free == 63, "63 of 64 blocks are free");
  ok(!pool_allocate(&p, &s, 512) && p.free == 31, "512 tokens leave 31");
  ok(!pool_allocate(&p, &s, 100) && s.count == 32, "fewer tokens than before give no block back");
  pool_truncate(&p, &s, 256);
  ok(p.free == 47, "256 tokens leave 47");
  pool_truncate(&p, &s, 16);
  ok(p.free == 62, "16 tokens leave 62");
  ok(pool_allocate(&p, &s, 64 * 16) == ERR_MEMORY && p.free == 62 && s.count == 1 &&
         !pool_check(&p),
     "a refused allocation changes nothing");
  status_clear();
  pool_truncate(&p, &s, 0);
  ok(p.free == 63 && !pool_check(&p), "all are free");
  claim_end();
  pool_sequence_free(&s);
  pool_free(&p);
}

static void order_check(void)
{
  struct pool p;
  struct pool_sequence s[8] = {{0}}, t = {0};
  static const int scrambled[] = {3, 7, 0, 5, 1, 6, 2, 4};
  claim_begin("an idle pool gives ascending blocks after defragmentation");
  ok(!pool_init(&p, 9, 16), "init");
  for (int i = 0; i < 8; i++) ok(!pool_allocate(&p, &s[i], 16), "one block");
  for (int i = 0; i < 8; i++) pool_truncate(&p, &s[scrambled[i]], 0);
  ok(p.next[0] == s[4].block[0], "the last one that was freed comes first");
  pool_defragment(&p);
  ok(!pool_allocate(&p, &t, 48) && t.block[0] == 1 && t.block[1] == 2 && t.block[2] == 3,
     "three ascending blocks");
  claim_end();
  for (int i = 0; i < 8; i++) pool_sequence_free(&s[i]);
  pool_sequence_free(&t);
  pool_free(&p);
}

/* Begin a sequence with n tokens: it shares the blocks that it can share, and gets its own for the
 * rest.  All full blocks are frozen. */
static int begin(struct pool *p, struct pool_sequence *s, const idx *tokens, gidx n)
{
  int status = pool_reuse(p, s, tokens, n, NULL);
  if (!status) status = pool_allocate(p, s, n);
  if (status) pool_truncate(p, s, 0);
  for (gidx i = 0; !status && i < n / p->size; i++) pool_freeze(p, s, i, tokens + i * p->size);
  return status;
}

/* Check that an unused pool gives its blocks in the order of a new pool. */
static void as_new_check(struct pool *p)
{
  struct pool fresh;
  struct pool_sequence all = {0};
  size_t bytes = (size_t)p->blocks * sizeof *p->next;
  ok(!pool_init(&fresh, p->blocks, p->size), "a new pool");
  ok(p->free == fresh.free && !pool_check(p) && !memcmp(p->count, fresh.count, bytes),
     "%d blocks of %d are free, and no user is counted", p->free, fresh.free);
  pool_defragment(p);
  ok(!memcmp(p->next, fresh.next, bytes) && !memcmp(p->previous, fresh.previous, bytes),
     "blocks are in the order of a new pool");
  ok(!pool_allocate(p, &all, (gidx)(p->blocks - 1) * p->size), "one sequence takes all of it");
  for (gidx i = 0; i < all.count; i++) ok(all.block[i] == i + 1, "block %lld", (long long)i);
  pool_truncate(p, &all, 0);
  pool_sequence_free(&all);
  pool_free(&fresh);
}

/* Many sequences, which may share prefixes, grow, are truncated, write to shared blocks, and leave
 * in another order. */
static void crowd_check(int shares)
{
  enum { CROWD = 64, MOST = 112 };
  struct pool p;
  struct pool_sequence s[CROWD] = {{0}};
  idx tokens[MOST], from;
  claim_begin("64 sequences that come and go leave the pool as new, %s",
              shares ? "with shared prefixes" : "without shared prefixes");
  ok(!pool_init(&p, CROWD * MOST / 16 + 1, 16), "init");
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < CROWD; i++) {
      gidx n = (37 * i + 11 * round) % (MOST - 15);
      for (idx j = 0; j < MOST; j++)
        tokens[j] = shares && j < 16 * (i % 5) ? j : 1000 * (i + 1) + j;
      ok(!begin(&p, &s[i], tokens, n), "sequence %d of %lld tokens", i, (long long)n);
      if (s[i].count && i % 3 == 0) ok(!pool_own(&p, &s[i], 0, &from), "a block of its own");
      ok(!pool_allocate(&p, &s[i], n + 15), "it grows");
      if (i % 4 == 0) pool_truncate(&p, &s[i], n / 2);
    }
    idx shared = 0;
    for (idx b = 1; b < p.blocks; b++) shared += p.count[b] > 1;
    ok(!pool_check(&p) && (shares ? shared > 2 : !shared), "%d blocks are shared", shared);
    for (int i = 0; i < CROWD; i++) pool_truncate(&p, &s[(29 * i + 5) % CROWD], 0);
    as_new_check(&p);
  }
  claim_end();
  for (int i = 0; i < CROWD; i++) pool_sequence_free(&s[i]);
  pool_free(&p);
}

static int refuse(void *self, gidx i, idx block)
{
  (void)block;
  return i != *(const gidx *)self;
}

static void prefixes_check(void)
{
  struct pool p;
  struct pool_sequence a = {0}, b = {0}, c = {0};
  idx one[112], two[112], from;
  for (idx i = 0; i < 112; i++) one[i] = i, two[i] = i < 32 ? i : 1000 + i;
  claim_begin("sequences share the blocks of equal prefixes until one writes");
  ok(!pool_init(&p, 8, 16) && !begin(&p, &a, one, 48) && !begin(&p, &b, two, 48), "two sequences");
  ok(a.block[0] == b.block[0] && a.block[1] == b.block[1] && a.block[2] != b.block[2] &&
         p.count[a.block[1]] == 2 && p.free == 3,
     "two blocks are shared");
  ok(begin(&p, &c, two, 48 + 48 + 16) == ERR_MEMORY && p.free == 3 && p.count[a.block[1]] == 2,
     "a sequence that does not fit leaves no trace");
  status_clear();
  ok(!pool_own(&p, &b, 1, &from) && from == a.block[1] && b.block[1] != from &&
         p.count[from] == 1 && p.free == 2,
     "a shared block is copied before it is written");
  ok(!pool_own(&p, &b, 1, &from) && !from && p.free == 2, "the sequence's own block is not copied");
  pool_truncate(&p, &a, 0);
  ok(p.count[b.block[0]] == 1 && p.free == 4, "an ended sequence leaves the blocks of the other");
  pool_truncate(&p, &b, 0);
  ok(p.free == 7 && !pool_check(&p), "all are free");
  ok(!pool_reuse(&p, &c, one, 48, NULL) && c.count == 3 && p.free == 4,
     "freed blocks can still be reused for an equal prefix");
  pool_truncate(&p, &c, 0);
  gidx refused = 1;
  ok(!pool_reuse(&p, &c, one, 48, &(struct pool_match){&refused, refuse}) && c.count == 1,
     "a judge ends the run");
  claim_end();
  pool_sequence_free(&a);
  pool_sequence_free(&b);
  pool_sequence_free(&c);
  pool_free(&p);
}

/* Random sequences, and a plain model: the tokens that each has written, and the contents of all
 * blocks. */
struct fuzz {
  struct pool pool;
  struct pool_sequence s[SEQUENCES];
  idx tokens[SEQUENCES][LONGEST];
  gidx n[SEQUENCES];
  idx content[FEW][SMALL];
  uint64_t draws;
};

static gidx draw(struct fuzz *f, uint64_t bound)
{
  return (gidx)random_below(11, 1, f->draws++, bound);
}

/* The content of a position depends on all tokens up to it, as keys and values do. */
static idx value_of(const struct fuzz *f, int q, gidx at)
{
  uint64_t value = 0;
  for (gidx i = 0; i <= at; i++) value = mix64(value + (uint64_t)f->tokens[q][i] + 1);
  return (idx)(value >> 33);
}

static void write_token(struct fuzz *f, int q, gidx at)
{
  f->content[f->s[q].block[at / SMALL]][at % SMALL] = value_of(f, q, at);
}

static void seal_all(struct fuzz *f, int q)
{
  for (gidx i = 0; i < f->n[q] / SMALL; i++)
    pool_freeze(&f->pool, &f->s[q], i, f->tokens[q] + i * SMALL);
}

static void fuzz_begin(struct fuzz *f, int q)
{
  gidx n = draw(f, LONGEST);
  for (gidx i = 0; i < n; i++) f->tokens[q][i] = (idx)draw(f, i < 20 ? 2 : 3) % 2;
  gidx alike = draw(f, 2) ? (gidx)draw(f, SEQUENCES) : q, same = imin(n, f->n[alike]);
  memmove(f->tokens[q], f->tokens[alike], (size_t)same * sizeof(idx));
  if (pool_reuse(&f->pool, &f->s[q], f->tokens[q], n, NULL)) return;
  gidx shared = f->s[q].count * SMALL;
  if (pool_allocate(&f->pool, &f->s[q], n)) {
    status_clear();
    pool_truncate(&f->pool, &f->s[q], 0);
    return;
  }
  f->n[q] = n;
  for (gidx i = shared; i < n; i++) write_token(f, q, i);
  seal_all(f, q);
}

static void fuzz_grow(struct fuzz *f, int q)
{
  gidx n = imin(f->n[q] + draw(f, 9), LONGEST);
  idx from = 0;
  if (f->n[q] % SMALL && pool_own(&f->pool, &f->s[q], f->n[q] / SMALL, &from)) {
    status_clear();
    return;
  }
  if (from)
    memcpy(f->content[f->s[q].block[f->n[q] / SMALL]], f->content[from], sizeof *f->content);
  if (pool_allocate(&f->pool, &f->s[q], n)) {
    status_clear();
    return;
  }
  for (; f->n[q] < n; f->n[q]++) {
    f->tokens[q][f->n[q]] = (idx)draw(f, 2);
    write_token(f, q, f->n[q]);
  }
  seal_all(f, q);
}

/* Go back to an earlier position, and continue from there with other tokens. */
static void fuzz_turn(struct fuzz *f, int q)
{
  f->n[q] = draw(f, (uint64_t)f->n[q] + 1);
  pool_truncate(&f->pool, &f->s[q], f->n[q]);
  fuzz_grow(f, q);
}

static void fuzz_step(struct fuzz *f)
{
  int q = (int)draw(f, SEQUENCES);
  gidx what = draw(f, 8);
  if (!f->n[q])
    fuzz_begin(f, q);
  else if (what < 3)
    fuzz_turn(f, q);
  else if (what < 5)
    fuzz_grow(f, q);
  else {
    f->n[q] = what < 7 ? draw(f, (uint64_t)f->n[q] + 1) : 0;
    pool_truncate(&f->pool, &f->s[q], f->n[q]);
  }
  if (!draw(f, 50)) pool_defragment(&f->pool);
}

/* Do the counts match the sequences, and does each sequence read what it wrote? */
static int fuzz_holds(const struct fuzz *f)
{
  idx count[FEW] = {0};
  int good = pool_check(&f->pool) == OK;
  for (int q = 0; q < SEQUENCES; q++) {
    good &= f->s[q].count == ceil_div(f->n[q], SMALL);
    for (gidx i = 0; i < f->s[q].count; i++) count[f->s[q].block[i]]++;
    for (gidx i = 0; i < f->n[q]; i++)
      good &= f->content[f->s[q].block[i / SMALL]][i % SMALL] == value_of(f, q, i);
  }
  return good && !count[0] && !memcmp(count + 1, f->pool.count + 1, (FEW - 1) * sizeof *count);
}

static void fuzz_check(pool_hash *hashes, const char *how)
{
  struct fuzz *f = calloc(1, sizeof *f);
  gidx shared = 0;
  int good = !pool_init(&f->pool, FEW, SMALL);
  if (hashes) f->pool.hashes = hashes;
  claim_begin("after %d random steps of %d sequences each has its values, %s", STEPS, SEQUENCES,
              how);
  for (int i = 0; i < STEPS && good; i++) {
    fuzz_step(f);
    good = fuzz_holds(f);
    for (idx b = 1; b < FEW; b++) shared += f->pool.count[b] > 1;
    if (!good) ok(0, "step %d: %s", i, status_message());
  }
  ok(good, "sequences have what they wrote");
  ok(shared > STEPS, "blocks were shared, %lld in all steps", (long long)shared);
  for (int q = 0; q < SEQUENCES; q++) pool_truncate(&f->pool, &f->s[q], 0);
  ok(f->pool.free == FEW - 1 && !pool_check(&f->pool), "all are free in the end");
  claim_end();
  for (int q = 0; q < SEQUENCES; q++) pool_sequence_free(&f->s[q]);
  pool_free(&f->pool);
  free(f);
}

int main(void)
{
  counts_check();
  order_check();
  prefixes_check();
  for (int shares = 0; shares < 2; shares++) crowd_check(shares);
  fuzz_check(NULL, "if each content has its own hash");
  fuzz_check(same_hash, "if all contents have the same hash");
  return done_testing();
}
