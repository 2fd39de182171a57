/* SPDX-License-Identifier: BSD-3-Clause
 * supports.h5: blocks of rows of any size come in and are cut at chunks of whole rows, so that the
 * arrays' chunks alternate in the file the same way whatever the blocks were. */
#include "io/outputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/schema.h"
#include "model/codes.h"

enum { CHUNK_VALUES = 1 << 18, SLACK_BYTES = 1 << 20 };

/* One array in chunks, with checksums, index and what the last chunk wastes. */
static gidx array_bytes(double values, int width)
{
  return (gidx)(values * width * (1 + 0x1p-10)) + 2 * SLACK_BYTES;
}

static int stores_codes(const struct supports_shape *shape)
{
  return shape->has_codes && shape->d > 1;
}

gidx supports_bytes(const struct supports_shape *shape)
{
  double nnz = (double)shape->n * shape->s;
  gidx bytes = SLACK_BYTES + array_bytes((double)shape->n + 1, 8) + array_bytes(shape->k, 8) +
               array_bytes(shape->p, 8) + 3 * array_bytes(nnz, 4);
  return bytes + (stores_codes(shape) ? array_bytes(nnz * shape->d, 4) : 0);
}

static gidx chunk_rows(const struct supports_shape *shape)
{
  gidx width = (gidx)shape->s * (stores_codes(shape) ? shape->d : 1);
  return width < CHUNK_VALUES ? CHUNK_VALUES / width : 1;
}

static int rows_write(struct supports_file *f, const struct support_block *block)
{
  idx d = f->shape.d;
  gidx first = block->first * block->s, count = (gidx)block->n * block->s;
  const float *data = block->codes ? block->codes : block->score;
  if (stores_codes(&f->shape)) {
    float *summary = f->work;
    for (gidx i = 0; i < count; i++) summary[i] = code_summary(block->codes + i * d, d);
    data = summary;
  }
  TRY(h5_array_write(&f->indices, first, count, block->atoms));
  TRY(h5_array_write(&f->score, first, count, block->score));
  TRY(h5_array_write(&f->data, first, count, data));
  if (stores_codes(&f->shape)) TRY(h5_array_write(&f->codes, first, count, block->codes));
  return OK;
}

static int sink_write(void *self, const struct support_block *block)
{
  struct supports_file *f = self;
  const struct supports_shape *shape = &f->shape;
  CHECK(block->s == shape->s && block->d == shape->d && !block->codes == !shape->has_codes,
        ERR_INTERNAL, "a block of supports has another shape than its file");
  CHECK(block->n >= 0 && block->n <= shape->n - block->first, ERR_INTERNAL,
        "rows %lld + %d of %lld are written", (long long)block->first, block->n,
        (long long)shape->n);
  gidx chunk = chunk_rows(shape);
  for (gidx row = block->first, end = row + block->n; row < end;) {
    gidx next = (row / chunk + 1) * chunk, skip = (row - block->first) * shape->s;
    struct support_block part = *block;
    if (next > end) next = end;
    part.first = row;
    part.n = (idx)(next - row);
    part.atoms += skip;
    part.score += skip;
    if (part.codes) part.codes += skip * shape->d;
    TRY(rows_write(f, &part));
    row = next;
  }
  return OK;
}

static int attributes_write(const struct h5_file *h5, const struct supports_shape *shape)
{
  gidx size[2] = {shape->n, shape->k};
  TRY(h5_attribute_text(h5, "/", "kind", "supports"));
  TRY(h5_attribute_long(h5, "/", "top_s", shape->s));
  TRY(h5_attribute_long(h5, "/", "frame", shape->d));
  TRY(h5_attribute_long(h5, "/", "codes", shape->has_codes != 0));
  TRY(h5_attribute_text(h5, "/supports", "encoding-type", "csr_matrix"));
  TRY(h5_attribute_text(h5, "/supports", "encoding-version", "0.1.0"));
  TRY(h5_attribute_longs(h5, "/supports", "shape", 2, size));
  return OK;
}

int supports_create(struct supports_file *f, const char *path, const struct supports_shape *shape)
{
  memset(f, 0, sizeof *f);
  f->shape = *shape;
  f->sink = (struct support_sink){f, sink_write};
  CHECK(shape->n >= 0 && shape->k >= 1 && shape->s >= 1 && shape->d >= 1, ERR_INTERNAL,
        "supports of %lld rows, %d of %d atoms, frames of %d", (long long)shape->n, shape->s,
        shape->k, shape->d);
  const struct h5_file *h5 = &f->result.h5;
  gidx nnz = shape->n * shape->s, chunk = chunk_rows(shape) * shape->s, codes[2] = {nnz, shape->d};
  if (stores_codes(shape)) {
    f->work = malloc((size_t)chunk * sizeof(float));
    CHECK(f->work, ERR_MEMORY, "cannot allocate %lld bytes", (long long)chunk * 4);
  }
  TRY(result_create(&f->result, path, supports_bytes(shape)));
  TRY(attributes_write(h5, shape));
  TRY(object_create(h5, "/supports/indices", 1, &nnz, chunk, &f->indices));
  TRY(object_create(h5, "/supports/score", 1, &nnz, chunk, &f->score));
  TRY(object_create(h5, "/supports/data", 1, &nnz, chunk, &f->data));
  if (stores_codes(shape)) TRY(object_create(h5, "/supports/codes", 2, codes, chunk, &f->codes));
  return OK;
}

/* Every row has s entries. */
static int indptr_write(const struct h5_file *h5, const struct supports_shape *shape)
{
  enum { PIECE = 4096 };
  gidx offsets[PIECE], count = shape->n + 1;
  struct h5_array a;
  int status = object_create(h5, "/supports/indptr", 1, &count, 0, &a);
  for (gidx row = 0; row < count && status == OK; row += PIECE) {
    gidx n = count - row < PIECE ? count - row : PIECE;
    for (gidx i = 0; i < n; i++) offsets[i] = (row + i) * shape->s;
    status = h5_array_write(&a, row, n, offsets);
  }
  int closed = h5_array_close(&a);
  return status ? status : closed;
}

static int metrics_write(const struct h5_file *h5, const struct metrics *m, int has_codes)
{
  char formula[128];
  for (int i = 0; i < metric_count; i++) {
    const struct metric_row *row = &metric_rows[i];
    if (row->needs_codes && !has_codes) continue;
    const char *value = (const char *)m + row->offset;
    if (row->is_integer)
      TRY(h5_attribute_long(h5, "/metrics", row->name, *(const gidx *)(const void *)value));
    else
      TRY(h5_attribute_real(h5, "/metrics", row->name, *(const real *)(const void *)value));
    metric_formula_name(row->name, formula, sizeof formula);
    TRY(h5_attribute_text(h5, "/metrics", formula, row->formula));
  }
  TRY(object_write_vector(h5, "/metrics/density", m->k, m->density));
  TRY(object_write_vector(h5, "/metrics/density_histogram", DENSITY_BINS, m->density_histogram));
  TRY(h5_attribute_text(h5, "/metrics/density", "formula", density_formula));
  TRY(h5_attribute_text(h5, "/metrics/density_histogram", "formula", density_histogram_formula));
  return OK;
}

static int arrays_close(struct supports_file *f)
{
  int status = OK;
  struct h5_array *arrays[] = {&f->indices, &f->score, &f->data, &f->codes};
  for (int i = 0; i < LENGTH(arrays); i++) {
    int closed = h5_array_close(arrays[i]);
    if (status == OK) status = closed;
  }
  return status;
}

int supports_finish(struct supports_file *f, const struct supports_ending *ending,
                    const struct run_fact *facts, int n_facts)
{
  const struct h5_file *h5 = &f->result.h5;
  const struct supports_shape *shape = &f->shape;
  CHECK(ending->metrics && ending->metrics->density && ending->metrics->k == shape->k, ERR_INTERNAL,
        "the metrics are those of %d atoms", ending->metrics ? ending->metrics->k : 0);
  TRY(arrays_close(f));
  TRY(h5_attribute_real(h5, "/", "rho", ending->rho));
  TRY(h5_attribute_long(h5, "/", "rounds", ending->rounds));
  if (ending->sweeps) TRY(h5_attribute_long(h5, "/", "sweeps", ending->sweeps));
  TRY(indptr_write(h5, shape));
  TRY(metrics_write(h5, ending->metrics, shape->has_codes));
  if (ending->mean) TRY(object_write_vector(h5, "/mean", shape->p, ending->mean));
  TRY(result_publish(&f->result, facts, n_facts));
  supports_close(f);
  return OK;
}

void supports_close(struct supports_file *f)
{
  arrays_close(f);
  h5_close(&f->result.h5);
  free(f->work);
  f->work = NULL;
}
