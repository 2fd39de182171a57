/* SPDX-License-Identifier: BSD-3-Clause
 * Finds codes like `encode --encoder`, on one device: active atoms piece by piece, other codes for
 * all rows at once.  Entries are compared bit for bit. */
#include "encoding/own_codes.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/text.h"
#include "device/encoder.h"
#include "device/route.h"
#include "io/supports_input.h"

enum { SCORES = 1 << 22 }; /* scores computed at a time for an active encoder */

static int is_active(const struct own_codes *o)
{
  return o->encoder.stored.encoder.kind == ENCODER_ACTIVE;
}

/* How often the encoder chooses the atoms of a row. */
static int choices_of(const struct encoder *e)
{
  return e->kind == ENCODER_ACTIVE ? e->active.looks + 1 : 1;
}

static int arrays_alloc(struct own_codes *o)
{
  struct arena *a = &o->arena;
  TRY(arena_alloc(a, &o->rows, (gidx)o->n * o->p, sizeof *o->rows));
  TRY(arena_alloc(a, &o->start, (gidx)o->n + 1, sizeof *o->start));
  TRY(arena_alloc(a, &o->lengths, o->n, sizeof *o->lengths));
  TRY(arena_alloc(a, &o->threshold, o->k, sizeof *o->threshold));
  return arena_alloc(a, &o->weights, (gidx)o->k * o->p, sizeof *o->weights);
}

/* Read the rows for the encoder, and a copy less the mean. */
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
  options.nonnegative = is_active(o);
  TRY(device_open(&o->device, &options));
  TRY(w->read(w->self, 0, o->k, o->weights));
  TRY(rows_check(o->weights, o->k, o->p, 0, w->name));
  return is_active(o) ? OK : device_put_tile(&o->device, o->weights, o->k, 0);
}

/* Find the active atoms of the rows, piece by piece. */
static int active_find(struct own_codes *o, const struct own_codes_task *t)
{
  const struct found_encoder *by = &o->encoder.stored.encoder.active;
  struct active *a = &o->active;
  idx rows = (idx)imin(o->n, imax(SCORES / o->k, 1));
  *a = (struct active){.device = &o->device,
                       .most_k = o->k,
                       .p = o->p,
                       .most_n = rows,
                       .entries = (gidx)rows * o->k,
                       .threads = t->options->threads,
                       .relative = by->relative,
                       .floor = by->floor,
                       .cuts = t->cuts};
  TRY(active_open(a));
  TRY(active_atoms(a, o->weights, o->k, NULL));
  for (idx first = 0, n; first < o->n; first += n) {
    n = (idx)imin(rows, o->n - first);
    a->row = first;
    TRY(active_encode(a, &o->all, first, n, by));
    const struct entry_list piece = {a->index, a->score, a->code, a->start[n], 0};
    CHECK(entries_append(&o->found, &piece), ERR_MEMORY, "cannot allocate the codes of %d rows",
          o->n);
    for (idx i = 0; i < n; i++) o->lengths[first + i] = (idx)(a->start[i + 1] - a->start[i]);
  }
  return OK;
}

static int entries_find(struct own_codes *o, const struct score_cuts *cuts)
{
  const struct encoder *of = &o->encoder.stored.encoder;
  struct encoder by = cuts ? cuts_encoder(of, cuts->at[0].least, o->threshold) : *of;
  struct encoder_job job = {
      .encoder = &by, .rows = &o->all, .n = o->n, .lengths = o->lengths, .found = &o->found};
  TRY(device_encoder(&o->device, &job));
  CHECK(job.bad.row < 0, ERR_INPUT,
        "the score of row %d and atom %d is not a finite float32 number", job.bad.row,
        job.bad.atom);
  if (cuts) cuts_entries(&cuts->at[0], 0, o->n, o->lengths, &o->found);
  return OK;
}

/* The atoms have no encoder, and `encode --l0` chose their codes: make the same encoder of the
 * atoms. */
static int encoder_make(struct own_codes *o, const struct own_codes_task *t)
{
  const struct atom_source *atoms = &t->dictionary->source;
  struct found_encoder active = find_standard(0);
  CHECK(atoms->d == 1, ERR_INPUT,
        "'%s' has frames of %d vectors, but the codes are of single atoms: give the dictionary of "
        "these codes",
        atoms->name, atoms->d);
  active.floor = t->cuts->floor;
  active.rho = t->rho;
  o->encoder.stored.encoder = (struct encoder){
      .kind = ENCODER_ACTIVE, .k = atoms->k, .p = atoms->p, .centered = 1, .active = active};
  o->encoder.weights = *atoms;
  return OK;
}

static int encoder_take(struct own_codes *o, const struct own_codes_task *t)
{
  /* Cuts have a floor only if the encoder has none of its own, as with atoms of `encode --l0`. */
  if (t->cuts && t->cuts->floor > 0) return encoder_make(o, t);
  return encoder_input_open(&o->encoder, t->dictionary);
}

int own_codes_find(struct own_codes *o, const struct own_codes_task *t)
{
  const struct dictionary_input *dictionary = t->dictionary;
  const struct atom_source *atoms = &dictionary->source;
  *o = (struct own_codes){.k = atoms->k, .p = atoms->p};
  TRY(encoder_take(o, t));
  int choices = choices_of(&o->encoder.stored.encoder);
  CHECK(!t->cuts || t->cuts->n == choices, ERR_INPUT,
        "the codes were chosen by %d cuts, but the encoder of '%s' chooses %d times: the codes are "
        "of another dictionary",
        t->cuts->n, dictionary->file, choices);
  TRY(rows_input_open(&o->input, NULL, t->rows));
  TRY(columns_check(&o->input.source, atoms));
  CHECK(o->input.source.n > 0, ERR_INPUT, "'%s' has no rows", o->input.source.name);
  o->n = (idx)imin(o->input.source.n, t->most);
  TRY(arrays_alloc(o));
  TRY(device_begin(o, t->options));
  TRY(rows_take(o, t->mean));
  TRY(is_active(o) ? active_find(o, t) : entries_find(o, t->cuts));
  for (idx i = 0; i < o->n; i++) o->start[i + 1] = o->start[i] + o->lengths[i];
  return OK;
}

void own_codes_free(struct own_codes *o)
{
  entries_free(&o->found);
  active_close(&o->active);
  buffer_free(&o->device, &o->all);
  device_close(&o->device);
  rows_input_close(&o->input);
  encoder_input_close(&o->encoder);
  arena_free(&o->arena);
  *o = (struct own_codes){0};
}

enum { MOST_ROWS = 65536 };

/* The two sides of a comparison. */
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
  if (is_same && !c->in.solved)
    is_same = !memcmp(c->given.codes + a[0], c->own.found.codes + b[0], bytes);
  CHECK(is_same, ERR_INPUT,
        "row %d of '%s' has other atoms, scores or codes than the encoder of '%s' gives it: were "
        "the codes made from '%s'?",
        row, c->in.source.name, c->dictionary.file, v->rows);
  return OK;
}

static int compare(struct comparison *c, const struct verify_supports *v)
{
  const struct support_source *s = &c->in.source;
  TRY(supports_input_open(&c->in, v->folder));
  CHECK(c->in.encoder, ERR_USAGE,
        "'--rows' goes with supports of an encoder, but no encoder made those of '%s': leave "
        "'--rows' out",
        s->name);
  TRY(dictionary_input_open(&c->dictionary, v->folder));
  const char *atoms = c->dictionary.source.name;
  struct own_codes_task task = {.dictionary = &c->dictionary,
                                .rows = v->rows,
                                .most = MOST_ROWS,
                                .options = &v->device,
                                .cuts = c->in.cuts.n ? &c->in.cuts : NULL,
                                .rho = c->in.rho};
  CHECK(!c->in.normalized, ERR_USAGE,
        "the codes of '%s' are of scaled atoms (--normalize), which '--rows' does not compute: "
        "leave '--rows' out",
        s->name);
  TRY(supports_mean_find(&c->in, atoms, c->dictionary.mean, c->dictionary.source.p, &task.mean));
  TRY(own_codes_find(&c->own, &task));
  CHECK(c->own.input.source.n == s->n && c->own.k == s->k, ERR_INPUT,
        "'%s' has supports of %lld rows over %d atoms, '%s' has %lld rows and the encoder has %d "
        "atoms",
        s->name, (long long)s->n, s->k, v->rows, (long long)c->own.input.source.n, c->own.k);
  TRY(supports_load(&c->given, s, 0, c->own.n, 1));
  for (idx i = 0; i < c->own.n; i++) TRY(row_compare(c, v, i));
  if (v->out)
    text_print(v->out, "encoder   %d of %lld rows: atoms%s are those that the encoder gives\n",
               c->own.n, (long long)s->n, c->in.solved ? " and scores" : ", scores and codes");
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
