/* SPDX-License-Identifier: BSD-3-Clause
 * A chunk has as many blocks of the pool as fit into a megabyte, but at least one, and no more than
 * the pool can have. */
#include "io/capture_output.h"

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "io/capture.h"
#include "io/check.h"

enum { CHUNK_BYTES = 1 << 20, TOKEN_CHUNK = 4096, SLACK_BYTES = 4 << 20 };

static const struct object_row object_rows[] = {
    {"/q", TYPE_OTHER, "N H D", 1, "queries of all sequences"},
    {"/q_start", TYPE_I64, "S+1", 1, "where the queries of each sequence begin"},
    {"/token", TYPE_I32, "M", 0, "tokens of all positions, one sequence after another"},
    {"/kv/k", TYPE_OTHER, "blocks size G D", 1, "pool: keys"},
    {"/kv/v", TYPE_OTHER, "blocks size G Dv", 1, "pool: values"},
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

static gidx type_bytes(enum h5_type type)
{
  return type == TYPE_F32 ? 4 : 2;
}

/* Create /kv/k or /kv/v, which grows by blocks of `bytes` bytes each. */
static int pool_create(struct capture_output *f, const struct capture_shape *s, const char *object,
                       enum h5_type type, idx d, gidx bytes, struct h5_array *a)
{
  const gidx shape[] = {H5_GROWS, s->size, s->attention.kv_heads, d};
  gidx chunk = imax(imin(CHUNK_BYTES / bytes, s->most), 1);
  CHECK(bytes < UINT32_MAX, ERR_USAGE,
        "a block of %d positions takes %.1f GB, and HDF5 stores at most 4.2 together: lower "
        "'--size'",
        s->size, 1e-9 * (double)bytes);
  return h5_array_create_chunked(&f->result.h5, object, type, 4, shape, chunk, a);
}

int capture_output_create(struct capture_output *f, const char *path, const struct capture_shape *s)
{
  const struct attention *a = &s->attention;
  const gidx q[] = {s->n, a->heads, a->d};
  gidx cells = (gidx)s->size * a->kv_heads, k = cells * a->d * type_bytes(s->k),
       v = cells * a->dv * type_bytes(s->v);
  gidx bytes = s->n * a->heads * a->d * type_bytes(s->q) + s->positions * (gidx)sizeof(idx) +
               s->least * (k + v);
  *f = (struct capture_output){0};
  TRY(result_create(&f->result, path, &capture_kind, bytes + SLACK_BYTES));
  TRY(attention_write(&f->result.h5, a));
  TRY(h5_array_create(&f->result.h5, "/q", s->q, 3, q, &f->q));
  TRY(object_create(&f->result.h5, "/token", 1, &s->positions, TOKEN_CHUNK, &f->token));
  TRY(pool_create(f, s, "/kv/k", s->k, a->d, k, &f->k));
  return pool_create(f, s, "/kv/v", s->v, a->dv, v, &f->v);
}

/* Write the next entries of an array. */
static int floats_write(struct capture_output *f, struct h5_array *a, gidx first, gidx count,
                        const float *in)
{
  gidx values = count;
  for (int i = 1; i < a->rank; i++) values *= a->shape[i];
  if (a->type == TYPE_F32) return h5_array_write(a, first, count, in);
  TRY(array_reserve(&f->half, &f->room, values, sizeof *f->half));
  for (gidx i = 0; i < values; i++)
    f->half[i] = a->type == TYPE_F16 ? f16_bits(in[i]) : bf16_bits(in[i]);
  return h5_array_write(a, first, count, f->half);
}

int capture_output_queries(struct capture_output *f, gidx first, idx count, const float *q)
{
  return floats_write(f, &f->q, first, count, q);
}

int capture_output_block(struct capture_output *f, idx block, const float *k, const float *v)
{
  TRY(floats_write(f, &f->k, block, 1, k));
  return floats_write(f, &f->v, block, 1, v);
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
  free(f->half);
  f->half = NULL;
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
