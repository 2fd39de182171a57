/* SPDX-License-Identifier: BSD-3-Clause
 * Reproducible results are attributes and arrays of /terminal.  Estimates, and values that LAPACK
 * computes, go below /run, which `diff` skips. */
#include "io/terminal.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "io/identity.h"

enum { SLACK_BYTES = 8 << 20 };

static const struct object_row object_rows[] = {
    {"/terminal/border", TYPE_I64, "K+1", 1, "where each atom's borders begin"},
    {"/terminal/covariance_blocks", TYPE_F64, "K b b", 0, "block of phi S^-1 of each atom"},
    {"/terminal/cross_pair", TYPE_I32, "M 2", 0, "strongest pairs of atoms"},
    {"/terminal/cross_strength", TYPE_F64, "M", 0, "Frobenius norms of the blocks of these pairs"},
    {"/terminal/cross_blocks", TYPE_F64, "M b b", 0, "blocks of phi S^-1 of these pairs"},
    {"/run/terminal/spectrum", TYPE_F64, "n", 0, "eigenvalues of S, ascending"},
    {"/run/terminal/identifiability/eigenvalue", TYPE_F64, "D", 0,
     "eigenvalues of S of weak directions"},
    {"/run/terminal/identifiability/atoms", TYPE_I32, "D 8", 0,
     "atoms that carry these directions"},
    {"/run/terminal/identifiability/share", TYPE_F64, "D 8", 0, "shares of these atoms"},
    {"/run/terminal/duplicates/pair", TYPE_I32, "L 2", 0, "pairs of near duplicates"},
    {"/run/terminal/duplicates/cosine", TYPE_F64, "L", 0, "cosines of these pairs"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

const struct file_kind terminal_kind = {"terminal",    {&objects}, terminal_check,
                                        terminal_show, NULL,       terminal_json};

/* Write a log determinant, and the pair of mantissa and exponent that gives it. */
static int pair_write(const struct h5_file *f, const char *name, struct det_pair pair, real value)
{
  char text[64];
  TRY(h5_attribute_real(f, "/terminal", name, value));
  snprintf(text, sizeof text, "%s_mantissa", name);
  TRY(h5_attribute_real(f, "/terminal", text, pair.m));
  snprintf(text, sizeof text, "%s_exponent", name);
  return h5_attribute_long(f, "/terminal", text, pair.e);
}

static int evidence_write(const struct h5_file *f, const struct terminal_result *r, real rho)
{
  const char *at = "/terminal";
  gidx words[HASH_WORDS];
  artifact_words(r->artifact.sha256, words);
  TRY(h5_group_create(f, at));
  TRY(h5_attribute_real(f, at, "half_log_det", r->half_log_det));
  TRY(pair_write(f, "log_det_rows", r->rows, r->log_det_rows));
  TRY(pair_write(f, "log_det_border", r->borders, r->log_det_border));
  TRY(h5_attribute_long(f, at, "n_rows", r->n));
  TRY(h5_attribute_long(f, at, "n_codes", r->codes));
  TRY(h5_attribute_long(f, at, "n_border", r->n_border));
  TRY(h5_attribute_long(f, at, "bad_pivot", r->bad_pivot));
  TRY(h5_attribute_real(f, at, "rho", rho));
  TRY(h5_attribute_real(f, at, "rss", r->rss));
  TRY(h5_attribute_real(f, at, "phi", r->phi));
  TRY(h5_attribute_longs(f, at, "artifact_words", HASH_WORDS, words));
  return h5_attribute_text(f, at, "artifact_sha256", r->artifact.sha256);
}

static int border_write(const struct h5_file *f, const struct terminal_result *r)
{
  struct arena arena = {0};
  gidx *border = NULL, shape = (gidx)r->k + 1;
  TRY(arena_alloc(&arena, &border, shape, sizeof *border));
  for (gidx a = 0; a < shape; a++) border[a] = r->border[a];
  int status = object_write_vector(f, "/terminal/border", shape, border);
  arena_free(&arena);
  return status;
}

static int covariance_write(const struct h5_file *f, const struct terminal_result *r)
{
  struct arena arena = {0};
  gidx k = r->max_k, m = r->n_cross;
  gidx blocks[3] = {r->k, k, k}, cross[3] = {m, k, k}, pairs[2] = {m, 2};
  idx *pair = NULL;
  real *strength = NULL;
  if (!r->is_factored || k == 0) return OK;
  TRY(object_write(f, "/terminal/covariance_blocks", 3, blocks, r->covariance));
  TRY(arena_alloc(&arena, &pair, 2 * m, sizeof *pair));
  TRY(arena_alloc(&arena, &strength, m, sizeof *strength));
  for (idx i = 0; i < m; i++) {
    pair[2 * i] = r->cross[i].first;
    pair[2 * i + 1] = r->cross[i].second;
    strength[i] = r->cross[i].strength;
  }
  TRY(object_write(f, "/terminal/cross_pair", 2, pairs, pair));
  TRY(object_write_vector(f, "/terminal/cross_strength", m, strength));
  TRY(object_write(f, "/terminal/cross_blocks", 3, cross, r->cross_blocks));
  arena_free(&arena);
  return OK;
}

static int weak_write(const struct h5_file *f, const struct spectrum *s)
{
  struct arena arena = {0};
  gidx shape[2] = {s->listed, CARRIERS};
  real *value = NULL, *share = NULL;
  idx *atom = NULL;
  TRY(arena_alloc(&arena, &value, s->listed, sizeof *value));
  TRY(arena_alloc(&arena, &share, (gidx)s->listed * CARRIERS, sizeof *share));
  TRY(arena_alloc(&arena, &atom, (gidx)s->listed * CARRIERS, sizeof *atom));
  for (idx i = 0; i < s->listed; i++) {
    value[i] = s->direction[i].eigenvalue;
    memcpy(share + i * CARRIERS, s->direction[i].share, sizeof s->direction[i].share);
    memcpy(atom + i * CARRIERS, s->direction[i].atom, sizeof s->direction[i].atom);
  }
  TRY(object_write(f, "/run/terminal/identifiability/eigenvalue", 1, shape, value));
  TRY(object_write(f, "/run/terminal/identifiability/atoms", 2, shape, atom));
  TRY(object_write(f, "/run/terminal/identifiability/share", 2, shape, share));
  arena_free(&arena);
  return OK;
}

static int spectrum_write(const struct h5_file *f, const struct spectrum *s)
{
  const char *at = "/run/terminal";
  gidx inertia[3] = {s->inertia[0], s->inertia[1], s->inertia[2]}, n = s->n;
  TRY(h5_attribute_text(f, at, "lapack", s->why));
  TRY(h5_attribute_long(f, at, "lapack_info", s->info));
  if (s->has_inertia) TRY(h5_attribute_longs(f, at, "inertia", 3, inertia));
  if (!s->has_values) return OK;
  TRY(h5_attribute_real(f, at, "condition", s->condition));
  TRY(h5_attribute_long(f, at, "weak_directions", s->weak));
  TRY(h5_attribute_real(f, at, "weak_part", s->weak_part));
  TRY(object_write_vector(f, "/run/terminal/spectrum", n, s->eigenvalue));
  if (s->has_vectors) TRY(weak_write(f, s));
  return OK;
}

static int slq_write(const struct h5_file *f, const struct slq *s)
{
  const char *at = "/run/terminal/slq";
  if (!s->is_there) return OK;
  TRY(h5_group_create(f, at));
  TRY(h5_attribute_real(f, at, "log_det_border", s->estimate));
  TRY(h5_attribute_real(f, at, "standard_error", s->error));
  TRY(h5_attribute_real(f, at, "moved", s->moved));
  TRY(h5_attribute_long(f, at, "probes", s->probes));
  TRY(h5_attribute_long(f, at, "steps", s->steps));
  TRY(h5_attribute_long(f, at, "converged", s->is_converged));
  return h5_attribute_long(f, at, "failed_probe", s->failed_probe);
}

static int duplicates_write(const struct h5_file *f, const struct terminal_result *r)
{
  struct arena arena = {0};
  gidx shape[2] = {r->n_duplicates, 2};
  idx *pair = NULL;
  real *cosine = NULL;
  TRY(h5_attribute_long(f, "/run/terminal", "near_duplicates", r->duplicates));
  TRY(arena_alloc(&arena, &pair, 2 * shape[0], sizeof *pair));
  TRY(arena_alloc(&arena, &cosine, shape[0], sizeof *cosine));
  for (idx i = 0; i < r->n_duplicates; i++) {
    pair[2 * i] = r->duplicate[i].first;
    pair[2 * i + 1] = r->duplicate[i].second;
    cosine[i] = r->duplicate[i].cosine;
  }
  TRY(object_write(f, "/run/terminal/duplicates/pair", 2, shape, pair));
  TRY(object_write(f, "/run/terminal/duplicates/cosine", 1, shape, cosine));
  arena_free(&arena);
  return OK;
}

int terminal_write(const char *path, const struct terminal_result *r, real rho,
                   const struct run_fact *facts, int n_facts)
{
  static struct result_file file;
  const struct h5_file *f = &file.h5;
  gidx block = (gidx)r->max_k * r->max_k * (gidx)sizeof(real);
  TRY(result_create(&file, path, &terminal_kind,
                    block * (r->k + r->n_cross) + 8 * (gidx)r->n_border + SLACK_BYTES));
  TRY(evidence_write(f, r, rho));
  TRY(border_write(f, r));
  TRY(covariance_write(f, r));
  TRY(identity_write(f, INPUTS_GROUP, &r->inputs));
  TRY(h5_group_create(f, "/run/terminal"));
  TRY(spectrum_write(f, &r->spectrum));
  TRY(slq_write(f, &r->slq));
  TRY(duplicates_write(f, r));
  return result_publish(&file, facts, n_facts);
}
