/* SPDX-License-Identifier: BSD-3-Clause
 * Each dictionary has a group for its atoms, and the pairs have a group.  The check recomputes the
 * attributes of these groups that follow from their datasets. */
#include "io/comparison.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "io/check.h"
#include "io/dictionary.h"
#include "io/identity.h"
#include "model/results.h"

enum { SLACK_BYTES = 4 << 20 };
#define COSINE_SLACK 1e-3 /* atoms have norm 1 only within UNIT_TOLERANCE */

static const struct object_row object_rows[] = {
    {"/first/nearest", TYPE_I32, "K", 1, "nearest atom of the second dictionary"},
    {"/first/cosine", TYPE_F32, "K", 1, "cosine with the nearest atom"},
    {"/second/nearest", TYPE_I32, "L", 1, "nearest atom of the first dictionary"},
    {"/second/cosine", TYPE_F32, "L", 1, "cosine with the nearest atom"},
    {"/pairs/match", TYPE_I32, "K", 0, "atom of the second dictionary, one to one; -1: none"},
    {"/pairs/cosine", TYPE_F32, "K", 0, "cosine with the matching atom; 0: none"},
    {"/pairs/density", TYPE_I64, "K", 0, "rows that have the atom of the first in their support"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};
static const char pairs_group[] = "/pairs";
static const char *const sides[] = {"/first", "/second"};
static const char *const inputs[] = {INPUTS_GROUP "/first", INPUTS_GROUP "/second"};

static int side_write(const struct h5_file *f, int side, const struct matches *p)
{
  TRY(h5_attribute_real(f, sides[side], "mean_max_cosine", p->mean));
  TRY(h5_attribute_long(f, sides[side], "matched", p->matched));
  TRY(object_write_vector(f, object_rows[2 * side].path, p->k, p->nearest));
  TRY(object_write_vector(f, object_rows[2 * side + 1].path, p->k, p->cosine));
  return OK;
}

/* The attributes of a group, which follow from its datasets. */
struct pairs_numbers {
  const char *name;
  real value;
};
enum { PAIRS_NUMBERS = 5 };

static void pairs_numbers(const struct pairs *p, struct pairs_numbers *out)
{
  const struct pairs_numbers numbers[PAIRS_NUMBERS] = {
      {"mean_cosine", p->mean},
      {"above_07", p->count ? (real)p->low / p->count : 0},
      {"above_09", p->count ? (real)p->high / p->count : 0},
      {"most_frequent_quarter", p->frequent},
      {"least_frequent_quarter", p->rare}};
  memcpy(out, numbers, sizeof numbers);
}

static int pairs_write(const struct h5_file *f, const struct pairs *p)
{
  struct pairs_numbers numbers[PAIRS_NUMBERS];
  pairs_numbers(p, numbers);
  TRY(object_write_vector(f, "/pairs/match", p->k, p->match));
  TRY(object_write_vector(f, "/pairs/cosine", p->k, p->cosine));
  if (p->density) TRY(object_write_vector(f, "/pairs/density", p->k, p->density));
  for (int i = 0; i < PAIRS_NUMBERS; i++)
    TRY(h5_attribute_real(f, pairs_group, numbers[i].name, numbers[i].value));
  return OK;
}

int comparison_write(const char *path, const struct comparison *c, const struct run_fact *facts,
                     int n_facts)
{
  static struct result_file r;
  gidx atoms = (gidx)c->of[0]->k + c->of[1]->k;
  TRY(result_create(&r, path, &comparison_kind, 24 * atoms + SLACK_BYTES));
  TRY(nonnegative_write(&r.h5, c->nonnegative));
  TRY(h5_attribute_real(&r.h5, "/", "above", c->above));
  TRY(h5_attribute_long(&r.h5, "/", "mutual", c->mutual));
  for (int i = 0; i < 2; i++) {
    const struct identity identity = {.dictionary = c->hash[i]};
    TRY(identity_write(&r.h5, inputs[i], &identity));
    TRY(side_write(&r.h5, i, c->of[i]));
  }
  if (c->pairs) TRY(pairs_write(&r.h5, c->pairs));
  TRY(result_publish(&r, facts, n_facts));
  return OK;
}

/* out[k] <- a whole vector. */
static int vector_read(const struct h5_file *f, const char *object, gidx k, enum h5_type type,
                       void *out)
{
  struct h5_array a;
  TRY(h5_array_open(f, object, &a));
  int status = h5_array_read(&a, 0, k, type, out);
  h5_array_close(&a);
  return status;
}

static int side_read(const struct verify *v, int side, struct arena *arena, struct matches *p)
{
  p->k = (idx)dimension_value(&v->dims, side ? "L" : "K");
  TRY(arena_alloc(arena, &p->nearest, p->k, sizeof *p->nearest));
  TRY(arena_alloc(arena, &p->cosine, p->k, sizeof *p->cosine));
  TRY(vector_read(v->file, object_rows[2 * side].path, p->k, TYPE_I32, p->nearest));
  return vector_read(v->file, object_rows[2 * side + 1].path, p->k, TYPE_F32, p->cosine);
}

static int side_check(const struct verify *v, int side, struct matches *p, idx others, real above)
{
  real mean;
  gidx matched;
  for (idx a = 0; a < p->k; a++) {
    CHECK(p->nearest[a] >= 0 && p->nearest[a] < others, ERR_INPUT,
          "atom %d of '%s': the nearest, %d, is not in 0 .. %d" ANEW, a, sides[side], p->nearest[a],
          others - 1);
    CHECK(fabsf(p->cosine[a]) <= 1 + COSINE_SLACK, ERR_INPUT,
          "atom %d of '%s': the cosine is %g" ANEW, a, sides[side], (double)p->cosine[a]);
  }
  matches_count(p, above);
  TRY(h5_read_real(v->file, sides[side], "mean_max_cosine", &mean));
  TRY(h5_read_long(v->file, sides[side], "matched", &matched));
  CHECK(memcmp(&mean, &p->mean, sizeof mean) == 0 && matched == p->matched, ERR_INPUT,
        "'%s' says mean_max_cosine %.17g, matched %lld; its cosines give %.17g, %lld" ANEW,
        sides[side], mean, (long long)matched, p->mean, (long long)p->matched);
  return OK;
}

static int sides_check(const struct verify *v, struct arena *arena)
{
  struct matches p[2];
  real above;
  gidx mutual, found;
  TRY(h5_read_real(v->file, "/", "above", &above));
  TRY(h5_read_long(v->file, "/", "mutual", &mutual));
  for (int i = 0; i < 2; i++) TRY(side_read(v, i, arena, &p[i]));
  for (int i = 0; i < 2; i++) TRY(side_check(v, i, &p[i], p[1 - i].k, above));
  found = matches_mutual(&p[0], &p[1], above);
  CHECK(found == mutual, ERR_INPUT, "'%s' says mutual %lld, its lists give %lld" ANEW,
        v->file->path, (long long)mutual, (long long)found);
  return OK;
}

static int pairs_read(const struct verify *v, struct arena *arena, struct pairs *p)
{
  int has_density;
  p->k = (idx)dimension_value(&v->dims, "K");
  p->l = (idx)dimension_value(&v->dims, "L");
  TRY(arena_alloc(arena, &p->match, p->k, sizeof *p->match));
  TRY(arena_alloc(arena, &p->cosine, p->k, sizeof *p->cosine));
  TRY(vector_read(v->file, "/pairs/match", p->k, TYPE_I32, p->match));
  TRY(vector_read(v->file, "/pairs/cosine", p->k, TYPE_F32, p->cosine));
  TRY(h5_exists(v->file, "/pairs/density", &has_density));
  if (!has_density) return OK;
  TRY(arena_alloc(arena, &p->density, p->k, sizeof *p->density));
  return vector_read(v->file, "/pairs/density", p->k, TYPE_I64, p->density);
}

/* Check that no two atoms have the same match, and that min(K, L) atoms have one. */
static int pairs_check(const struct pairs *p, struct arena *arena)
{
  idx *owner, count = 0;
  TRY(arena_alloc(arena, &owner, p->l, sizeof *owner));
  for (idx i = 0; i < p->k; i++) {
    idx j = p->match[i];
    CHECK(j >= -1 && j < p->l, ERR_INPUT, "atom %d of '%s': its match, %d, is not in 0 .. %d" ANEW,
          i, pairs_group, j, p->l - 1);
    CHECK(fabsf(p->cosine[i]) <= 1 + COSINE_SLACK, ERR_INPUT,
          "atom %d of '%s': the cosine is %g" ANEW, i, pairs_group, (double)p->cosine[i]);
    if (j < 0) continue;
    CHECK(!owner[j], ERR_INPUT, "atoms %d and %d of '%s' have the same match, %d" ANEW,
          owner[j] - 1, i, pairs_group, j);
    owner[j] = i + 1;
    count++;
  }
  CHECK(count == imin(p->k, p->l), ERR_INPUT, "'%s' has %d pairs of %d and %d atoms" ANEW,
        pairs_group, count, p->k, p->l);
  return OK;
}

static int pairs_verify(struct verify *v, struct arena *arena)
{
  struct pairs p = {0};
  struct pairs_numbers numbers[PAIRS_NUMBERS];
  idx *order;
  int there;
  TRY(h5_exists(v->file, "/pairs/match", &there));
  if (!there) return OK;
  TRY(pairs_read(v, arena, &p));
  TRY(pairs_check(&p, arena));
  TRY(arena_alloc(arena, &order, p.k, sizeof *order));
  pairs_count(&p, order);
  pairs_numbers(&p, numbers);
  for (int i = 0; i < PAIRS_NUMBERS; i++) {
    real value;
    TRY(h5_read_real(v->file, pairs_group, numbers[i].name, &value));
    CHECK(memcmp(&value, &numbers[i].value, sizeof value) == 0, ERR_INPUT,
          "'%s' says %s %.17g; its cosines give %.17g" ANEW, pairs_group, numbers[i].name, value,
          numbers[i].value);
  }
  check_note(v, "pairs     one to one, means and shares follow from cosines");
  return OK;
}

static int file_check(struct verify *v)
{
  struct arena arena = {0};
  if (!v->is_ours || strcmp(v->kind, comparison_kind.name) != 0) return OK;
  int status = sides_check(v, &arena);
  if (!status) status = pairs_verify(v, &arena);
  arena_free(&arena);
  TRY(status);
  check_note(v, "partners  in range, means and counts follow from cosines");
  return OK;
}

const struct file_kind comparison_kind = {"comparison", {&objects}, file_check, NULL, NULL, NULL};
