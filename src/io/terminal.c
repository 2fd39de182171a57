/* SPDX-License-Identifier: BSD-3-Clause
 * Attributes and arrays of terminal.h5; what is not promised to the bit goes below /run. */
#include "io/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "io/schema.h"

enum { SLACK_BYTES = 8 << 20 };

static int array_write(const struct h5_file *f, const char *path, int rank, const gidx *shape,
                       const void *values)
{
  struct h5_array a;
  int status = object_create(f, path, rank, shape, 0, &a);
  if (status == OK) status = h5_array_write(&a, 0, shape[0], values);
  int closed = h5_array_close(&a);
  return status ? status : closed;
}

static int pair_write(const struct h5_file *f, const char *name, struct log_pair pair, real value)
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
  TRY(h5_attribute_text(f, "/", "kind", "terminal"));
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
  TRY(arena_take(&arena, &border, shape, sizeof *border));
  for (gidx a = 0; a < shape; a++) border[a] = r->border[a];
  int status = array_write(f, "/terminal/border", 1, &shape, border);
  arena_free(&arena);
  return status;
}

static int covariance_write(const struct h5_file *f, const struct terminal_result *r)
{
  struct arena arena = {0};
  gidx k = r->k_most, m = r->n_cross;
  gidx blocks[3] = {r->k, k, k}, cross[3] = {m, k, k}, pairs[2] = {m, 2};
  idx *pair = NULL;
  real *strength = NULL;
  if (!r->is_factored || k == 0) return OK;
  TRY(array_write(f, "/terminal/covariance_blocks", 3, blocks, r->covariance));
  TRY(arena_take(&arena, &pair, 2 * m, sizeof *pair));
  TRY(arena_take(&arena, &strength, m, sizeof *strength));
  for (idx i = 0; i < m; i++) {
    pair[2 * i] = r->cross[i].first;
    pair[2 * i + 1] = r->cross[i].second;
    strength[i] = r->cross[i].strength;
  }
  TRY(array_write(f, "/terminal/cross_pair", 2, pairs, pair));
  TRY(array_write(f, "/terminal/cross_strength", 1, pairs, strength));
  TRY(array_write(f, "/terminal/cross_blocks", 3, cross, r->cross_blocks));
  arena_free(&arena);
  return OK;
}

static int weak_write(const struct h5_file *f, const struct spectrum *s)
{
  struct arena arena = {0};
  gidx shape[2] = {s->listed, CARRIERS};
  real *value = NULL, *share = NULL;
  idx *atom = NULL;
  TRY(arena_take(&arena, &value, s->listed, sizeof *value));
  TRY(arena_take(&arena, &share, (gidx)s->listed * CARRIERS, sizeof *share));
  TRY(arena_take(&arena, &atom, (gidx)s->listed * CARRIERS, sizeof *atom));
  for (idx i = 0; i < s->listed; i++) {
    value[i] = s->direction[i].eigenvalue;
    memcpy(share + i * CARRIERS, s->direction[i].share, sizeof s->direction[i].share);
    memcpy(atom + i * CARRIERS, s->direction[i].atom, sizeof s->direction[i].atom);
  }
  TRY(array_write(f, "/run/terminal/identifiability/eigenvalue", 1, shape, value));
  TRY(array_write(f, "/run/terminal/identifiability/atoms", 2, shape, atom));
  TRY(array_write(f, "/run/terminal/identifiability/share", 2, shape, share));
  arena_free(&arena);
  return OK;
}

static int spectrum_write(const struct h5_file *f, const struct spectrum *s)
{
  const char *at = "/run/terminal";
  gidx inertia[3] = {s->inertia[0], s->inertia[1], s->inertia[2]}, n = s->n;
  TRY(h5_attribute_text(f, at, "lapack", s->why));
  if (!s->is_there) return OK;
  TRY(h5_attribute_longs(f, at, "inertia", 3, inertia));
  if (!s->eigenvalue) return OK;
  TRY(h5_attribute_real(f, at, "condition", s->condition));
  TRY(h5_attribute_long(f, at, "weak_directions", s->weak));
  TRY(h5_attribute_real(f, at, "weak_part", s->weak_part));
  TRY(array_write(f, "/run/terminal/spectrum", 1, &n, s->eigenvalue));
  return weak_write(f, s);
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
  TRY(arena_take(&arena, &pair, 2 * shape[0], sizeof *pair));
  TRY(arena_take(&arena, &cosine, shape[0], sizeof *cosine));
  for (idx i = 0; i < r->n_duplicates; i++) {
    pair[2 * i] = r->duplicate[i].first;
    pair[2 * i + 1] = r->duplicate[i].second;
    cosine[i] = r->duplicate[i].cosine;
  }
  TRY(array_write(f, "/run/terminal/duplicates/pair", 2, shape, pair));
  TRY(array_write(f, "/run/terminal/duplicates/cosine", 1, shape, cosine));
  arena_free(&arena);
  return OK;
}

int terminal_write(const char *path, const struct terminal_result *r, real rho,
                   const struct run_fact *facts, int n_facts)
{
  static struct result_file file;
  const struct h5_file *f = &file.h5;
  gidx block = (gidx)r->k_most * r->k_most * (gidx)sizeof(real);
  TRY(result_create(&file, path,
                    block * (r->k + r->n_cross) + 8 * (gidx)r->n_border + SLACK_BYTES));
  TRY(evidence_write(f, r, rho));
  TRY(border_write(f, r));
  TRY(covariance_write(f, r));
  TRY(h5_group_create(f, "/run/terminal"));
  TRY(spectrum_write(f, &r->spectrum));
  TRY(slq_write(f, &r->slq));
  TRY(duplicates_write(f, r));
  return result_publish(&file, facts, n_facts);
}

/* The names of a dump: the artifact's text, the atoms' texts. */
struct dump_names {
  char path[2][4096], temporary[2][4096];
};

static int dump_name(struct dump_names *names, const char *path)
{
  CHECK(strlen(path) > 0 && strlen(path) + 16 < sizeof names->path[0], ERR_CREATE,
        "the name '%s' of the dump is empty or too long", path);
  for (int i = 0; i < 2; i++) {
    const char *end = i ? ".atoms" : "";
    snprintf(names->path[i], sizeof names->path[i], "%.4070s%s", path, end);
    snprintf(names->temporary[i], sizeof names->temporary[i], "%.4070s%s.tmp", path, end);
  }
  return OK;
}

int artifact_place(const char *path, int force)
{
  struct dump_names names;
  TRY(dump_name(&names, path));
  for (int i = 0; i < 2; i++) {
    struct stat facts;
    int there = lstat(names.path[i], &facts) == 0;
    CHECK(!there || S_ISREG(facts.st_mode), ERR_CREATE, "cannot create '%s': it is not a file",
          names.path[i]);
    CHECK(!there || force, ERR_CREATE, "'%s' is there already: add --force to replace it",
          names.path[i]);
    FILE *file = fopen(names.temporary[i], "wb");
    CHECK(file, ERR_CREATE, "cannot create '%s': %s", names.temporary[i], strerror(errno));
    fclose(file);
    unlink(names.temporary[i]);
  }
  return OK;
}

static int dump_fill(FILE **file, const struct artifact *a, const float *atoms, idx k, idx d, idx p)
{
  struct arena arena = {0};
  size_t bytes = artifact_atom_bytes(d, p);
  unsigned char *text = NULL;
  TRY(arena_take(&arena, &text, (gidx)bytes, 1));
  int good = fwrite(a->text, 1, a->bytes, file[0]) == a->bytes;
  for (idx i = 0; i < k && good; i++) {
    artifact_atom(atoms + (gidx)i * d * p, d, p, text);
    good = fwrite(text, 1, bytes, file[1]) == bytes;
  }
  arena_free(&arena);
  CHECK(good, ERR_IO, "%s", strerror(errno));
  return OK;
}

static int dump_publish(const struct dump_names *names, const struct artifact *a,
                        const float *atoms, idx k, idx d, idx p)
{
  FILE *file[2] = {fopen(names->temporary[0], "wb"), fopen(names->temporary[1], "wb")};
  int status = file[0] && file[1] ? dump_fill(file, a, atoms, k, d, p) : ERR_IO;
  for (int i = 0; i < 2; i++)
    if (file[i] && (fflush(file[i]) | fsync(fileno(file[i])) | fclose(file[i]))) status = ERR_IO;
  for (int i = 0; i < 2 && status == OK; i++)
    if (rename(names->temporary[i], names->path[i])) status = ERR_IO;
  return status;
}

int artifact_dump(const char *path, const struct artifact *a, const float *atoms, idx k, idx d,
                  idx p)
{
  struct dump_names names;
  TRY(dump_name(&names, path));
  int status = dump_publish(&names, a, atoms, k, d, p), error = errno;
  for (int i = 0; i < 2 && status; i++) unlink(names.temporary[i]);
  CHECK(!status, status == ERR_MEMORY ? ERR_MEMORY : ERR_IO, "cannot write '%s' and '%s': %s",
        names.path[0], names.path[1], strerror(error));
  return OK;
}
