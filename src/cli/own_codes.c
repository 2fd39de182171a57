/* SPDX-License-Identifier: BSD-3-Clause
 * As `encode --encoder` finds them, on one device and all at once. */
#include "cli/own_codes.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/encoder.h"
#include "device/route.h"

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
