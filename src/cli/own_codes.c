/* SPDX-License-Identifier: BSD-3-Clause
 * As `encode --encoder` finds them, on one device and all at once; entries are compared bit for
 * bit. */
#include "cli/own_codes.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/text.h"
#include "device/encoder.h"
#include "device/route.h"
#include "io/supports_input.h"

static int arrays_alloc(struct own_codes *o)
{
  struct arena *a = &o->arena;
  TRY(arena_alloc(a, &o->rows, (gidx)o->n * o->p, sizeof *o->rows));
  TRY(arena_alloc(a, &o->start, (gidx)o->n + 1, sizeof *o->start));
  TRY(arena_alloc(a, &o->lengths, o->n, sizeof *o->lengths));
  return arena_alloc(a, &o->weights, (gidx)o->k * o->p, sizeof *o->weights);
}

/* Rows as the encoder takes them to the device, and less the mean. */
static int rows_take(struct own_codes *o, const real *mean)
{
  const struct row_source *s = &o->input.source;
  gidx numbers = (gidx)o->n * o->p, bytes = numbers * (gidx)sizeof *o->rows;
  int centered = o->encoder.stored.encoder.centered;
  TRY(s->read(s->self, 0, o->n, o->rows));
  TRY(rows_source_check(s, o->rows, 0, o->n));
  TRY(buffer_alloc(&o->device, &o->all, bytes));
  memcpy(o->all.host, o->rows, (size_t)bytes);
  rows_center(o->rows, o->n, o->p, mean);
  if (centered) memcpy(o->all.host, o->rows, (size_t)bytes);
  return device_put(&o->device, &o->all, 0, bytes);
}

static int device_begin(struct own_codes *o, const struct device_options *given)
{
  struct device_options options = *given;
  const struct atom_source *w = &o->encoder.weights;
  options.p = o->p;
  options.d = 1;
  options.max_atoms = o->k;
  options.top_k = 1;
  options.route_rows = o->n;
  options.encoder = 1;
  TRY(device_open(&o->device, &options));
  TRY(w->read(w->self, 0, o->k, o->weights));
  TRY(rows_check(o->weights, o->k, o->p, 0, w->name));
  return device_put_tile(&o->device, o->weights, o->k, 0);
}

int own_codes_find(struct own_codes *o, const struct dictionary_input *dictionary, const char *rows,
                   idx most, const struct device_options *options)
{
  const struct atom_source *atoms = &dictionary->source;
  *o = (struct own_codes){.k = atoms->k, .p = atoms->p};
  TRY(encoder_input_open(&o->encoder, dictionary));
  TRY(rows_input_open(&o->input, rows));
  TRY(columns_check(&o->input.source, atoms));
  CHECK(o->input.source.n > 0, ERR_INPUT, "'%s' has no rows", o->input.source.name);
  o->n = (idx)imin(o->input.source.n, most);
  TRY(arrays_alloc(o));
  TRY(device_begin(o, options));
  TRY(rows_take(o, dictionary->mean));
  struct encoder_job job = {.encoder = &o->encoder.stored.encoder,
                            .rows = &o->all,
                            .n = o->n,
                            .lengths = o->lengths,
                            .found = &o->found};
  TRY(device_encoder(&o->device, &job));
  CHECK(job.bad.row < 0, ERR_INPUT,
        "the score of row %d and atom %d is not a finite float32 number", job.bad.row,
        job.bad.atom);
  for (idx i = 0; i < o->n; i++) o->start[i + 1] = o->start[i] + o->lengths[i];
  return OK;
}

void own_codes_free(struct own_codes *o)
{
  entries_free(&o->found);
  buffer_free(&o->device, &o->all);
  device_close(&o->device);
  rows_input_close(&o->input);
  encoder_input_close(&o->encoder);
  arena_free(&o->arena);
  *o = (struct own_codes){0};
}

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
