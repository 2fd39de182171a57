/* SPDX-License-Identifier: BSD-3-Clause
 * The page of a terminal.h5 shows the evidence, the directions that the data do not determine, the
 * least determined atoms, the strongest couplings, and the hash of the artifact. */
#include "io/terminal.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

enum { SHOWN = 10 }; /* lines of a list */

static int real_of(const struct h5_file *f, const char *name, real *out)
{
  TRY(h5_read_real(f, "/terminal", name, out));
  return OK;
}

static int evidence_print(const struct h5_file *f, FILE *out)
{
  real half, rows, border, phi;
  gidx codes, borders, bad;
  TRY(real_of(f, "half_log_det", &half));
  TRY(real_of(f, "log_det_rows", &rows));
  TRY(real_of(f, "log_det_border", &border));
  TRY(real_of(f, "phi", &phi));
  TRY(h5_read_long(f, "/terminal", "n_codes", &codes));
  TRY(h5_read_long(f, "/terminal", "n_border", &borders));
  TRY(h5_read_long(f, "/terminal", "bad_pivot", &bad));
  fprintf(out, "\nevidence\n");
  fprintf(out, "  %-*s %18.10g  1/2 log|H| of all codes and borders\n", NAME_WIDTH, "half_log_det",
          half);
  fprintf(out, "  %-*s %18.10g  of %lld codes\n", NAME_WIDTH, "log_det_rows", rows,
          (long long)codes);
  fprintf(out, "  %-*s %18.10g  of the Schur complement S, %lld borders\n", NAME_WIDTH,
          "log_det_border", border, (long long)borders);
  fprintf(out, "  %-*s %18.10g  RSS / (values - codes - borders)\n", NAME_WIDTH, "phi", phi);
  if (bad >= 0)
    fprintf(out, "  S is not positive definite: pivot %lld; no covariance\n", (long long)bad);
  return OK;
}

static int slq_print(const struct h5_file *f, FILE *out)
{
  const char *at = "/run/terminal/slq";
  real estimate, error;
  gidx probes, steps, converged, failed;
  int there;
  TRY(h5_exists(f, at, &there));
  if (!there) return OK;
  TRY(h5_read_real(f, at, "log_det_border", &estimate));
  TRY(h5_read_real(f, at, "standard_error", &error));
  TRY(h5_read_long(f, at, "probes", &probes));
  TRY(h5_read_long(f, at, "steps", &steps));
  TRY(h5_read_long(f, at, "converged", &converged));
  TRY(h5_read_long(f, at, "failed_probe", &failed));
  fprintf(out, "  %-*s %18.10g  +- %.3g, %lld probes of %lld steps%s\n", NAME_WIDTH,
          "log|S|, estimated", estimate, error, (long long)probes, (long long)steps,
          failed >= 0 ? ": S is not positive definite"
          : converged ? ""
                      : ": steps ran out");
  return OK;
}

static int weak_print(const struct h5_file *f, FILE *out)
{
  const char *at = "/run/terminal";
  real condition, part;
  gidx inertia[3], weak, near, info = 0;
  char lapack[300];
  int there;
  fprintf(out, "\nwhat the data determine\n");
  TRY(h5_read_text(f, at, "lapack", lapack, sizeof lapack));
  TRY(h5_attribute_exists(f, at, "inertia", &there));
  if (there) {
    TRY(h5_read_longs(f, at, "inertia", 3, inertia));
    fprintf(out, "  %-*s %18lld  of S; negative %lld, zero %lld\n", NAME_WIDTH,
            "positive eigenvalues", (long long)inertia[0], (long long)inertia[1],
            (long long)inertia[2]);
  } else
    text_print(out, "  %-*s %18s  %s\n", NAME_WIDTH, "eigenvalues of S", "-", lapack);
  TRY(h5_attribute_exists(f, at, "condition", &there));
  if (there) {
    TRY(h5_read_real(f, at, "condition", &condition));
    TRY(h5_read_real(f, at, "weak_part", &part));
    TRY(h5_read_long(f, at, "weak_directions", &weak));
    fprintf(out, "  %-*s %18.6g  of S\n", NAME_WIDTH, "condition", condition);
    fprintf(out, "  %-*s %18lld  stiffness at most %g of the largest\n", NAME_WIDTH,
            "undetermined directions", (long long)weak, part);
  }
  TRY(h5_attribute_exists(f, at, "lapack_info", &there));
  if (there) TRY(h5_read_long(f, at, "lapack_info", &info));
  if (info) text_print(out, "  %-*s %18s  %s\n", NAME_WIDTH, "not whole", "-", lapack);
  TRY(h5_read_long(f, at, "near_duplicates", &near));
  fprintf(out, "  %-*s %18lld  pairs of atoms\n", NAME_WIDTH, "near duplicates", (long long)near);
  return OK;
}

/* out <- an array about the weakest directions, with `columns` values for each.  *count: the number
 * of directions; if it is negative it is set, otherwise it must match. */
static int directions_read(const struct h5_file *f, const char *name, enum h5_type type,
                           gidx columns, gidx *count, void *out)
{
  char object[100];
  struct h5_array a = {0};
  snprintf(object, sizeof object, "/run/terminal/identifiability/%.40s", name);
  int status = h5_array_open(f, object, &a);
  gidx found = status ? 0 : a.shape[0] < SHOWN ? a.shape[0] : SHOWN;
  int fits = a.rank == (columns > 1 ? 2 : 1) && (columns == 1 || a.shape[1] == columns);
  if (!status && (!fits || (*count >= 0 && found != *count)))
    status = status_fail(ERR_INPUT, __FILE__, __LINE__, "'%s' of '%s' has another shape" ANEW,
                         object, f->path);
  if (!status) status = h5_array_read(&a, 0, found, type, out);
  *count = found;
  h5_array_close(&a);
  return status;
}

/* The weakest directions: the eigenvalue of S, the atoms with the largest shares of the direction,
 * and these shares. */
struct directions {
  gidx count;
  real value[SHOWN], share[SHOWN][CARRIERS];
  idx atom[SHOWN][CARRIERS];
};

static int directions_load(const struct h5_file *f, struct directions *d)
{
  int there;
  *d = (struct directions){0};
  TRY(h5_exists(f, "/run/terminal/identifiability/eigenvalue", &there));
  if (!there) return OK;
  d->count = -1;
  TRY(directions_read(f, "eigenvalue", TYPE_F64, 1, &d->count, d->value));
  TRY(directions_read(f, "atoms", TYPE_I32, CARRIERS, &d->count, d->atom));
  return directions_read(f, "share", TYPE_F64, CARRIERS, &d->count, d->share);
}

static int directions_print(const struct h5_file *f, FILE *out)
{
  enum { NAMED = 3 };
  struct directions d;
  TRY(directions_load(f, &d));
  if (d.count == 0) return OK;
  fprintf(out, "\nundetermined directions      eigenvalue of S; atoms and their shares\n");
  for (gidx i = 0; i < d.count; i++) {
    fprintf(out, "  %-*lld %18.6g ", NAME_WIDTH, (long long)i, d.value[i]);
    for (int j = 0; j < NAMED && d.atom[i][j] >= 0; j++)
      fprintf(out, "  %d %.0f%%", d.atom[i][j], 100 * d.share[i][j]);
    fprintf(out, "\n");
  }
  return OK;
}

static int directions_json(const struct h5_file *f, struct json *j)
{
  struct directions d;
  TRY(directions_load(f, &d));
  json_array(j, "undetermined");
  for (gidx i = 0; i < d.count; i++) {
    json_object(j, NULL);
    json_real(j, "eigenvalue", d.value[i]);
    json_array(j, "carriers");
    for (int c = 0; c < CARRIERS && d.atom[i][c] >= 0; c++) {
      json_object(j, NULL);
      json_long(j, "atom", d.atom[i][c]);
      json_real(j, "share", d.share[i][c]);
      json_end(j);
    }
    json_end(j);
    json_end(j);
  }
  json_end(j);
  return OK;
}

/* An atom and its standard deviation, the root of the trace of its covariance block. */
struct ranked {
  real value;
  gidx atom;
};

/* Insert into top[SHOWN], which is sorted by descending value. */
static void rank_insert(struct ranked *top, struct ranked new)
{
  for (int i = 0; i < SHOWN; i++)
    if (top[i].atom < 0 || new.value > top[i].value) {
      struct ranked old = top[i];
      top[i] = new;
      new = old;
      if (new.atom < 0) return;
    }
}

static int atoms_rank(const struct h5_file *f, struct h5_array *a, struct arena *arena,
                      struct ranked *top)
{
  real *block;
  CHECK(a->rank == 3 && a->shape[1] == a->shape[2] && a->shape[1] < 1 << 14, ERR_INPUT,
        "'%s' of '%s' has no square blocks" ANEW, a->object, f->path);
  TRY(arena_alloc(arena, &block, a->shape[1] * a->shape[1], sizeof *block));
  for (gidx i = 0; i < a->shape[0]; i++) {
    real trace = 0;
    TRY(h5_array_read(a, i, 1, TYPE_F64, block));
    for (gidx j = 0; j < a->shape[1]; j++) {
      real x = block[j * (a->shape[1] + 1)];
      trace += isnan(x) ? 0 : x;
    }
    rank_insert(top, (struct ranked){sqrt(trace), i});
  }
  return OK;
}

/* top[SHOWN] <- the least determined atoms, padded with -1. */
static int atoms_load(const struct h5_file *f, struct ranked *top)
{
  struct h5_array a;
  struct arena arena = {0};
  for (int i = 0; i < SHOWN; i++) top[i] = (struct ranked){0, -1};
  int there;
  TRY(h5_exists(f, "/terminal/covariance_blocks", &there));
  if (!there) return OK;
  int status = h5_array_open(f, "/terminal/covariance_blocks", &a);
  if (status == OK) status = atoms_rank(f, &a, &arena, top);
  h5_array_close(&a);
  arena_free(&arena);
  return status;
}

static int atoms_print(const struct h5_file *f, FILE *out)
{
  struct ranked top[SHOWN];
  TRY(atoms_load(f, top));
  if (top[0].atom < 0) return OK;
  fprintf(out, "\nleast determined atoms       standard deviation, all borders together\n");
  for (int i = 0; i < SHOWN && top[i].atom >= 0; i++)
    fprintf(out, "  %-*lld %18.6g\n", NAME_WIDTH, (long long)top[i].atom, top[i].value);
  return OK;
}

static int atoms_json(const struct h5_file *f, struct json *j)
{
  struct ranked top[SHOWN];
  TRY(atoms_load(f, top));
  json_array(j, "least_determined");
  for (int i = 0; i < SHOWN && top[i].atom >= 0; i++) {
    json_object(j, NULL);
    json_long(j, "atom", top[i].atom);
    json_real(j, "deviation", top[i].value);
    json_end(j);
  }
  json_end(j);
  return OK;
}

struct couplings {
  gidx count;
  idx atoms[SHOWN][2];
  real strength[SHOWN];
};

static int couplings_load(const struct h5_file *f, struct couplings *c)
{
  struct h5_array pair = {0}, strength = {0};
  int there;
  *c = (struct couplings){0};
  TRY(h5_exists(f, "/terminal/cross_pair", &there));
  if (!there) return OK;
  int status = h5_array_open(f, "/terminal/cross_pair", &pair);
  if (status == OK) status = h5_array_open(f, "/terminal/cross_strength", &strength);
  c->count = pair.shape[0] < SHOWN ? pair.shape[0] : SHOWN;
  if (status == OK && (pair.rank != 2 || pair.shape[1] != 2 || strength.shape[0] != pair.shape[0]))
    status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                         "cross pairs of '%s' have other shapes" ANEW, f->path);
  if (status == OK) status = h5_array_read(&pair, 0, c->count, TYPE_I32, c->atoms);
  if (status == OK) status = h5_array_read(&strength, 0, c->count, TYPE_F64, c->strength);
  h5_array_close(&pair);
  h5_array_close(&strength);
  return status;
}

static int couplings_print(const struct h5_file *f, FILE *out)
{
  struct couplings c;
  int there;
  TRY(h5_exists(f, "/terminal/cross_pair", &there));
  if (!there) return OK;
  TRY(couplings_load(f, &c));
  fprintf(out, "\nstrongest couplings          Frobenius norm of the pair's covariance\n");
  for (gidx i = 0; i < c.count; i++) {
    char name[64];
    snprintf(name, sizeof name, "%d and %d", c.atoms[i][0], c.atoms[i][1]);
    fprintf(out, "  %-*s %18.6g\n", NAME_WIDTH, name, c.strength[i]);
  }
  return OK;
}

static int couplings_json(const struct h5_file *f, struct json *j)
{
  struct couplings c;
  TRY(couplings_load(f, &c));
  json_array(j, "couplings");
  for (gidx i = 0; i < c.count; i++) {
    json_object(j, NULL);
    json_array(j, "atoms");
    for (int k = 0; k < 2; k++) json_long(j, NULL, c.atoms[i][k]);
    json_end(j);
    json_real(j, "strength", c.strength[i]);
    json_end(j);
  }
  json_end(j);
  return OK;
}

/* *there <- is this a finished pass?  Other files have nothing to show. */
static int pass_exists(const struct h5_file *f, int *there)
{
  int has_borders, has_run;
  TRY(h5_exists(f, "/terminal/border", &has_borders));
  TRY(h5_exists(f, "/run/terminal", &has_run));
  *there = has_borders && has_run;
  return OK;
}

int terminal_json(const struct h5_file *f, struct json *j)
{
  int there;
  TRY(pass_exists(f, &there));
  if (!there) return OK;
  TRY(directions_json(f, j));
  TRY(atoms_json(f, j));
  return couplings_json(f, j);
}

int terminal_show(const struct h5_file *f, FILE *out)
{
  char sha[128];
  int there;
  TRY(pass_exists(f, &there));
  if (!there) return OK;
  TRY(evidence_print(f, out));
  TRY(slq_print(f, out));
  TRY(weak_print(f, out));
  TRY(directions_print(f, out));
  TRY(atoms_print(f, out));
  TRY(couplings_print(f, out));
  TRY(h5_read_text(f, "/terminal", "artifact_sha256", sha, sizeof sha));
  text_print(out, "\nartifact  %s\n", sha);
  return OK;
}
