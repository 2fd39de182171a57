/* SPDX-License-Identifier: BSD-3-Clause
 * What the check tests: log determinants follow from their pairs; covariance blocks are finite,
 * symmetric and padded with NaN; cross pairs are in order and have the strengths of their
 * blocks. */
#include "io/terminal.h"

#include <math.h>
#include <string.h>

#include "base/det_pair.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "io/check.h"

static int same_bits(real a, real b)
{
  return memcmp(&a, &b, sizeof a) == 0;
}

/* *pair <- the pair of a log determinant.  Check that it gives the log determinant. */
static int pair_read(const struct verify *v, const char *name, struct det_pair *pair)
{
  char text[64];
  real value;
  TRY(h5_read_real(v->file, "/terminal", name, &value));
  snprintf(text, sizeof text, "%s_mantissa", name);
  TRY(h5_read_real(v->file, "/terminal", text, &pair->m));
  snprintf(text, sizeof text, "%s_exponent", name);
  TRY(h5_read_long(v->file, "/terminal", text, &pair->e));
  CHECK(same_bits(value, det_pair_value(*pair)), ERR_INPUT,
        "'%s' is %.17g, its mantissa and exponent give %.17g" ANEW, name, value,
        det_pair_value(*pair));
  return OK;
}

static int evidence_check(const struct verify *v)
{
  struct det_pair rows, border;
  real half, wanted;
  char sha[2 * SHA256_HEX];
  gidx words[HASH_WORDS], stored[HASH_WORDS];
  TRY(pair_read(v, "log_det_rows", &rows));
  TRY(pair_read(v, "log_det_border", &border));
  TRY(h5_read_real(v->file, "/terminal", "half_log_det", &half));
  wanted = border.m >= 0.5 ? 0.5 * det_pair_value(det_pair_times(rows, border)) : nan_canonical();
  CHECK(same_bits(half, wanted), ERR_INPUT, "'half_log_det' is %.17g, the pairs give %.17g" ANEW,
        half, wanted);
  TRY(h5_read_text(v->file, "/terminal", "artifact_sha256", sha, sizeof sha));
  CHECK(strlen(sha) == SHA256_HEX - 1 && strspn(sha, "0123456789abcdef") == SHA256_HEX - 1,
        ERR_INPUT, "'artifact_sha256' is '%s', not 64 hexadecimal digits" ANEW, sha);
  artifact_words(sha, words);
  TRY(h5_read_longs(v->file, "/terminal", "artifact_words", HASH_WORDS, stored));
  CHECK(memcmp(words, stored, sizeof words) == 0, ERR_INPUT,
        "'artifact_sha256' and 'artifact_words' are not the same hash" ANEW);
  return OK;
}

/* The data that the checks share. */
struct terminal_pass {
  const struct verify *v;
  gidx k, b, m; /* numbers of atoms, of rows of the largest border block, and of pairs */
  gidx *border; /* [k + 1] */
  real *block;  /* [b][b] */
  struct arena arena;
  struct h5_array array;
};

static int border_check(struct terminal_pass *c)
{
  gidx n;
  TRY(h5_read_long(c->v->file, "/terminal", "n_border", &n));
  TRY(arena_alloc(&c->arena, &c->border, c->k + 1, sizeof *c->border));
  TRY(h5_array_open(c->v->file, "/terminal/border", &c->array));
  TRY(h5_array_read(&c->array, 0, c->k + 1, TYPE_I64, c->border));
  TRY(h5_array_close(&c->array));
  CHECK(c->border[0] == 0 && c->border[c->k] == n, ERR_INPUT,
        "'/terminal/border' goes from %lld to %lld, there are %lld borders" ANEW,
        (long long)c->border[0], (long long)c->border[c->k], (long long)n);
  for (gidx a = 0; a < c->k; a++)
    CHECK(c->border[a + 1] >= c->border[a], ERR_INPUT,
          "'/terminal/border' falls after atom %lld" ANEW, (long long)a);
  return OK;
}

/* Check that the block has rows x columns finite entries, and NaN everywhere else. */
static int block_check(const struct terminal_pass *c, gidx at, gidx rows, gidx columns)
{
  for (gidx i = 0; i < c->b; i++)
    for (gidx j = 0; j < c->b; j++) {
      real x = c->block[i * c->b + j];
      int inside = i < rows && j < columns;
      CHECK(inside ? isfinite(x) : same_bits(x, nan_canonical()), ERR_INPUT,
            "entry (%lld, %lld) of block %lld of '%s' is %g" ANEW, (long long)i, (long long)j,
            (long long)at, c->array.object, x);
    }
  return OK;
}

static int atoms_check_all(struct terminal_pass *c)
{
  TRY(h5_array_open(c->v->file, "/terminal/covariance_blocks", &c->array));
  for (gidx a = 0; a < c->k; a++) {
    gidx size = c->border[a + 1] - c->border[a];
    CHECK(size <= c->b, ERR_INPUT, "atom %lld has %lld borders, blocks have %lld" ANEW,
          (long long)a, (long long)size, (long long)c->b);
    TRY(h5_array_read(&c->array, a, 1, TYPE_F64, c->block));
    TRY(block_check(c, a, size, size));
    for (gidx i = 0; i < size; i++)
      for (gidx j = 0; j < i; j++)
        CHECK(same_bits(c->block[i * c->b + j], c->block[j * c->b + i]), ERR_INPUT,
              "the covariance block of atom %lld is not symmetric" ANEW, (long long)a);
    for (gidx i = 0; i < size; i++)
      CHECK(c->block[i * c->b + i] >= 0, ERR_INPUT, "variance %lld of atom %lld is %g" ANEW,
            (long long)i, (long long)a, c->block[i * c->b + i]);
  }
  return h5_array_close(&c->array);
}

static int pairs_check(struct terminal_pass *c)
{
  idx *pair = NULL;
  real *strength = NULL;
  struct cross before = {INFINITY, -1, -1};
  TRY(arena_alloc(&c->arena, &pair, 2 * c->m, sizeof *pair));
  TRY(arena_alloc(&c->arena, &strength, c->m, sizeof *strength));
  TRY(h5_array_open(c->v->file, "/terminal/cross_pair", &c->array));
  TRY(h5_array_read(&c->array, 0, c->m, TYPE_I32, pair));
  TRY(h5_array_close(&c->array));
  TRY(h5_array_open(c->v->file, "/terminal/cross_strength", &c->array));
  TRY(h5_array_read(&c->array, 0, c->m, TYPE_F64, strength));
  TRY(h5_array_close(&c->array));
  TRY(h5_array_open(c->v->file, "/terminal/cross_blocks", &c->array));
  for (gidx i = 0; i < c->m; i++) {
    struct cross now = {strength[i], pair[2 * i], pair[2 * i + 1]};
    CHECK(now.first >= 0 && now.first < now.second && now.second < c->k, ERR_INPUT,
          "cross pair %lld is of atoms %d and %d" ANEW, (long long)i, now.first, now.second);
    CHECK(cross_before(&before, &now), ERR_INPUT, "cross pairs %lld and %lld are not in order" ANEW,
          (long long)i - 1, (long long)i);
    gidx rows = c->border[now.first + 1] - c->border[now.first];
    gidx columns = c->border[now.second + 1] - c->border[now.second];
    real acc = 0;
    TRY(h5_array_read(&c->array, i, 1, TYPE_F64, c->block));
    TRY(block_check(c, i, rows, columns));
    for (gidx j = 0; j < columns; j++)
      for (gidx l = 0; l < rows; l++)
        acc = fma(c->block[l * c->b + j], c->block[l * c->b + j], acc);
    CHECK(same_bits(sqrt(acc), now.strength), ERR_INPUT,
          "strength %lld is %.17g, its block gives %.17g" ANEW, (long long)i, now.strength,
          sqrt(acc));
    before = now;
  }
  return h5_array_close(&c->array);
}

static int all_check(struct terminal_pass *c)
{
  const struct h5_file *f = c->v->file;
  static const char *const arrays[] = {"/terminal/covariance_blocks", "/terminal/cross_blocks",
                                       "/terminal/cross_pair", "/terminal/cross_strength"};
  int has[LENGTH(arrays)];
  c->k = dimension_value(&c->v->dims, "K");
  TRY(evidence_check(c->v));
  TRY(border_check(c));
  for (int i = 0; i < LENGTH(arrays); i++) {
    TRY(h5_exists(f, arrays[i], &has[i]));
    CHECK(has[i] == has[0], ERR_INPUT, "'%s' has some of the covariance arrays, not all" ANEW,
          f->path);
  }
  if (!has[0]) return OK;
  c->b = dimension_value(&c->v->dims, "b");
  c->m = dimension_value(&c->v->dims, "M");
  CHECK(c->b <= 1 << 14, ERR_INPUT, "blocks of %lld borders" ANEW, (long long)c->b);
  TRY(arena_alloc(&c->arena, &c->block, c->b * c->b, sizeof *c->block));
  TRY(atoms_check_all(c));
  TRY(pairs_check(c));
  return OK;
}

int terminal_check(struct verify *v)
{
  struct terminal_pass c = {.v = v};
  int there;
  TRY(h5_exists(v->file, "/terminal/border", &there));
  if (!v->is_ours || !there) return OK;
  int status = all_check(&c);
  h5_array_close(&c.array);
  arena_free(&c.arena);
  TRY(status);
  check_note(v, "terminal  log determinants from their pairs, blocks, order of %lld cross pairs",
             (long long)c.m);
  return OK;
}
