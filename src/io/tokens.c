/* SPDX-License-Identifier: BSD-3-Clause
 * Usually only the tokens around a few rows are read, so the hashes of whole datasets are left to
 * `verify`.  words_check() reads more: the first MAX_NOTED tokens. */
#include "io/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/text.h"
#include "io/inputs.h"
#include "io/npy.h"
#include "io/run_option.h"

enum { MAX_AROUND = 32 };

static const struct input_standard token_standard = {.object = "/token", .file = "rows.h5"};
static const struct input_standard rows_standard = {.object = "/rows", .file = "rows.h5"};

/* Open a vector of integers, one for each row. */
static int vector_open(struct tokens *t, const char *object, gidx n, const char *name,
                       struct h5_array *a)
{
  TRY(h5_array_open(&t->file, object, a));
  CHECK(a->rank == 1 && (a->type == TYPE_I32 || a->type == TYPE_I64), ERR_INPUT,
        "'%s' of '%s' is not a vector of integers", object, t->path);
  CHECK(a->shape[0] == n, ERR_INPUT, "'%s' has the tokens of %lld rows, '%s' is of %lld", t->path,
        (long long)a->shape[0], name, (long long)n);
  return OK;
}

int tokens_open(struct tokens *t, const char *rows, gidx n, const char *name)
{
  const char *object;
  int there;
  TRY(input_split(rows, &rows_standard, &t->path, &object));
  CHECK(input_format_of(t->path) == INPUT_H5, ERR_INPUT,
        "'%s' has no tokens: they are '/token' of an HDF5 file of rows", t->path);
  TRY(h5_open(&t->file, t->path));
  TRY(h5_exists(&t->file, "/token", &there));
  CHECK(there, ERR_INPUT, "'%s' has no tokens: they are its '/token', an integer for each row",
        t->path);
  TRY(vector_open(t, "/token", n, name, &t->token));
  TRY(h5_exists(&t->file, "/window", &there));
  if (there) TRY(vector_open(t, "/window", n, name, &t->window));
  t->n = n;
  return OK;
}

/* The bytes of an integer of type `dtype`, such as <i4 or |u1.  0: another type, or another byte
 * order. */
static int whole_bytes(const char *dtype)
{
  const unsigned short probe = 1;
  char other = *(const unsigned char *)&probe ? '>' : '<';
  int known = strlen(dtype) == 3 && (dtype[1] == 'i' || dtype[1] == 'u') && dtype[2] &&
              strchr("1248", dtype[2]);
  return known && (dtype[0] != other || dtype[2] == '1') ? dtype[2] - '0' : 0;
}

static int flat_vector_open(struct tokens *t, gidx n, const char *name)
{
  TRY(flat_open(&t->flat, t->path));
  TRY(npy_header(&t->flat, 0, t->dtype));
  gidx bytes = whole_bytes(t->dtype);
  CHECK(bytes && t->flat.rank == 1, ERR_INPUT,
        "'%s' holds values of type %s in %d dimensions: tokens are whole numbers, one for each "
        "row, save them by numpy.save(name, tokens.reshape(-1).astype('i4'))",
        t->path, t->dtype, t->flat.rank);
  CHECK(t->flat.shape[0] == n, ERR_INPUT, "'%s' has the tokens of %lld rows, '%s' is of %lld",
        t->path, (long long)t->flat.shape[0], name, (long long)n);
  gidx held = t->flat.input->facts.size - t->flat.data;
  CHECK(held >= n * bytes, ERR_INPUT,
        "'%s' is truncated: it has %lld bytes of values, its shape wants %lld", t->path,
        (long long)held, (long long)(n * bytes));
  return OK;
}

int tokens_open_alone(struct tokens *t, const char *file, gidx n, const char *name)
{
  const char *object;
  TRY(input_split(file, &token_standard, &t->path, &object));
  enum input_format format = input_format_of(t->path);
  CHECK(format != INPUT_SAFETENSORS, ERR_INPUT,
        "'%s' is of safetensors: tokens are a .npy, or a dataset of HDF5, FILE.h5:/path", t->path);
  if (format == INPUT_NPY) {
    TRY(flat_vector_open(t, n, name));
  } else {
    TRY(h5_open(&t->file, t->path));
    TRY(vector_open(t, object, n, name, &t->token));
  }
  t->n = n;
  return OK;
}

/* The value of an integer in a .npy file; negative if it is 2^63 or more, which is not a valid
 * token. */
static gidx whole_number(const unsigned char *at, const char *dtype)
{
  const unsigned short probe = 1;
  int bytes = dtype[2] - '0', is_little = *(const unsigned char *)&probe;
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value |= (uint64_t)at[is_little ? i : bytes - 1 - i] << 8 * i;
  uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
  if (dtype[1] == 'u') return value >> 63 ? -1 : (gidx)value;
  return value & sign ? -(gidx)(sign - (value & (sign - 1)) - 1) - 1 : (gidx)value;
}

/* HDF5 makes the largest gidx of an unsigned integer that is larger (h5/dataset.h). */
static int stored_read(const struct tokens *t, gidx first, gidx n, gidx *token)
{
  TRY(h5_array_read(&t->token, first, n, TYPE_I64, token));
  for (gidx i = 0; i < n; i++)
    CHECK(token[i] < INT64_MAX, ERR_INPUT,
          "'%s' has a token of row %lld that is 2^63 - 1 or more: tokens are numbers of words",
          t->path, (long long)(first + i));
  return OK;
}

static int numbers_read(const struct tokens *t, gidx first, gidx n, gidx *token)
{
  if (!t->flat.file) return stored_read(t, first, n, token);
  gidx bytes = whole_bytes(t->dtype);
  unsigned char *raw =
      (unsigned char *)(token + n) - n * bytes; /* the end of token[]; each number is read before
                                                 * its bytes are overwritten */
  TRY(flat_bytes(&t->flat, t->flat.data + first * bytes, (size_t)(n * bytes), raw));
  for (gidx i = 0; i < n; i++) {
    token[i] = whole_number(raw + i * bytes, t->dtype);
    CHECK(token[i] >= 0, ERR_INPUT,
          "'%s' has a token of row %lld that is negative, or 2^63 or more: tokens are numbers of "
          "words, from 0 on",
          t->path, (long long)(first + i));
  }
  return OK;
}

/* *there <- 1: the rows are one HDF5 file that has /token.  *path <- its name; the caller frees
 * it. */
static int token_find(const char *rows, char **path, int *there)
{
  struct h5_file file = {0};
  const char *object;
  TRY(input_split(rows, &rows_standard, path, &object));
  if (input_format_of(*path) != INPUT_H5) return OK;
  int status = h5_open(&file, *path);
  if (!status) status = h5_exists(&file, "/token", there);
  h5_close(&file);
  return status;
}

int tokens_find(struct tokens *t, const struct h5_file *result, gidx n, const char *name)
{
  const char *rows = NULL;
  char *path = NULL;
  int there = 0;
  TRY(run_option_find(result, "rows", &rows));
  if (!rows || *rows == '@' || strpbrk(rows, "*?[\n")) return OK; /* rows of many files */
  int status = token_find(rows, &path, &there);
  free(path);
  if (!status && there) status = tokens_open(t, rows, n, name);
  if (!status || status == ERR_MEMORY) return status;
  tokens_close(t);
  log_warn("no tokens are shown: %s; give --rows FILE, the file of rows that the run read",
           status_message());
  status_clear();
  return OK;
}

enum { NOTED = 1 << 16, MAX_NOTED = 1 << 24 }; /* rows per read, and rows in all */

/* Warn if tokens in the first MAX_NOTED rows have no words. */
static int words_check(struct tokens *t, const char *path, struct vocabulary_use *use, gidx *token)
{
  gidx end = imin(t->n, MAX_NOTED);
  for (gidx row = 0, n; row < end; row += n) {
    n = imin(NOTED, end - row);
    TRY(numbers_read(t, row, n, token));
    TRY(vocabulary_note(use, &t->words, token, n));
  }
  vocabulary_warn(use, &t->words, path);
  return OK;
}

int tokens_name(struct tokens *t, const char *vocabulary)
{
  struct vocabulary_use use = {0};
  TRY(vocabulary_read(&t->words, vocabulary));
  if (!t->n) return OK; /* the words are for tokens of a capture (io/sources.h) */
  gidx *token = malloc(NOTED * sizeof *token);
  CHECK(token, ERR_MEMORY, "cannot allocate %d tokens", NOTED);
  int status = words_check(t, vocabulary, &use, token);
  free(token);
  free(use.seen);
  return status;
}

void tokens_word(const struct tokens *t, gidx token, int is_row, FILE *out)
{
  const char *word = token >= 0 && token < t->words.n ? t->words.word[token] : NULL;
  if (word && !*word) word = NULL;
  int continues = word && strncmp(word, "##", 2) == 0 && word[2];
  fprintf(out, "%s%s", continues ? "" : " ", is_row ? "[" : "");
  if (word)
    text_print(out, "%s", word + 2 * continues);
  else
    fprintf(out, "%lld", (long long)token);
  if (is_row) fputc(']', out);
}

int tokens_print(const struct tokens *t, gidx row, int around, FILE *out)
{
  gidx token[2 * MAX_AROUND + 1], window[2 * MAX_AROUND + 1];
  int most = around < MAX_AROUND ? around : MAX_AROUND;
  gidx first = row < most ? 0 : row - most, end = row + most + 1 < t->n ? row + most + 1 : t->n;
  gidx n = end - first, at = row - first;
  TRY(numbers_read(t, first, n, token));
  if (t->window.id) TRY(h5_array_read(&t->window, first, n, TYPE_I64, window));
  fputc(' ', out);
  for (gidx i = 0; i < n; i++)
    if (!t->window.id || window[i] == window[at]) tokens_word(t, token[i], i == at, out);
  return OK;
}

int tokens_close(struct tokens *t)
{
  h5_array_close(&t->token);
  h5_array_close(&t->window);
  h5_close(&t->file);
  int status = t->flat.file ? flat_close(&t->flat) : OK;
  free(t->path);
  vocabulary_free(&t->words);
  *t = (struct tokens){0};
  return status;
}
