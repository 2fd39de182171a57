/* SPDX-License-Identifier: BSD-3-Clause
 * A source of a pair is a position and a head that contribute to its score.  Only the lists and
 * tokens that are shown are read. */
#include "io/sources.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/text.h"
#include "io/inputs.h"
#include "io/run_option.h"

enum { MAX_AROUND = 32 };

/* Open the capture of an open attribution.  It must have as many queries and heads as the
 * attribution. */
static int capture_open(struct sources *s, const char *name)
{
  const struct capture_source *c = &s->capture.source;
  s->has_capture = 1;
  TRY(capture_input_open(&s->capture, name));
  CHECK(c->n == s->file.n && c->attention.heads == s->file.heads, ERR_INPUT,
        "'%s' has %lld queries of %d heads, '%s' is of %lld rows of %d heads: give the capture "
        "that was explained",
        s->capture.path, (long long)c->n, c->attention.heads, s->file.name, (long long)s->file.n,
        s->file.heads);
  s->has_tokens = c->tokens != NULL;
  return OK;
}

static int capture_find(struct sources *s)
{
  const char *name;
  TRY(run_option_find(&s->file.h5, "capture", &name));
  if (!name) return OK;
  int status = capture_open(s, name);
  if (!status || status == ERR_MEMORY) return status;
  log_warn("no tokens of sources are shown: %s; name the capture by --capture", status_message());
  status_clear();
  capture_input_close(&s->capture);
  s->has_capture = s->has_tokens = 0;
  return OK;
}

static int list_open(struct sources *s, const char *name, const struct support_source *of)
{
  TRY(attribution_input_open(&s->file, name));
  CHECK(s->file.pairs == of->entries && s->file.n == of->n && s->file.k == of->k, ERR_INPUT,
        "'%s' has %lld rows, %lld pairs and %d atoms, '%s' has %lld rows, %lld pairs and %d "
        "atoms: give what `sagitta attribute` made of these supports",
        s->file.name, (long long)s->file.n, (long long)s->file.pairs, s->file.k, of->name,
        (long long)of->n, (long long)of->entries, of->k);
  return OK;
}

/* Close a file that does not belong to the supports, with a warning.  If the user named it, this is
 * an error. */
static int pass_over(struct sources *s, const struct sources_names *names, int status)
{
  if (!status || status == ERR_MEMORY || names->attribution) return status;
  log_warn("no sources are shown: %s", status_message());
  status_clear();
  sources_close(s);
  return OK;
}

int sources_open(struct sources *s, const struct sources_names *names,
                 const struct support_source *of)
{
  char path[MAX_NAME];
  const char *name = names->attribution;
  if (!name) {
    TRY(input_in_folder(names->folder, "attribution.h5", path));
    name = input_is_there(path) ? path : NULL;
  }
  CHECK(name || !names->capture, ERR_INPUT,
        "'--capture' names the tokens of sources, and there is no attribution.h5 in '%s': make it "
        "with `sagitta attribute`, or name it by '--attribution'",
        names->folder);
  if (!name) return OK;
  TRY(pass_over(s, names, list_open(s, name, of)));
  if (!sources_there(s)) return OK;
  return names->capture ? capture_open(s, names->capture) : capture_find(s);
}

int sources_check(struct sources *s, const struct sources_names *names, uint64_t supports)
{
  uint64_t named = s->file.inputs.supports;
  if (!sources_there(s) || !named || named == supports) return OK;
  return pass_over(s, names,
                   status_fail(ERR_INPUT, __FILE__, __LINE__,
                               "'%s' is of other supports: supports_hash %016llx, not %016llx; "
                               "give what `sagitta attribute` made of these",
                               s->file.name, (unsigned long long)named,
                               (unsigned long long)supports));
}

int sources_there(const struct sources *s)
{
  return s->file.is_open;
}

void sources_close(struct sources *s)
{
  attribution_input_close(&s->file);
  if (s->has_capture) capture_input_close(&s->capture);
  s->has_capture = s->has_tokens = 0;
}

int sources_context(struct sources *s, const struct tokens *words, gidx row, int around, FILE *out)
{
  const struct capture_source *c = &s->capture.source;
  idx token[2 * MAX_AROUND + 1];
  gidx sequence;
  TRY(attribution_input_sequence(&s->file, row, &sequence));
  gidx queries = c->start[sequence + 1] - c->start[sequence];
  gidx at = row - c->start[sequence] + c->length[sequence] - queries;
  if (at < 0) return OK; /* the row is before the first position */
  gidx most = imin(around, MAX_AROUND), first = imax(at - most, 0);
  gidx count = imin(at + most + 1, c->length[sequence]) - first;
  TRY(c->tokens(c->self, sequence, first, (idx)count, token));
  fputc(' ', out);
  for (gidx i = 0; i < count; i++) tokens_word(words, token[i], first + i == at, out);
  return OK;
}

/* The list of sources of a pair. */
struct listed {
  gidx sequence, *source;
  float *value;
  idx n;
  real sum;
};

static int list_read(struct sources *s, const struct source_list *l, struct listed *out)
{
  TRY(attribution_input_sequence(&s->file, l->row, &out->sequence));
  return attribution_input_list(&s->file, l->pair, l->count, &out->source, &out->value, &out->n,
                                &out->sum);
}

/* *text <- the word at a position; NULL: there are no tokens.  The caller frees it. */
static int word_make(struct sources *s, const struct source_list *l, gidx sequence, gidx position,
                     char **text)
{
  const struct capture_source *c = &s->capture.source;
  FILE *memory;
  size_t bytes;
  idx token;
  *text = NULL;
  if (!s->has_tokens) return OK;
  CHECK(sequence < c->sequences && position < c->length[sequence], ERR_INPUT,
        "'%s' names position %lld of sequence %lld, which '%s' does not have", s->file.name,
        (long long)position, (long long)sequence, s->capture.path);
  TRY(c->tokens(c->self, sequence, position, 1, &token));
  TRY(text_open(&memory, text, &bytes, "a word"));
  tokens_word(l->words, token, 0, memory);
  return text_close(memory, "a word");
}

int sources_print(struct sources *s, const struct source_list *l, FILE *out)
{
  struct listed list;
  char *word;
  TRY(list_read(s, l, &list));
  fprintf(out, "%12s %12.6g  all contributions; sequence %lld\n", "", list.sum,
          (long long)list.sequence);
  for (idx i = 0; i < list.n; i++) {
    gidx position = list.source[i] / s->file.heads;
    TRY(word_make(s, l, list.sequence, position, &word));
    fprintf(out, "%12s %12.6g  position %lld, head %lld%s%s\n", "", (double)list.value[i],
            (long long)position, (long long)(list.source[i] % s->file.heads), word ? ": " : "",
            word ? word + strspn(word, " ") : "");
    free(word);
  }
  return OK;
}

int sources_json(struct sources *s, const struct source_list *l, struct json *j)
{
  struct listed list;
  char *word;
  TRY(list_read(s, l, &list));
  json_long(j, "sequence", list.sequence);
  json_real(j, "sum", list.sum);
  json_array(j, "sources");
  for (idx i = 0; i < list.n; i++) {
    gidx position = list.source[i] / s->file.heads;
    TRY(word_make(s, l, list.sequence, position, &word));
    json_object(j, NULL);
    json_long(j, "position", position);
    json_long(j, "head", list.source[i] % s->file.heads);
    json_real(j, "contribution", list.value[i]);
    if (word) json_text(j, "token", word + strspn(word, " "));
    json_end(j);
    free(word);
  }
  json_end(j);
  return OK;
}
