/* SPDX-License-Identifier: BSD-3-Clause
 * A record is a fixed number of 64-bit numbers, then arrays whose lengths are among these. */
#include "io/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/block_tree.h"
#include "base/json.h"
#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "base/text.h"
#include "io/ranges.h"

struct numbers {
  gidx n, k, s, d, p, has_codes;
  gidx first, rows, total, terms, sample, files, fingerprint, nonzero;
  gidx codes, negative, zero, cosine, dictionary, inputs, counted, zeros[SUPPORTS_ARRAYS];
  gidx rounds, normalized, nonnegative;
  real rho, max_decoder_cosine;
  gidx nodes, bins, means, identity; /* lengths; nodes 0: there are no sums, and no shift */
};

/* Bytes of a record.  Its arrays follow the numbers in this order: shift, sums, norms, density,
 * mean, identity. */
static gidx bytes_of(const struct numbers *n)
{
  gidx width = part_width((idx)n->p), shift = n->nodes ? n->p : 0;
  return (gidx)sizeof *n + 8 * (shift + n->nodes * width + 3 * n->bins + n->k + n->means) +
         n->identity;
}

static struct numbers numbers_of(const struct record *r)
{
  const struct encode_part *part = &r->part;
  const struct supports_shape *shape = &r->shape;
  struct numbers n = {.n = shape->n,
                      .k = shape->k,
                      .s = shape->s,
                      .d = shape->d,
                      .p = shape->p,
                      .has_codes = shape->has_codes != 0,
                      .first = part->first,
                      .rows = part->n,
                      .total = part->total,
                      .terms = (gidx)part->rows_terms,
                      .sample = (gidx)part->rows_sample,
                      .files = (gidx)part->rows_files,
                      .fingerprint = (gidx)part->fingerprint,
                      .nonzero = part->nonzero,
                      .codes = part->codes.all,
                      .negative = part->codes.negative,
                      .zero = part->codes.zero,
                      .cosine = part->max_cosine,
                      .dictionary = (gidx)r->dictionary,
                      .inputs = (gidx)r->inputs,
                      .counted = r->counted,
                      .rounds = r->rounds,
                      .normalized = r->normalized != 0,
                      .nonnegative = shape->nonnegative != 0,
                      .rho = r->rho,
                      .max_decoder_cosine = r->max_decoder_cosine,
                      .means = r->mean ? shape->p : 0,
                      .nodes = part->shift ? part->sums.nodes : 0,
                      .bins = part->norms ? norms_used(part->norms) : 0,
                      .identity = (gidx)strlen(r->identity)};
  memcpy(n.zeros, r->zeros, sizeof n.zeros);
  return n;
}

gidx record_most(const struct record *r, gidx rows)
{
  struct numbers n = numbers_of(r);
  if (n.nodes) n.nodes = block_tree_depth(r->part.first / ROW_BLOCK, ceil_div(rows, ROW_BLOCK));
  if (n.nodes) n.bins = NORM_BINS;
  n.identity += 4096; /* space for hashes that are not known yet */
  return bytes_of(&n);
}

static unsigned char *put(unsigned char *at, const void *from, gidx bytes)
{
  if (bytes) memcpy(at, from, (size_t)bytes);
  return at + bytes;
}

int record_pack(const struct record *r, unsigned char **bytes, gidx *count)
{
  const struct encode_part *part = &r->part;
  const struct numbers n = numbers_of(r);
  *count = bytes_of(&n);
  unsigned char *at = *bytes = malloc((size_t)*count);
  CHECK(at, ERR_MEMORY, "cannot allocate a record of %lld bytes", (long long)*count);
  at = put(at, &n, sizeof n);
  if (n.nodes) at = put(at, part->shift, 8 * n.p);
  at = put(at, part->sums.values, 8 * n.nodes * part_width((idx)n.p));
  if (n.bins) norms_pack(part->norms, (gidx *)(void *)at);
  at = put(at + 24 * n.bins, r->density, 8 * n.k);
  at = put(at, r->mean, 8 * n.means);
  put(at, r->identity, n.identity);
  return OK;
}

static int numbers_read(const struct journal *j, struct numbers *n)
{
  const gidx most = (gidx)1 << 48;
  int fits = j->bytes >= (gidx)sizeof *n;
  if (fits) memcpy(n, j->record, sizeof *n);
  fits = fits && n->k >= 1 && n->k < INT32_MAX && n->s >= 1 && n->d >= 1 && n->p >= 1 &&
         n->p < 1 << 30 && n->n > 0 && n->n < most && n->rows > 0 && n->rows <= n->n &&
         n->rows == j->rows && (n->rows % ROW_BLOCK == 0 || n->rows == n->n) && n->first >= 0 &&
         n->first < most && n->first % ROW_BLOCK == 0 && n->total >= n->first + n->n &&
         n->bins >= 0 && n->bins <= NORM_BINS && (n->means == 0 || n->means == n->p) &&
         n->identity >= 0 && n->identity <= j->bytes;
  int nodes = fits ? block_nodes_count(n->first / ROW_BLOCK, ceil_div(n->rows, ROW_BLOCK)) : 0;
  fits = fits && n->nodes == (n->has_codes ? nodes : 0) && bytes_of(n) == j->bytes;
  CHECK(fits, ERR_INPUT, "'%s' is no journal of an encoding", j->name);
  return OK;
}

/* *out <- `count` 64-bit numbers from *at on, copied to the arena. *at moves past them. */
static int take(const unsigned char **at, gidx count, struct arena *arena, void *out)
{
  void *array;
  TRY(arena_alloc(arena, &array, count, 8));
  memcpy(array, *at, (size_t)count * 8);
  memcpy(out, &array, sizeof array);
  *at += count * 8;
  return OK;
}

static int sums_take(const unsigned char **at, const struct numbers *n, struct encode_part *part,
                     struct arena *arena)
{
  TRY(take(at, n->p, arena, &part->shift));
  part->sums = (struct part_sums){.first = n->first / ROW_BLOCK,
                                  .count = ceil_div(n->rows, ROW_BLOCK),
                                  .p = (idx)n->p,
                                  .nodes = (int)n->nodes};
  return take(at, n->nodes * part_width((idx)n->p), arena, &part->sums.values);
}

/* Read the norms of rows.  ERR_INPUT: their bins are not valid (norms.h). */
static int norms_take(const unsigned char **at, const struct numbers *n, const char *name,
                      struct encode_part *part, struct arena *arena)
{
  struct norms *norms;
  gidx *packed;
  TRY(take(at, 3 * n->bins, arena, &packed));
  TRY(arena_alloc(arena, &norms, 1, sizeof *norms));
  CHECK(norms_unpack(norms, packed, n->bins), ERR_INPUT, "'%s' is no journal of an encoding", name);
  part->norms = norms;
  return OK;
}

int record_read(struct record *r, const struct journal *j, struct arena *arena)
{
  struct numbers n = {0};
  const unsigned char *at = j->record + sizeof n;
  char *identity;
  TRY(numbers_read(j, &n));
  *r = (struct record){.shape = {.n = n.n,
                                 .k = (idx)n.k,
                                 .s = (idx)n.s,
                                 .d = (idx)n.d,
                                 .p = (idx)n.p,
                                 .has_codes = (int)n.has_codes,
                                 .nonnegative = (int)n.nonnegative},
                       .part = {.first = n.first,
                                .n = n.rows,
                                .total = n.total,
                                .p = (idx)n.p,
                                .rows_terms = (uint64_t)n.terms,
                                .rows_sample = (uint64_t)n.sample,
                                .rows_files = (uint64_t)n.files,
                                .fingerprint = (uint64_t)n.fingerprint,
                                .nonzero = n.nonzero,
                                .codes = {n.codes, n.negative, n.zero},
                                .max_cosine = (idx)n.cosine},
                       .dictionary = (uint64_t)n.dictionary,
                       .inputs = (uint64_t)n.inputs,
                       .counted = n.counted,
                       .rounds = (idx)n.rounds,
                       .normalized = (int)n.normalized,
                       .rho = n.rho,
                       .max_decoder_cosine = n.max_decoder_cosine};
  memcpy(r->zeros, n.zeros, sizeof n.zeros);
  if (n.nodes) TRY(sums_take(&at, &n, &r->part, arena));
  if (n.bins) TRY(norms_take(&at, &n, j->name, &r->part, arena));
  TRY(take(&at, n.k, arena, &r->density));
  if (n.means) TRY(take(&at, n.means, arena, &r->mean));
  TRY(arena_alloc(arena, &identity, n.identity + 1, 1));
  memcpy(identity, at, (size_t)n.identity);
  r->identity = identity;
  return OK;
}

int record_identity(const char *name, char **text, gidx *numbers)
{
  struct journal j = {0};
  struct record r = {0};
  struct arena arena = {0};
  *text = NULL;
  int status = journal_open(&j, name);
  if (!status) status = record_read(&r, &j, &arena);
  if (!status) *text = strdup(r.identity);
  if (!status && !*text)
    status =
        status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate the identity of '%s'", name);
  if (!status && numbers) numbers[0] = r.part.n, numbers[1] = r.shape.n;
  arena_free(&arena);
  journal_close(&j);
  return status;
}

/* numbers[0] <- the rows of a range that are done, or 0; numbers[1] <- all its rows.  *text <- the
 * identity of its job, if *text is NULL.  The caller frees it. */
static void range_take(const struct range *r, char **text, gidx numbers[2])
{
  char *again = NULL;
  numbers[0] = 0, numbers[1] = r->end - r->first;
  if (record_identity(r->journal, &again, numbers)) status_clear();
  if (!*text) *text = again, again = NULL;
  free(again);
}

/* path[4096] <- the result that a growing file of several jobs becomes. */
static void ranges_path(const char *growing, char *path)
{
  enum { TAIL = sizeof ".0123456789abcdef" GROWING_END - 1 };
  snprintf(path, 4096, "%.*s", (int)strlen(growing) - TAIL, growing);
}

/* List the ranges of this growing file.  The list is empty if the journals in the folder belong to
 * another growing file. */
static int ranges_of(const char *growing, struct range_list *list)
{
  char path[4096];
  ranges_path(growing, path);
  int status = ranges_find(list, path);
  if (strcmp(list->growing, growing) != 0) list->count = 0;
  return status;
}

/* Print the page of a growing file of several jobs. */
static int ranges_print(const char *growing, FILE *out)
{
  char *text = NULL;
  struct range_list list;
  gidx numbers[2];
  int status = ranges_of(growing, &list);
  text_print(out, "%s\n  a result that jobs with --join write; `sagitta merge` publishes it\n",
             growing);
  for (int i = 0; i < list.count && !status; i++) {
    const struct range *r = &list.all[i];
    range_take(r, &text, numbers);
    text_print(out, "  rows %lld to %lld: %lld of %lld are recorded\n", (long long)r->first,
               (long long)r->end - 1, (long long)numbers[0], (long long)numbers[1]);
  }
  if (text) text_print(out, "\n%s", text);
  free(text);
  ranges_free(&list);
  return status;
}

int record_print(const char *name, FILE *out)
{
  char journal[4096], *text;
  gidx numbers[2];
  CHECK(strlen(name) < sizeof journal - 64, ERR_INPUT, "the name '%s' is too long", name);
  if (journal_is_growing(name) && ranges_are(name)) return ranges_print(name, out);
  if (journal_is(name))
    strcpy(journal, name);
  else
    journal_of(name, journal);
  TRY(record_identity(journal, &text, numbers));
  text_print(out,
             "%s\n  a result that grows: %lld of %lld rows are recorded; --resume continues\n\n",
             name, (long long)numbers[0], (long long)numbers[1]);
  text_print(out, "%s", text);
  free(text);
  CHECK(!ferror(out), ERR_IO, "cannot write the page about '%s'", name);
  return OK;
}

/* Add the id of the job or jobs: the 16 hexadecimal digits in front of `end` in the name.  In the
 * name of a range's journal ".<first row>-<end row>" stands between the digits and `end`. */
static void id_json(const char *name, const char *end, struct json *j)
{
  enum { DIGITS = 16 };
  char id[DIGITS + 1] = "";
  size_t length = strlen(name) - strlen(end), rows = 0;
  while (rows < length && strchr("0123456789-", name[length - 1 - rows])) rows++;
  int has_rows = memchr(name + length - rows, '-', rows) && name[length - 1 - rows] == '.';
  if (has_rows) length -= rows + 1;
  if (length > DIGITS) memcpy(id, name + length - DIGITS, DIGITS);
  json_text(j, "id", id);
}

/* Add the ranges of a growing file of several jobs. */
static int ranges_json(const char *growing, struct json *j)
{
  char *text = NULL;
  struct range_list list;
  int status = ranges_of(growing, &list);
  if (!status) {
    json_text(j, "file", growing);
    json_text(j, "type", "growing");
    id_json(growing, GROWING_END, j);
    json_array(j, "ranges");
    for (int i = 0; i < list.count; i++) {
      const struct range *r = &list.all[i];
      gidx numbers[2];
      range_take(r, &text, numbers);
      json_object(j, NULL);
      json_long(j, "first_row", r->first);
      json_long(j, "rows", numbers[1]);
      json_long(j, "rows_done", numbers[0]);
      json_end(j);
    }
    json_end(j);
    json_text(j, "identity", text ? text : "");
  }
  free(text);
  ranges_free(&list);
  return status;
}

static void shape_json(const struct supports_shape *s, struct json *j)
{
  json_long(j, "columns", s->p);
  json_long(j, "atoms", s->k);
  json_long(j, "frame", s->d);
  json_long(j, "top_s", s->s);
  json_flag(j, "codes", s->has_codes);
}

int record_json(const char *name, struct json *json)
{
  char path[4096];
  struct journal j = {0};
  struct record r = {0};
  struct arena arena = {0};
  if (journal_is_growing(name) && ranges_are(name)) return ranges_json(name, json);
  snprintf(path, sizeof path, "%s", name);
  if (journal_is_growing(name)) journal_of(name, path);
  int status = journal_open(&j, path);
  if (!status) status = record_read(&r, &j, &arena);
  if (!status) {
    json_text(json, "file", name);
    json_text(json, "type", journal_is(name) ? "journal" : "growing");
    id_json(path, JOURNAL_END, json);
    json_long(json, "record", j.number);
    json_long(json, "rows", r.shape.n);
    json_long(json, "rows_done", r.part.n);
    json_long(json, "rows_left", r.shape.n - r.part.n);
    json_long(json, "first_row", r.part.first);
    shape_json(&r.shape, json);
    json_text(json, "identity", r.identity);
  }
  arena_free(&arena);
  journal_close(&j);
  return status;
}
