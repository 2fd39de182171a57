/* SPDX-License-Identifier: BSD-3-Clause
 * The encoder describes the rows again, and entries are compared bit for bit. */
#include "cli/verify_supports.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/own_codes.h"
#include "io/supports_input.h"

enum { MOST_ROWS = 65536 };

/* What is compared. */
struct comparison {
  struct supports_input in;
  struct dictionary_input dictionary;
  struct supports given;
  struct own_codes own;
};

static int row_compare(const struct comparison *c, const struct verify_supports *v, idx row)
{
  const gidx *a = c->given.view.start + row, *b = c->own.start + row;
  size_t bytes = (size_t)(a[1] - a[0]) * sizeof(idx);
  int is_same = a[1] - a[0] == b[1] - b[0] &&
                !memcmp(c->given.view.atoms + a[0], c->own.found.atoms + b[0], bytes) &&
                !memcmp(c->given.score + a[0], c->own.found.score + b[0], bytes);
  CHECK(is_same, ERR_INPUT,
        "row %d of '%s' has other atoms or scores than the encoder of '%s' gives it: are '%s' its "
        "rows?",
        row, c->in.source.name, c->dictionary.file, v->rows);
  return OK;
}

static int compare(struct comparison *c, const struct verify_supports *v)
{
  const struct support_source *s = &c->in.source;
  TRY(supports_input_open(&c->in, v->folder));
  CHECK(c->in.encoder, ERR_USAGE,
        "'--rows' goes with '--dense', or with supports of an encoder, and those of '%s' are none",
        s->name);
  TRY(dictionary_input_open(&c->dictionary, v->folder));
  TRY(own_codes_find(&c->own, &c->dictionary, v->rows, MOST_ROWS, &v->device));
  CHECK(c->own.input.source.n == s->n && c->own.k == s->k, ERR_INPUT,
        "'%s' has supports of %lld rows over %d atoms, '%s' has %lld rows and the encoder %d atoms",
        s->name, (long long)s->n, s->k, v->rows, (long long)c->own.input.source.n, c->own.k);
  TRY(supports_load(&c->given, s, 0, c->own.n, 1));
  for (idx i = 0; i < c->own.n; i++) TRY(row_compare(c, v, i));
  if (v->out)
    text_print(v->out, "encoder   %d of %lld rows: atoms and scores are those that it gives\n",
               c->own.n, (long long)s->n);
  return OK;
}

int verify_supports(const struct verify_supports *v)
{
  struct comparison *c;
  TRY(struct_alloc(&c, sizeof *c));
  int status = compare(c, v);
  supports_free(&c->given);
  own_codes_free(&c->own);
  dictionary_input_close(&c->dictionary);
  supports_input_close(&c->in);
  free(c);
  return status;
}
