/* SPDX-License-Identifier: BSD-3-Clause
 * One pass over the dictionary, and one over the supports.  Without a vocabulary, tokens are read
 * only near the rows that are shown. */
#include "io/inspect_atom.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/text.h"
#include "io/dictionary.h"
#include "io/firing.h"
#include "io/inputs.h"
#include "io/seeds.h"
#include "io/sources.h"
#include "io/supports_input.h"
#include "io/tokens.h"
#include "model/codes.h"
#include "model/identity.h"
#include "model/route.h"
#include "model/top.h"

enum { PIECE = 256, AROUND = 8 }; /* atoms read at a time; tokens on each side of a row */

/* The results about an atom. */
struct atom_summary {
  const struct atom_request *request;
  struct dictionary_input dictionary;
  struct supports_input supports;
  struct seeds_record seeds; /* stability NULL: it is not known */
  const float *firing;       /* [k] a code above this number fires (N.37f); NULL: not known */
  gidx fires;                /* number of rows in which the atom fires */
  struct entry *nearest;     /* [count] */
  struct top_rows top;       /* the rows with the largest codes of this atom */
  float *codes;              /* [n_codes] codes of the atom that are not 0; owned */
  gidx n_codes, capacity, density;
  struct tokens tokens; /* tokens.words may be known without an open file of tokens */
  struct sources_names names;
  struct sources sources;
  struct arena arena;
};

/* The cosine of an atom and another one, as in (N.22).  For frames (d > 1) it is the largest norm
 * of the projection of a unit vector of one frame onto the other. */
static struct entry cosine_find(const struct atom_summary *w, const float *own, const float *other,
                                idx atom)
{
  const struct atom_source *s = &w->dictionary.source;
  struct entry best = ENTRY_NONE;
  for (idx m = 0; m < s->d; m++) {
    struct entry e = {route_value(own + (gidx)m * s->p, other, s->d, s->p), atom};
    if (w->dictionary.nonnegative) e.value = route_positive(e.value);
    if (best.atom < 0 || entry_before(e, best)) best = e;
  }
  return best;
}

/* Put an entry into a list of `count` in the order of (N.2). */
static void nearest_add(struct entry *list, idx count, struct entry e)
{
  for (idx i = 0; i < count; i++) {
    struct entry old = list[i];
    if (!entry_before(e, old)) continue;
    list[i] = e;
    e = old;
  }
}

/* Find the nearest atoms, and the hash of the dictionary. */
static int dictionary_scan(struct atom_summary *w, uint64_t *hash)
{
  const struct atom_source *s = &w->dictionary.source;
  idx count = w->request->count;
  gidx frame = (gidx)s->d * s->p;
  float *own, *piece;
  uint64_t terms = 0;
  TRY(arena_alloc(&w->arena, &own, frame, sizeof *own));
  TRY(arena_alloc(&w->arena, &piece, PIECE * frame, sizeof *piece));
  TRY(arena_alloc(&w->arena, &w->nearest, count, sizeof *w->nearest));
  for (idx i = 0; i < count; i++) w->nearest[i] = ENTRY_NONE;
  TRY(s->read(s->self, w->request->atom, 1, own));
  for (idx first = 0; first < s->k; first += PIECE) {
    idx n = s->k - first < PIECE ? s->k - first : PIECE;
    TRY(s->read(s->self, first, n, piece));
    TRY(atoms_check(piece, n, s->d, s->p, first, s->name));
    terms += items_terms(piece, n, frame, first);
    for (idx i = 0; i < n; i++)
      if (first + i != w->request->atom)
        nearest_add(w->nearest, count, cosine_find(w, own, piece + i * frame, first + i));
  }
  *hash = content_hash(terms, s->k, s->d, s->p);
  return OK;
}

static int code_keep(struct atom_summary *w, float code)
{
  if (w->n_codes == w->capacity) {
    w->capacity = 2 * w->capacity + 1024;
    float *more = realloc(w->codes, (size_t)w->capacity * sizeof *more);
    CHECK(more, ERR_MEMORY, "cannot allocate %lld codes", (long long)w->capacity);
    w->codes = more;
  }
  w->codes[w->n_codes++] = code;
  return OK;
}

static int block_scan(struct atom_summary *w, const struct supports *s)
{
  idx d = w->supports.source.d;
  for (gidx i = 0; i < s->view.n; i++)
    for (gidx e = s->view.start[i]; e < s->view.start[i + 1]; e++) {
      if (s->view.atoms[e] != w->request->atom) continue;
      float code = code_summary(s->codes + e * d, d);
      w->density++;
      w->fires += w->firing && code > w->firing[w->request->atom];
      if (code == 0) continue;
      top_add(&w->top, 0, s->first + i, code);
      TRY(code_keep(w, code));
    }
  return OK;
}

/* The sum of the hash terms of the atoms of some rows. */
static uint64_t rows_terms(const struct supports *s)
{
  uint64_t terms = 0;
  for (gidx i = 0; i < s->view.n; i++) {
    gidx from = s->view.start[i], length = s->view.start[i + 1] - from;
    terms += support_terms(s->view.atoms + from, 1, (idx)length, s->first + i);
  }
  return terms;
}

static int supports_scan(struct atom_summary *w)
{
  const struct support_source *source = &w->supports.source;
  int has_sources = sources_there(&w->sources);
  uint64_t terms = 0;
  gidx longest = 0;
  for (gidx at = 0; at < source->n;) {
    struct supports s;
    gidx count, begin;
    TRY(supports_block(source, at, source->n - at, &count, &begin));
    int status = supports_load(&s, source, at, count, 1);
    if (!status) status = block_scan(w, &s);
    if (!status && has_sources) terms += rows_terms(&s), longest = imax(longest, s.longest);
    supports_free(&s);
    TRY(status);
    at += count;
  }
  return sources_check(&w->sources, &w->names, content_hash(terms, source->n, longest, 1));
}

static int code_order(const void *a, const void *b)
{
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* The smallest of the codes that has at least this share of the codes at or below it. */
static real quantile(const struct atom_summary *w, real share)
{
  gidx at = (gidx)ceil(share * (real)w->n_codes) - 1;
  return w->codes[at < 0 ? 0 : at];
}

static const struct {
  const char *name, *key;
  real share;
} quantiles[] = {{"least", "least", 0},     {"10 %", "share_10", 0.1},  {"25 %", "share_25", 0.25},
                 {"median", "median", 0.5}, {"75 %", "share_75", 0.75}, {"90 %", "share_90", 0.9},
                 {"largest", "largest", 1}};

static void codes_print(const struct atom_summary *w, FILE *out)
{
  if (!w->n_codes) return;
  fprintf(out, "%-12s", "codes");
  for (int i = 0; i < LENGTH(quantiles); i++)
    fprintf(out, "%s%s %.4g", i ? ", " : "", quantiles[i].name, quantile(w, quantiles[i].share));
  fputc('\n', out);
}

static real percent_of(const struct atom_summary *w, gidx rows)
{
  gidx n = w->supports.source.n;
  return n ? 100.0 * (double)rows / (double)n : 0;
}

/* Print the number of rows in which the atom fires, so that its feature counts as present. */
static void fires_print(const struct atom_summary *w, FILE *out)
{
  if (!w->firing) return;
  fprintf(out, "%-12s%lld of %lld rows, %.4g %%: those with a code above %.4g\n", "fires",
          (long long)w->fires, (long long)w->supports.source.n, percent_of(w, w->fires),
          (double)w->firing[w->request->atom]);
}

static void nearest_print(const struct atom_summary *w, FILE *out)
{
  const char *separator = "";
  fprintf(out, "%-12s", "nearest");
  for (idx i = 0; i < w->request->count && w->nearest[i].atom >= 0; i++, separator = ", ")
    fprintf(out, "%s%d (%.3f)", separator, w->nearest[i].atom,
            (double)entry_score(w->nearest[i], w->dictionary.source.d, 0));
  fputc('\n', out);
}

/* Print the stability of the atom, and its cosine with its pair in each other seed. */
static void stability_print(const struct atom_summary *w, FILE *out)
{
  const struct seeds_record *s = &w->seeds;
  if (!s->stability) return;
  fprintf(out, "%-12s%.4f, the largest cosine with its pair in %d other seeds:", "stability",
          (double)s->stability[w->request->atom], s->done);
  for (idx r = 0; r < s->done; r++)
    fprintf(out, "%s %.4f", r ? "," : "", (double)s->cosine[(gidx)r * s->k + w->request->atom]);
  fputc('\n', out);
}

static int has_words(const struct atom_summary *w)
{
  return w->tokens.n || w->sources.has_tokens;
}

/* Print the tokens around a row.  They come from the file of rows, or if it has none, from the
 * capture. */
static int words_print(struct atom_summary *w, gidx row, FILE *out)
{
  if (w->tokens.n) return tokens_print(&w->tokens, row, AROUND, out);
  return w->sources.has_tokens ? sources_context(&w->sources, &w->tokens, row, AROUND, out) : OK;
}

/* *list <- the request to show the sources of the atom in a row.  list->pair is the place of the
 * atom among the entries of the supports. */
static int list_find(const struct atom_summary *w, gidx row, struct source_list *list)
{
  const struct support_source *s = &w->supports.source;
  gidx start[2];
  *list = (struct source_list){row, -1, w->request->sources, &w->tokens};
  TRY(s->starts(s->self, row, 1, start));
  for (gidx e = start[0]; e < start[1]; e++) {
    idx atom;
    TRY(s->read(s->self, e, 1, &atom, NULL, NULL));
    if (atom == w->request->atom) list->pair = e;
  }
  CHECK(list->pair >= 0, ERR_INTERNAL, "row %lld lost atom %d", (long long)row, w->request->atom);
  return OK;
}

static int rows_print(struct atom_summary *w, FILE *out)
{
  if (w->top.row[0] < 0) return OK;
  fprintf(out, "\n%12s %12s%s\n", "row", "code", has_words(w) ? "  tokens" : "");
  for (idx i = 0; i < w->top.r && w->top.row[i] >= 0; i++) {
    struct source_list list;
    fprintf(out, "%12lld %12.6g", (long long)w->top.row[i], (double)w->top.code[i]);
    TRY(words_print(w, w->top.row[i], out));
    fputc('\n', out);
    if (!sources_there(&w->sources)) continue;
    TRY(list_find(w, w->top.row[i], &list));
    TRY(sources_print(&w->sources, &list, out));
  }
  return OK;
}

static int contents_print(struct atom_summary *w, FILE *out)
{
  const struct support_source *s = &w->supports.source;
  const struct atom_source *a = &w->dictionary.source;
  text_print(out, "atom %d of %s: %d atoms of %d columns\n", w->request->atom, a->name, a->k, a->p);
  fprintf(out, "%-12s%lld of %lld rows, %.4g %%\n", "density", (long long)w->density,
          (long long)s->n, percent_of(w, w->density));
  fires_print(w, out);
  codes_print(w, out);
  stability_print(w, out);
  nearest_print(w, out);
  return rows_print(w, out);
}

static int words_json(struct atom_summary *w, gidx row, struct json *j)
{
  char *text;
  size_t bytes;
  FILE *memory;
  TRY(text_open(&memory, &text, &bytes, "the words of a row"));
  int status = words_print(w, row, memory), closed = text_close(memory, "the words of a row");
  if (!status) status = closed;
  if (!status) json_text(j, "tokens", text + strspn(text, " "));
  free(text);
  return status;
}

static int row_json(struct atom_summary *w, gidx row, struct json *j)
{
  struct source_list list;
  if (has_words(w)) TRY(words_json(w, row, j));
  if (!sources_there(&w->sources)) return OK;
  TRY(list_find(w, row, &list));
  return sources_json(&w->sources, &list, j);
}

static int rows_json(struct atom_summary *w, struct json *j)
{
  json_array(j, "strongest");
  for (idx i = 0; i < w->top.r && w->top.row[i] >= 0; i++) {
    json_object(j, NULL);
    json_long(j, "row", w->top.row[i]);
    json_real(j, "code", w->top.code[i]);
    TRY(row_json(w, w->top.row[i], j));
    json_end(j);
  }
  json_end(j);
  return OK;
}

static int entries_json(struct atom_summary *w, struct json *j)
{
  json_text(j, "dictionary", w->dictionary.source.name);
  json_long(j, "atoms", w->dictionary.source.k);
  json_long(j, "rows", w->supports.source.n);
  json_long(j, "atom", w->request->atom);
  json_long(j, "density", w->density);
  if (w->firing) json_long(j, "fires", w->fires);
  if (w->firing) json_real(j, "threshold", w->firing[w->request->atom]);
  json_object(j, "codes");
  for (int i = 0; i < LENGTH(quantiles) && w->n_codes; i++)
    json_real(j, quantiles[i].key, quantile(w, quantiles[i].share));
  json_end(j);
  if (w->seeds.stability) json_real(j, "stability", w->seeds.stability[w->request->atom]);
  json_array(j, "nearest");
  for (idx i = 0; i < w->request->count && w->nearest[i].atom >= 0; i++) {
    json_object(j, NULL);
    json_long(j, "atom", w->nearest[i].atom);
    json_real(j, "cosine", entry_score(w->nearest[i], w->dictionary.source.d, 0));
    json_end(j);
  }
  json_end(j);
  return rows_json(w, j);
}

/* Fail if the folder lacks a file that this page needs: the folders of some commands do. */
static int folder_check(const char *folder)
{
  static const struct {
    const char *file, *mend;
  } needed[] = {
      {"dictionary.h5", "copy the dictionary.h5 of these codes there"},
      {"supports.h5", "copy the supports.h5 there that `sagitta encode` makes with the dictionary"},
  };
  char path[MAX_NAME];
  for (int i = 0; i < LENGTH(needed); i++) {
    TRY(input_in_folder(folder, needed[i].file, path));
    CHECK(
        input_is_there(path), ERR_IO,
        "cannot open '%s': an atom's page needs a folder with dictionary.h5 and supports.h5: give "
        "that of a `sagitta fit`, or %s",
        path, needed[i].mend);
  }
  return OK;
}

static int firing_open(struct atom_summary *w)
{
  float *firing;
  TRY(firing_read(&w->dictionary.input->h5, w->dictionary.source.k, &w->arena, &firing));
  w->firing = firing;
  return OK;
}

static int inputs_open(struct atom_summary *w)
{
  const struct atom_request *q = w->request;
  TRY(folder_check(q->folder));
  TRY(dictionary_input_open(&w->dictionary, q->folder));
  TRY(seeds_read(&w->dictionary.input->h5, w->dictionary.source.k, &w->arena, &w->seeds));
  if (w->dictionary.source.d == 1) TRY(firing_open(w));
  TRY(supports_input_open(&w->supports, q->folder));
  const struct support_source *s = &w->supports.source;
  idx k = w->dictionary.source.k;
  CHECK(s->k == k, ERR_INPUT, "'%s' has %d atoms, '%s' is of %d: they do not belong together",
        w->dictionary.source.name, k, s->name, s->k);
  CHECK(q->atom < k, ERR_INPUT, "there is no atom %d in '%s': it has atoms 0 to %d", q->atom,
        w->dictionary.source.name, k - 1);
  CHECK(s->has_codes, ERR_INPUT,
        "'%s' holds scores of `sagitta route` and no codes: make codes with `sagitta encode`",
        s->name);
  TRY(q->tokens ? tokens_open_alone(&w->tokens, q->tokens, s->n, s->name)
      : q->rows ? tokens_open(&w->tokens, q->rows, s->n, s->name)
                : tokens_find(&w->tokens, supports_input_file(&w->supports), s->n, s->name));
  w->names = (struct sources_names){q->folder, q->attribution, q->capture};
  TRY(sources_open(&w->sources, &w->names, s));
  CHECK(has_words(w) || !q->vocabulary || !s->n, ERR_INPUT,
        "'--vocabulary' names tokens, and the run's own rows have no tokens: name an HDF5 file "
        "that has them, as /token, by '--rows', or a file of tokens by '--tokens'");
  if (has_words(w) && q->vocabulary) TRY(tokens_name(&w->tokens, q->vocabulary));
  return top_init(&w->top, &w->arena, 1, q->count);
}

static int summary_make(struct atom_summary *w, FILE *out, struct json *json)
{
  uint64_t hash = 0;
  TRY(inputs_open(w));
  TRY(dictionary_scan(w, &hash));
  TRY(identity_dictionary_check(w->supports.source.name, w->supports.inputs.dictionary,
                                w->dictionary.source.name, hash));
  TRY(supports_scan(w));
  if (w->n_codes) qsort(w->codes, (size_t)w->n_codes, sizeof *w->codes, code_order);
  return json ? entries_json(w, json) : contents_print(w, out);
}

int atom_inspect(const struct atom_request *request, FILE *out, struct json *json)
{
  struct atom_summary w = {.request = request};
  int status = summary_make(&w, out, json);
  sources_close(&w.sources);
  int closed = tokens_close(&w.tokens);
  supports_input_close(&w.supports);
  dictionary_input_close(&w.dictionary);
  free(w.codes);
  arena_free(&w.arena);
  return status ? status : closed;
}
