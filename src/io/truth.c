/* SPDX-License-Identifier: BSD-3-Clause
 * Entries are written in the order in which they are generated.  The check tests offsets, features
 * and magnitudes. */
#include "io/truth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/check.h"
#include "io/identity.h"
#include "model/rows.h"

enum { CHUNK_VALUES = 1 << 18, SLACK_BYTES = 8 << 20, LIKELY_ENTRIES = 64, PIECE = 1 << 16 };

static const struct object_row object_rows[] = {
    {TRUTH_GROUP "/indptr", TYPE_I64, "N+1", 1, "where each row's features begin"},
    {TRUTH_GROUP "/indices", TYPE_I32, "nnz", 1, "features that fire, ascending"},
    {TRUTH_GROUP "/data", TYPE_F32, "nnz", 1, "magnitudes of these features"},
    {TRUTH_FEATURES, TYPE_F32, "F P", 1, "unit vectors of the features"},
    {TRUTH_GROUP "/probability", TYPE_F64, "F", 1, "probability that each feature fires"},
    {TRUTH_GROUP "/parent", TYPE_I32, "F", 1, "feature without which it does not fire; -1: none"},
    {TRUTH_GROUP "/bias", TYPE_F64, "P", 1, "what every row has beside its features"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

static int sink_write(void *self, const struct support_block *b)
{
  struct truth_output *t = self;
  gidx count = b->start[b->n], begin = t->indices.next;
  TRY(h5_array_write(&t->indices, begin, count, b->atoms));
  TRY(h5_array_write(&t->data, begin, count, b->codes));
  for (idx i = 0; i < b->n; i++) {
    gidx end = begin + b->start[i + 1];
    TRY(h5_array_write(&t->indptr, b->first + i + 1, 1, &end));
  }
  return OK;
}

static int parents_write(const struct h5_file *h5, const struct world *w)
{
  idx *parent = malloc((size_t)w->f * sizeof *parent);
  CHECK(parent, ERR_MEMORY, "cannot allocate %lld bytes", (long long)w->f * 4);
  for (idx i = 0; i < w->f; i++) parent[i] = world_parent(w, i);
  int status = object_write_vector(h5, TRUTH_GROUP "/parent", w->f, parent);
  free(parent);
  return status;
}

int truth_output_create(struct truth_output *t, const char *path, const struct world *w, gidx n,
                        const float *vectors)
{
  const gidx grows = H5_GROWS, zero = 0, starts = n + 1;
  const gidx shape[] = {n, w->f}, features[] = {w->f, w->p};
  *t = (struct truth_output){.sink = {t, sink_write}};
  gidx bytes = 8 * (n * LIKELY_ENTRIES + n) + 4 * features[0] * features[1] + SLACK_BYTES;
  TRY(result_create(&t->result, path, &truth_kind, bytes));
  const struct h5_file *h5 = &t->result.h5;
  TRY(h5_attribute_text(h5, TRUTH_GROUP, "encoding-type", "csr_matrix"));
  TRY(h5_attribute_text(h5, TRUTH_GROUP, "encoding-version", "0.1.0"));
  TRY(h5_attribute_longs(h5, TRUTH_GROUP, "shape", 2, shape));
  TRY(object_write(h5, TRUTH_FEATURES, 2, features, vectors));
  TRY(object_write_vector(h5, TRUTH_GROUP "/probability", w->f, w->probability));
  TRY(parents_write(h5, w));
  TRY(object_write_vector(h5, TRUTH_GROUP "/bias", w->p, w->bias));
  TRY(object_create(h5, TRUTH_GROUP "/indptr", 1, &starts, 0, &t->indptr));
  TRY(object_create(h5, TRUTH_GROUP "/indices", 1, &grows, CHUNK_VALUES, &t->indices));
  TRY(object_create(h5, TRUTH_GROUP "/data", 1, &grows, CHUNK_VALUES, &t->data));
  return h5_array_write(&t->indptr, 0, 1, &zero);
}

int truth_output_finish(struct truth_output *t, uint64_t rows_hash, const struct run_fact *facts,
                        int n_facts)
{
  const struct identity rows = {.rows = rows_hash};
  TRY(h5_array_close(&t->indptr));
  TRY(h5_array_close(&t->indices));
  TRY(h5_array_close(&t->data));
  TRY(identity_write(&t->result.h5, INPUTS_GROUP, &rows));
  return result_publish(&t->result, facts, n_facts);
}

/* The data of a check, which reads pieces. */
struct truth_pass {
  struct h5_array indptr, indices, data;
  gidx features; /* their number */
  gidx starts[PIECE + 1];
  idx atoms[PIECE];
  float codes[PIECE];
};

/* Check the entries begin .. end - 1 of one row. */
static int row_check(struct truth_pass *t, gidx row, gidx begin, gidx end)
{
  idx before = -1;
  CHECK(begin <= end && end <= t->indices.shape[0], ERR_INPUT,
        "row %lld: its features begin at %lld and end at %lld of %lld" ANEW, (long long)row,
        (long long)begin, (long long)end, (long long)t->indices.shape[0]);
  for (gidx first = begin; first < end; first += PIECE) {
    gidx count = imin(PIECE, end - first);
    TRY(h5_array_read(&t->indices, first, count, TYPE_I32, t->atoms));
    TRY(h5_array_read(&t->data, first, count, TYPE_F32, t->codes));
    for (gidx i = 0; i < count; before = t->atoms[i++])
      CHECK(t->atoms[i] > before && t->atoms[i] < t->features && isfinite(t->codes[i]) &&
                t->codes[i] > 0,
            ERR_INPUT, "row %lld: feature %d with magnitude %g comes after feature %d" ANEW,
            (long long)row, t->atoms[i], (double)t->codes[i], before);
  }
  return OK;
}

static int rows_pass(struct truth_pass *t, struct verify *v)
{
  gidx n = t->indptr.shape[0] - 1;
  t->features = dimension_value(&v->dims, "F");
  for (gidx first = 0; first < n; first += PIECE) {
    gidx count = imin(PIECE, n - first);
    TRY(h5_array_read(&t->indptr, first, count + 1, TYPE_I64, t->starts));
    CHECK(first || t->starts[0] == 0, ERR_INPUT, "the first row's features begin at %lld" ANEW,
          (long long)t->starts[0]);
    for (gidx i = 0; i < count; i++) TRY(row_check(t, first + i, t->starts[i], t->starts[i + 1]));
  }
  CHECK(n == 0 || t->starts[(n - 1) % PIECE + 1] == t->indices.shape[0], ERR_INPUT,
        "the last row's features end at %lld of %lld" ANEW,
        (long long)t->starts[(n - 1) % PIECE + 1], (long long)t->indices.shape[0]);
  return OK;
}

static int file_check(struct verify *v)
{
  struct truth_pass *t;
  if (!v->is_ours || strcmp(v->kind, truth_kind.name) != 0) return OK;
  t = calloc(1, sizeof *t);
  CHECK(t, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *t);
  int status = h5_array_open(v->file, TRUTH_GROUP "/indptr", &t->indptr);
  if (!status) status = h5_array_open(v->file, TRUTH_GROUP "/indices", &t->indices);
  if (!status) status = h5_array_open(v->file, TRUTH_GROUP "/data", &t->data);
  if (!status) status = rows_pass(t, v);
  h5_array_close(&t->indptr);
  h5_array_close(&t->indices);
  h5_array_close(&t->data);
  free(t);
  TRY(status);
  check_note(v, "truth     features in range and ascending, magnitudes above 0");
  return OK;
}

const struct file_kind truth_kind = {"truth", {&objects}, file_check, NULL, NULL, NULL};
