/* SPDX-License-Identifier: BSD-3-Clause
 * Each seed has one row of cosines.  The stability of an atom is computed from them, and the check
 * computes it again. */
#include "io/seeds.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "io/check.h"

#define GROUP "/seeds"
#define COSINE_SLACK 1e-3 /* atoms have norm 1 only within UNIT_TOLERANCE */

static const struct object_row object_rows[] = {
    {"/stability", TYPE_F32, "K", 0, "largest cosine of an atom and its pair of another seed"},
    {GROUP "/cosine", TYPE_F32, "R K", 0, "cosine of an atom and its pair, seed by seed"},
};
const struct object_table seeds_objects = {object_rows, LENGTH(object_rows)};

int seeds_write(const struct h5_file *f, const struct seeds_record *r)
{
  const gidx shape[] = {r->done, r->k};
  if (!r->done) return OK;
  TRY(object_write(f, GROUP "/cosine", 2, shape, r->cosine));
  TRY(h5_attribute_long(f, GROUP, "wanted", r->wanted));
  TRY(h5_attribute_long(f, GROUP, "first", r->first));
  TRY(h5_attribute_text(f, GROUP, "extent", r->extent));
  return r->stability ? object_write_vector(f, "/stability", r->k, r->stability) : OK;
}

/* Read out[count][k], or if count is 0, out[k]. */
static int values_read(const struct h5_file *f, const char *path, gidx count, gidx k, float *out)
{
  struct h5_array a;
  TRY(h5_array_open(f, path, &a));
  int fits = a.rank == 1 + (count > 0) && a.type == TYPE_F32 && a.shape[0] == (count ? count : k) &&
             a.shape[a.rank - 1] == k;
  int status = fits ? h5_array_read(&a, 0, a.shape[0], TYPE_F32, out) : OK;
  h5_array_close(&a);
  CHECK(fits, ERR_INPUT, "'%s' of '%s' is not float32 of %lld atoms" ANEW, path, f->path,
        (long long)k);
  return status;
}

/* Find how many seeds have a row of cosines. */
static int done_read(const struct h5_file *f, struct seeds_record *r)
{
  struct h5_array a;
  gidx wanted, done;
  TRY(h5_array_open(f, GROUP "/cosine", &a));
  done = a.rank == 2 ? a.shape[0] : 0;
  h5_array_close(&a);
  TRY(h5_read_long(f, GROUP, "wanted", &wanted));
  TRY(h5_read_long(f, GROUP, "first", &r->first));
  TRY(h5_read_text(f, GROUP, "extent", r->extent, sizeof r->extent));
  CHECK(done >= 1 && done <= wanted && wanted <= SEEDS_MOST, ERR_INPUT,
        "'%s' has cosines with %lld other seeds of %lld" ANEW, f->path, (long long)done,
        (long long)wanted);
  r->wanted = (idx)wanted;
  r->done = (idx)done;
  return OK;
}

int seeds_read(const struct h5_file *f, idx k, struct arena *arena, struct seeds_record *r)
{
  int has_cosine, has_stability;
  *r = (struct seeds_record){.k = k};
  TRY(h5_exists(f, GROUP "/cosine", &has_cosine));
  if (!has_cosine) return OK;
  TRY(done_read(f, r));
  TRY(arena_alloc(arena, &r->cosine, (gidx)r->wanted * k, sizeof *r->cosine));
  TRY(values_read(f, GROUP "/cosine", r->done, k, r->cosine));
  TRY(h5_exists(f, "/stability", &has_stability));
  if (!has_stability) return OK;
  CHECK(r->done == r->wanted, ERR_INPUT,
        "'%s' has a stability, and cosines with %d other seeds of %d" ANEW, f->path, r->done,
        r->wanted);
  TRY(arena_alloc(arena, &r->stability, k, sizeof *r->stability));
  return values_read(f, "/stability", 0, k, r->stability);
}

static int record_check(const struct seeds_record *r, struct arena *arena)
{
  float *best;
  for (gidx i = 0; i < (gidx)r->done * r->k; i++)
    CHECK(fabsf(r->cosine[i]) <= 1 + COSINE_SLACK, ERR_INPUT,
          "atom %lld and its pair of other seed %lld: the cosine is %g" ANEW, (long long)(i % r->k),
          (long long)(i / r->k), (double)r->cosine[i]);
  if (!r->stability) return OK;
  TRY(arena_alloc(arena, &best, r->k, sizeof *best));
  stability_best(
      &(struct stability){.k = r->k, .seeds = r->done, .cosine = r->cosine, .best = best});
  for (idx a = 0; a < r->k; a++)
    CHECK(best[a] == r->stability[a], ERR_INPUT,
          "atom %d: the stability is %g, its cosines give %g" ANEW, a, (double)r->stability[a],
          (double)best[a]);
  return OK;
}

int seeds_check(const struct verify *v)
{
  struct arena arena = {0};
  struct seeds_record r;
  int status = seeds_read(v->file, (idx)dimension_value(&v->dims, "K"), &arena, &r);
  if (!status) status = record_check(&r, &arena);
  arena_free(&arena);
  TRY(status);
  if (r.done) check_note(v, "seeds     cosines in range, the stability of atoms follows from them");
  return OK;
}

/* *s <- the stability in the file, except its means over quarters of the atoms (frequent, rare).
 * The file has a stability when all seeds are done; s->seeds is 0 if it has none. */
static int stability_of(const struct h5_file *f, struct arena *arena, struct stability *s)
{
  struct h5_array a;
  struct seeds_record r;
  idx *order, *match;
  int there;
  *s = (struct stability){0};
  TRY(h5_exists(f, "/stability", &there));
  if (!there) return OK;
  TRY(h5_array_open(f, "/stability", &a));
  idx k = a.rank == 1 && a.shape[0] <= INT32_MAX ? (idx)a.shape[0] : 0;
  h5_array_close(&a);
  TRY(seeds_read(f, k, arena, &r));
  if (!r.stability) return OK;
  TRY(arena_alloc(arena, &order, k, sizeof *order));
  TRY(arena_alloc(arena, &match, k, sizeof *match));
  *s = (struct stability){.k = k, .seeds = r.done, .cosine = r.cosine, .best = r.stability};
  stability_count(s, order, match);
  return OK;
}

int seeds_show(const struct h5_file *f, FILE *out, const char **group)
{
  struct arena arena = {0};
  struct stability s;
  (void)group;
  int status = stability_of(f, &arena, &s);
  if (!status && s.seeds)
    text_print(out,
               "\nstability, by %d other seed%s: PW-MCC %.4f, of the atoms %.1f %% above 0.7, "
               "%.1f %% above 0.9\n",
               s.seeds, s.seeds > 1 ? "s" : "", s.pw_mcc, 100 * s.found_low, 100 * s.found_high);
  arena_free(&arena);
  return status;
}

void stability_json(const struct stability *s, struct json *j)
{
  if (!s || !s->seeds) return;
  json_object(j, "stability");
  json_long(j, "other_seeds", s->seeds);
  json_real(j, "pw_mcc", s->pw_mcc);
  json_real(j, "above_07", s->low);
  json_real(j, "above_09", s->high);
  json_real(j, "most_frequent_quarter", s->frequent);
  json_real(j, "least_frequent_quarter", s->rare);
  json_real(j, "atoms_above_07", s->found_low);
  json_real(j, "atoms_above_09", s->found_high);
  json_end(j);
}

int seeds_json(const struct h5_file *f, struct json *j)
{
  struct arena arena = {0};
  struct stability s;
  int status = stability_of(f, &arena, &s);
  if (!status) stability_json(&s, j);
  arena_free(&arena);
  return status;
}
