/* SPDX-License-Identifier: BSD-3-Clause
 * Blocks of the pool go into chunks of about a megabyte. */
#include "io/capture_output.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/capture.h"
#include "io/check.h"

enum { CHUNK_BYTES = 1 << 20, TOKEN_CHUNK = 4096, SLACK_BYTES = 4 << 20 };

static const struct object_row object_rows[] = {
    {"/q", TYPE_F32, "N H D", 1, "queries of all sequences"},
    {"/q_start", TYPE_I64, "S+1", 1, "where the queries of each sequence begin"},
    {"/token", TYPE_I32, "M", 0, "tokens of all positions, one sequence after another"},
    {"/kv/k", TYPE_F32, "blocks size G D", 1, "pool: keys"},
    {"/kv/v", TYPE_F32, "blocks size G Dv", 1, "pool: values"},
    {"/kv/table", TYPE_I32, "S width", 1, "pool: blocks of each sequence, -1 beyond its end"},
    {"/kv/length", TYPE_I64, "S", 1, "pool: positions of each sequence"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

static int attention_write(const struct h5_file *h5, const struct attention *a)
{
  TRY(h5_attribute_long(h5, "/", "causal", a->causal));
  TRY(h5_attribute_long(h5, "/", "window", a->window));
  TRY(h5_attribute_real(h5, "/", "scale", a->scale));
  return h5_attribute_real(h5, "/", "softcap", a->softcap);
}

/* Create /kv/k or /kv/v, which grows. */
static int pool_create(struct capture_output *f, const char *object, idx size, idx heads, idx d,
                       struct h5_array *a)
{
  const gidx shape[] = {H5_GROWS, size, heads, d};
  gidx chunk = CHUNK_BYTES / ((gidx)size * heads * d * (gidx)sizeof(float));
  return object_create(&f->result.h5, object, 4, shape, imax(chunk, 1), a);
}

int capture_output_create(struct capture_output *f, const char *path, const struct attention *a,
                          gidx n, idx size, gidx bytes)
{
  const gidx shape[] = {n, a->heads, a->d}, tokens[] = {H5_GROWS};
  *f = (struct capture_output){0};
  gidx own = n * a->heads * a->d * (gidx)sizeof(float);
  TRY(result_create(&f->result, path, &capture_kind, own + bytes + SLACK_BYTES));
  TRY(attention_write(&f->result.h5, a));
  TRY(object_create(&f->result.h5, "/q", 3, shape, 0, &f->q));
  TRY(object_create(&f->result.h5, "/token", 1, tokens, TOKEN_CHUNK, &f->token));
  TRY(pool_create(f, "/kv/k", size, a->kv_heads, a->d, &f->k));
  return pool_create(f, "/kv/v", size, a->kv_heads, a->dv, &f->v);
}

int capture_output_finish(struct capture_output *f, const struct capture_sequences *s,
                          const struct run_fact *facts, int n_facts)
{
  const struct h5_file *h5 = &f->result.h5;
  const gidx shape[] = {s->sequences, s->width};
  TRY(h5_array_close(&f->q));
  TRY(h5_array_close(&f->k));
  TRY(h5_array_close(&f->v));
  TRY(h5_array_close(&f->token));
  TRY(object_write_vector(h5, "/q_start", s->sequences + 1, s->start));
  TRY(object_write(h5, "/kv/table", 2, shape, s->table));
  TRY(object_write_vector(h5, "/kv/length", s->sequences, s->length));
  return result_publish(&f->result, facts, n_facts);
}

static int file_check(struct verify *v)
{
  if (!v->is_ours || strcmp(v->kind, capture_kind.name) != 0) return OK;
  TRY(capture_file_check(v->file));
  check_note(v, "capture   its sequences are in its pool");
  return OK;
}

const struct file_kind capture_kind = {"capture", {&objects}, file_check, NULL, NULL, NULL};
