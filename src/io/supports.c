/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are written chunk by chunk.  So the order of chunks in the file does not depend on the size
 * of the blocks that are written.  If all rows have s entries, a chunk has whole rows. */
#include "io/supports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/sha256_tree.h"
#include "base/status.h"
#include "io/dictionary.h"
#include "io/h5/array_write.h"
#include "io/h5/placed.h"
#include "io/mean.h"
#include "io/metrics.h"
#include "io/part.h"
#include "io/score_cuts.h"
#include "io/supports_ranks.h"
#include "model/codes.h"

static const struct object_row object_rows[] = {
    {OFFSETS_PATH, TYPE_I64, "N+1", 1, "where each row's support begins"},
    {"/supports/indices", TYPE_I32, "nnz", 1, "atoms, in selection order"},
    {"/supports/data", TYPE_F32, "nnz", 1, "code if codes were solved, else score"},
    {"/supports/score", TYPE_F32, "nnz", 1, "signed score in the round that chose the atom"},
    {"/supports/codes", TYPE_F32, "nnz d", 0, "code blocks of frames"},
    {"/cut/least", TYPE_F32, "T", 0, "of each choice, the last score that is a code"},
    {"/cut/row", TYPE_I64, "T", 0, "row up to which scores equal to it are codes"},
    {"/cut/ties", TYPE_I64, "T", 0, "number of such scores in this row that are codes"},
};
const struct object_table supports_objects = {object_rows, LENGTH(object_rows)};

const struct file_kind supports_kind = {
    "supports",     {&supports_objects, &metrics_objects, &mean_objects},
    supports_check, NULL,
    metrics_show,   NULL};

/* CHUNKS: chunks of an array that are written in one call. */
enum { CHUNK_VALUES = 1 << 18, CHUNKS = 8, SLACK_BYTES = 1 << 20 };
enum { SLAB_INDICES, SLAB_SCORE, SLAB_DATA, SLAB_CODES, SLAB_INDPTR };
enum { CHUNK_ROOM = 64 }; /* bytes of a chunk's hash and of its line in HDF5's index */

/* Bytes of an array on disk, with checksums, index and the unused part of its last chunk. */
static gidx array_bytes(double values, int width)
{
  return (gidx)(values * width * (1 + 0x1p-10)) + 2 * SLACK_BYTES;
}

/* Does the file have code blocks in /supports/codes, besides /supports/data? */
static int stores_codes(const struct supports_shape *shape)
{
  return shape->has_codes && shape->d > 1;
}

/* If every row has s atoms and there are more than ROW_BLOCK rows, those of a sum block (N.0), all
 * chunks have places that follow from the shape ("slabs").  Otherwise *has_slabs <- 0. */
static int slabs_plan(const struct supports_shape *shape, struct h5_slabs *slabs, int *has_slabs)
{
  gidx width = 4 * (gidx)shape->s, codes = stores_codes(shape) ? width * shape->d : 0;
  const gidx bytes[SLAB_ARRAYS] = {width, width, width, codes, sizeof(gidx)};
  double chunks = 0;
  *has_slabs = !shape->encoder && shape->n > ROW_BLOCK;
  if (!*has_slabs) return OK;
  TRY(h5_slabs_plan(slabs, shape->n, bytes, 0));
  for (int a = 0; a < SLAB_ARRAYS; a++)
    if (bytes[a]) chunks += (double)shape->n / (double)slabs->chunk_rows[a] + 1;
  gidx room = (gidx)(CHUNK_ROOM * chunks) + 8 * ((gidx)shape->k + shape->p) + SLACK_BYTES / 4;
  return h5_slabs_plan(slabs, shape->n, bytes, room);
}

gidx supports_bytes(const struct supports_shape *shape)
{
  struct h5_slabs slabs;
  int has_slabs;
  int failed = slabs_plan(shape, &slabs, &has_slabs);
  if (failed) status_clear(); /* the caller that writes reports the error */
  if (!failed && has_slabs) return slabs.end + SLACK_BYTES;
  int is_known = !shape->encoder || shape->s < shape->k; /* otherwise rows may have any length */
  double nnz = is_known ? (double)shape->n * shape->s : 0;
  gidx bytes = SLACK_BYTES + array_bytes((double)shape->n + 1, 8) + array_bytes(shape->k, 8) +
               array_bytes(shape->p, 8) + 3 * array_bytes(nnz, 4);
  return bytes + (stores_codes(shape) ? array_bytes(nnz * shape->d, 4) : 0);
}

/* The rows of a chunk.  Without slabs its entries are about a megabyte. */
static gidx chunk_rows(const struct supports_output *f)
{
  const struct supports_shape *shape = &f->shape;
  gidx width = (gidx)shape->s * (stores_codes(shape) ? shape->d : 1);
  if (f->has_slabs) return f->slabs.chunk_rows[0];
  return width < CHUNK_VALUES ? CHUNK_VALUES / width : 1;
}

/* Write the rows of one or a few chunks, or less than a chunk. */
static int rows_write(struct supports_output *f, const struct support_block *block)
{
  idx d = f->shape.d;
  gidx first = block->first * block->s, count = (gidx)block->n * block->s;
  const float *data = block->codes ? block->codes : block->score;
  if (stores_codes(&f->shape)) {
    float *summary = f->summary;
    for (gidx i = 0; i < count; i++) summary[i] = code_summary(block->codes + i * d, d);
    data = summary;
  }
  struct h5_array *const arrays[] = {&f->indices, &f->score, &f->data, &f->codes};
  const void *values[] = {block->atoms, block->score, data, block->codes};
  int n = stores_codes(&f->shape) && !f->has_slabs ? 4 : 3; /* arrays with chunks of equal size */
  TRY(h5_arrays_write(arrays, n, first, count, values));
  if (n == 4 || !stores_codes(&f->shape)) return OK;
  return h5_array_write(&f->codes, first, count, block->codes);
}

/* Write rows of any length.  Each array is written up to the end of its chunk in turn.  So chunks
 * of the arrays alternate here too. */
static int ragged_write(struct supports_output *f, const struct support_block *block)
{
  const gidx *start = block->start, chunk = f->indices.chunk_rows;
  for (idx i = 0; i < block->n; i++) {
    for (gidx e = start[i]; e < start[i + 1];) {
      gidx next = f->indices.next, n = imin(start[i + 1] - e, chunk - next % chunk);
      TRY(h5_array_write(&f->indices, next, n, block->atoms + e));
      TRY(h5_array_write(&f->score, next, n, block->score + e));
      TRY(h5_array_write(&f->data, next, n, block->codes + e));
      e += n;
    }
    TRY(h5_array_write(&f->indptr, block->first + i + 1, 1, &f->indices.next));
  }
  return OK;
}

int supports_output_arrays(struct supports_output *f, struct h5_array *arrays[SUPPORTS_ARRAYS])
{
  struct h5_array *const all[SUPPORTS_ARRAYS] = {&f->indices, &f->score, &f->data, &f->codes};
  memcpy(arrays, all, sizeof all);
  return stores_codes(&f->shape) ? SUPPORTS_ARRAYS : SUPPORTS_ARRAYS - 1;
}

/* Continue at a row: the rows that a rank writes need not follow each other. */
static int row_seek(struct supports_output *f, gidx row)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  int n = f->indices.placed ? supports_output_arrays(f, arrays) : 0;
  for (int i = 0; i < n; i++) TRY(h5_placed_seek(arrays[i], row * f->shape.s));
  return OK;
}

/* Write a block of rows, a few chunks at a time. */
static int sink_write(void *self, const struct support_block *block)
{
  struct supports_output *f = self;
  const struct supports_shape *shape = &f->shape;
  int is_empty = block->start && block->start[block->n] == block->start[0]; /* codes may be NULL */
  CHECK(block->s == shape->s && block->d == shape->d &&
            (is_empty || !block->codes == !shape->has_codes) && !block->start == !shape->encoder,
        ERR_INTERNAL, "a block of supports has another shape than its file");
  CHECK(block->n >= 0 && block->n <= shape->n - block->first, ERR_INTERNAL,
        "rows %lld + %d of %lld are written", (long long)block->first, block->n,
        (long long)shape->n);
  if (block->start) return ragged_write(f, block);
  TRY(row_seek(f, block->first));
  gidx most = CHUNKS * chunk_rows(f);
  for (gidx row = block->first, end = row + block->n; row < end;) {
    gidx next = (row / most + 1) * most, skip = (row - block->first) * shape->s;
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
  return f->indices.placed ? supports_placed_wrote(f, block->n, block->first + block->n) : OK;
}

static int attributes_write(const struct h5_file *h5, const struct supports_shape *shape)
{
  gidx size[2] = {shape->n, shape->k};
  TRY(h5_attribute_long(h5, "/", "top_s", shape->s));
  TRY(h5_attribute_long(h5, "/", "frame", shape->d));
  TRY(h5_attribute_long(h5, "/", "codes", shape->has_codes != 0));
  TRY(nonnegative_write(h5, shape->nonnegative));
  if (shape->encoder) TRY(h5_attribute_text(h5, "/", "encoder", shape->encoder));
  if (shape->solved) TRY(h5_attribute_long(h5, "/", "solved", 1));
  TRY(h5_attribute_text(h5, "/supports", "encoding-type", "csr_matrix"));
  TRY(h5_attribute_text(h5, "/supports", "encoding-version", "0.1.0"));
  TRY(h5_attribute_longs(h5, "/supports", "shape", 2, size));
  return OK;
}

/* Begin the offsets of rows of any length.  Each offset is written when its row is written. */
static int indptr_begin(struct supports_output *f)
{
  gidx count = f->shape.n + 1, zero = 0;
  TRY(object_create(&f->result.h5, OFFSETS_PATH, 1, &count, 0, &f->indptr));
  return h5_array_write(&f->indptr, 0, 1, &zero);
}

/* The entries of a chunk.  *nnz <- the entries of all rows, or H5_GROWS if their number is not
 * known. */
static gidx chunk_entries(const struct supports_output *f, gidx *nnz)
{
  const struct supports_shape *shape = &f->shape;
  *nnz = shape->encoder ? H5_GROWS : shape->n * shape->s;
  return shape->encoder ? imax(1, imin(CHUNK_VALUES, imin(shape->n, CHUNK_VALUES) * shape->s))
                        : chunk_rows(f) * shape->s;
}

/* Create the array that has index `a` in the slabs and `row` entries per row.  Without slabs a
 * chunk has `chunk` entries. */
static int array_create(struct supports_output *f, const char *path, int a, int rank,
                        const gidx *shape, gidx row, gidx chunk, struct h5_array *array)
{
  if (f->has_slabs) chunk = f->slabs.chunk_rows[a] * row;
  TRY(object_create(&f->result.h5, path, rank, shape, chunk, array));
  array->slabs = f->has_slabs ? &f->slabs : NULL;
  array->slab_array = a;
  return OK;
}

static int arrays_create(struct supports_output *f)
{
  const struct supports_shape *shape = &f->shape;
  idx s = shape->s;
  gidx nnz, chunk = chunk_entries(f, &nnz), codes[2] = {nnz, shape->d};
  TRY(array_create(f, "/supports/indices", SLAB_INDICES, 1, &nnz, s, chunk, &f->indices));
  TRY(array_create(f, "/supports/score", SLAB_SCORE, 1, &nnz, s, chunk, &f->score));
  TRY(array_create(f, "/supports/data", SLAB_DATA, 1, &nnz, s, chunk, &f->data));
  if (stores_codes(shape))
    TRY(array_create(f, "/supports/codes", SLAB_CODES, 2, codes, s, chunk, &f->codes));
  if (shape->encoder) TRY(indptr_begin(f));
  f->indices.hashing = f->score.hashing = f->data.hashing = f->codes.hashing = &f->hashing;
  return OK;
}

/* Initialise the members that do not concern the disk. */
static int output_begin(struct supports_output *f, const struct supports_shape *shape)
{
  memset(f, 0, sizeof *f);
  f->shape = *shape;
  f->sink = (struct support_sink){f, sink_write};
  CHECK(shape->n >= 0 && shape->k >= 1 && shape->s >= 1 && shape->d >= 1 &&
            (!shape->encoder || (shape->d == 1 && shape->has_codes)),
        ERR_INTERNAL, "supports of %lld rows, %d of %d atoms, frames of %d", (long long)shape->n,
        shape->s, shape->k, shape->d);
  TRY(slabs_plan(shape, &f->slabs, &f->has_slabs));
  gidx nnz, chunk = chunk_entries(f, &nnz);
  if (!stores_codes(shape)) return OK;
  f->summary = malloc((size_t)(CHUNKS * chunk) * sizeof(float));
  CHECK(f->summary, ERR_MEMORY, "cannot allocate %lld bytes", (long long)(CHUNKS * chunk) * 4);
  return OK;
}

static int output_create(struct supports_output *f, const char *path,
                         const struct supports_shape *shape, const struct file_kind *kind)
{
  const struct h5_file *h5 = &f->result.h5;
  TRY(output_begin(f, shape));
  TRY(result_create(&f->result, path, kind, supports_bytes(shape)));
  if (f->has_slabs) TRY(h5_slabs_reserve(h5, &f->slabs));
  TRY(attributes_write(h5, shape));
  return arrays_create(f);
}

/* Open the existing file f->result.file, and its arrays. */
static int placed_open(struct supports_output *f)
{
  const struct temporary *file = &f->result.file;
  CHECK(h5_placed_open(&f->result.h5, file->name), ERR_IO, "cannot open '%s': %s", file->name,
        strerror(errno));
  return arrays_create(f);
}

int supports_output_open(struct supports_output *f, const char *name,
                         const struct supports_shape *shape)
{
  struct temporary *file = &f->result.file;
  TRY(output_begin(f, shape));
  snprintf(file->name, sizeof file->name, "%s", name);
  return placed_open(f);
}

int supports_growing_create(struct supports_output *f, const char *path,
                            const struct supports_shape *shape)
{
  TRY(output_begin(f, shape));
  CHECK(f->has_slabs, ERR_INTERNAL, "rows of '%s' have no places", path);
  TRY(result_reserve(&f->result, path, f->slabs.end));
  return placed_open(f);
}

/* The offset in the file after the chunks of the first `rows` rows, which are whole sum blocks, or
 * all rows. */
static gidx rows_end(const struct supports_output *f, gidx rows)
{
  int a = stores_codes(&f->shape) ? SLAB_CODES : SLAB_DATA;
  gidx chunks = ceil_div(rows, f->slabs.chunk_rows[a]);
  return h5_slabs_at(&f->slabs, a, chunks - 1) + f->slabs.stored[a];
}

int supports_growing_open(struct supports_output *f, const char *path, const char *name,
                          const struct supports_shape *shape, gidx rows)
{
  struct file_facts facts;
  TRY(output_begin(f, shape));
  CHECK(f->has_slabs, ERR_INTERNAL, "rows of '%s' have no places", path);
  TRY(file_facts_of(name, &facts));
  CHECK(facts.size >= rows_end(f, rows), ERR_INPUT,
        "'%s' has %lld bytes, and its first %lld rows end at byte %lld" ANEW, name,
        (long long)facts.size, (long long)rows, (long long)rows_end(f, rows));
  temporary_adopt(&f->result.file, path, name);
  f->checked = rows;
  return placed_open(f);
}

int supports_growing_join(struct supports_output *f, const char *path, const char *name,
                          const struct supports_shape *shape, gidx next)
{
  TRY(output_begin(f, shape));
  CHECK(f->has_slabs, ERR_INTERNAL, "rows of '%s' have no places", path);
  TRY(result_join(&f->result, path, name, f->slabs.end));
  f->checked = next;
  return placed_open(f);
}

gidx supports_segment_rows(const struct supports_shape *shape)
{
  struct h5_slabs slabs;
  int has_slabs;
  int failed = slabs_plan(shape, &slabs, &has_slabs);
  if (failed) status_clear();
  return failed || !has_slabs ? 0 : (gidx)ROW_BLOCK << slabs.level;
}

int supports_growing_end(struct supports_output *f, const struct file_kind *kind)
{
  struct h5_array *arrays[SUPPORTS_ARRAYS];
  struct h5_placed *placed[SUPPORTS_ARRAYS];
  int n = supports_output_arrays(f, arrays);
  TRY(h5_placed_close(&f->result.h5));
  for (int i = 0; i < n; i++) {
    placed[i] = arrays[i]->placed;
    arrays[i]->placed = NULL;
    arrays[i]->next = arrays[i]->shape[0];
    TRY(h5_array_close(arrays[i]));
  }
  TRY(result_convert(&f->result, kind, f->slabs.base, f->slabs.end));
  TRY(h5_slabs_reserve(&f->result.h5, &f->slabs));
  TRY(attributes_write(&f->result.h5, &f->shape));
  TRY(arrays_create(f));
  for (int i = 0; i < n; i++) arrays[i]->placed = placed[i];
  for (int i = 0; i < n; i++) TRY(h5_placed_end(arrays[i], f->shape.n * f->shape.s));
  return OK;
}

int supports_output_create(struct supports_output *f, const char *path,
                           const struct supports_shape *shape)
{
  return output_create(f, path, shape, &supports_kind);
}

int supports_part_create(struct supports_output *f, const char *path,
                         const struct supports_shape *shape)
{
  return output_create(f, path, shape, &part_kind);
}

int supports_output_cut(struct supports_output *f, gidx rows)
{
  struct h5_array *arrays[] = {&f->indices, &f->score, &f->data, &f->codes, &f->indptr};
  const struct h5_file *h5 = &f->result.h5;
  gidx size[2] = {rows, f->shape.k};
  for (int i = 0; i < LENGTH(arrays); i++)
    if (arrays[i]->id) TRY(h5_array_truncate(arrays[i]));
  f->shape.n = rows;
  TRY(h5_attribute_longs(h5, "/supports", "shape", 2, size));
  TRY(h5_attribute_text(h5, "/", "kind", part_kind.name));
  return OK;
}

/* Create /supports/indptr for rows that all have s entries, so that row i begins at entry s i. */
static int offsets_create(struct supports_output *f, struct h5_array *a)
{
  gidx count = f->shape.n + 1;
  return array_create(f, OFFSETS_PATH, SLAB_INDPTR, 1, &count, 1, 0, a);
}

enum { PIECE = 4096 }; /* offsets */

static gidx offsets_fill(const struct supports_output *f, gidx row, gidx end, gidx *offsets)
{
  gidx n = imin(end - row, PIECE);
  for (gidx i = 0; i < n; i++) offsets[i] = (row + i) * f->shape.s;
  return n;
}

static int offsets_write(const struct supports_output *f, struct h5_array *a, gidx row, gidx end)
{
  gidx offsets[PIECE];
  for (gidx n; row < end; row += n) {
    n = offsets_fill(f, row, end, offsets);
    TRY(h5_array_write(a, row, n, offsets));
  }
  return OK;
}

/* Read offsets from the disk again, and compare them with the right ones. */
static int offsets_compare(const struct supports_output *f, const struct h5_array *a, gidx row,
                           gidx end)
{
  gidx offsets[PIECE], again[PIECE + 1]; /* with space for a checksum */
  for (gidx n; row < end; row += n) {
    n = offsets_fill(f, row, end, offsets);
    TRY(h5_placed_read(a, row, n, again));
    CHECK(!memcmp(offsets, again, (size_t)n * sizeof *again), ERR_IO,
          "the offsets of rows from %lld on of '%s' are not what was written", (long long)row,
          f->result.file.name);
  }
  return OK;
}

int supports_offsets_write(struct supports_output *f, gidx first, gidx end)
{
  struct h5_array a;
  if (end == f->shape.n) end++; /* one more offset: the end of the last row */
  int status = offsets_create(f, &a);
  if (!status) status = h5_placed_begin(&a);
  if (!status) status = h5_placed_seek(&a, first);
  if (!status) status = offsets_write(f, &a, first, end);
  if (!status) status = h5_array_flush(&a);
  if (!status) status = h5_placed_sync(&a);
  if (!status) status = offsets_compare(f, &a, first, end);
  a.next = a.shape[0];
  int closed = h5_array_close(&a);
  return status ? status : closed;
}

/* The offsets are in the file already.  Register their chunks with HDF5. */
static int offsets_join(const struct supports_output *f, struct h5_array *a)
{
  gidx offsets[PIECE], count = f->shape.n + 1, unit = f->slabs.chunk_rows[SLAB_INDPTR];
  TRY(h5_placed_begin(a));
  for (gidx i = 0; i < a->placed->chunks; i++) {
    gidx n = offsets_fill(f, i * unit, imin(count, (i + 1) * unit), offsets);
    TRY(sha256_leaf(offsets, (size_t)n * sizeof *offsets, a->placed->leaves[i]));
  }
  a->placed->all_written = a->placed->chunks;
  return h5_placed_end(a, count);
}

static int indptr_write(struct supports_output *f)
{
  struct h5_array a;
  int status = offsets_create(f, &a);
  if (!status)
    status = f->counts.has_offsets ? offsets_join(f, &a) : offsets_write(f, &a, 0, f->shape.n + 1);
  int closed = h5_array_close(&a);
  return status ? status : closed;
}

static int outputs_close(struct supports_output *f)
{
  int status = OK;
  struct h5_array *arrays[] = {&f->indices, &f->score, &f->data, &f->codes, &f->indptr};
  for (int i = 0; i < LENGTH(arrays); i++) {
    int closed = h5_array_close(arrays[i]);
    if (status == OK) status = closed;
  }
  return status;
}

int supports_output_finish(struct supports_output *f, const struct supports_ending *ending,
                           const struct run_fact *facts, int n_facts)
{
  const struct h5_file *h5 = &f->result.h5;
  const struct supports_shape *shape = &f->shape;
  CHECK(ending->metrics && ending->metrics->density && ending->metrics->k == shape->k, ERR_INTERNAL,
        "the metrics are those of %d atoms", ending->metrics ? ending->metrics->k : 0);
  TRY(outputs_close(f));
  TRY(h5_attribute_real(h5, "/", "rho", ending->rho));
  TRY(h5_attribute_long(h5, "/", "rounds", ending->rounds));
  if (ending->normalized) TRY(h5_attribute_long(h5, "/", "normalized", 1));
  if (ending->sweeps) TRY(h5_attribute_long(h5, "/", "sweeps", ending->sweeps));
  TRY(identity_write(h5, INPUTS_GROUP, &ending->inputs));
  TRY(identity_write(h5, CONTENTS_GROUP, &ending->contents));
  if (shape->cuts) TRY(cuts_write(h5, shape->cuts));
  if (ending->part) TRY(part_write(h5, ending->part));
  if (!shape->encoder) TRY(indptr_write(f));
  TRY(metrics_write(h5, ending->metrics, shape->has_codes));
  if (ending->mean) TRY(object_write_vector(h5, "/mean", shape->p, ending->mean));
  TRY(result_publish(&f->result, facts, n_facts));
  supports_output_close(f);
  return OK;
}

void supports_output_close(struct supports_output *f)
{
  worker_close(&f->checker);
  outputs_close(f);
  h5_close(&f->result.h5);
  free(f->summary);
  free(f->counts.density);
  supports_rows_close(f->pass);
  f->pass = NULL;
  f->summary = NULL;
  f->counts.density = NULL;
}
