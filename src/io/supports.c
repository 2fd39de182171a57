/* SPDX-License-Identifier: BSD-3-Clause
 * Blocks of rows of any size are written chunk by chunk, a chunk having whole rows, so that the
 * chunks of the arrays alternate in the file the same way whatever the blocks were.  A CSR group is
 * opened array by array; types are converted where that is exact. */
#include "io/supports.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "io/dictionary.h"
#include "io/encoder.h"
#include "io/format.h"
#include "io/h5/listing.h"
#include "io/h5/values.h"
#include "io/inputs.h"
#include "io/mean.h"
#include "io/metrics.h"
#include "io/part.h"
#include "model/codes.h"
#include "model/dictionary.h"

static const struct object_row object_rows[] = {
    {"/supports/indptr", TYPE_I64, "N+1", 1, "where each row's support begins"},
    {"/supports/indices", TYPE_I32, "nnz", 1, "atoms, in selection order"},
    {"/supports/data", TYPE_F32, "nnz", 1, "code if codes were solved, else score"},
    {"/supports/score", TYPE_F32, "nnz", 1, "signed score of the round that chose"},
    {"/supports/codes", TYPE_F32, "nnz d", 0, "code blocks of frames"},
};
const struct object_table supports_objects = {object_rows, LENGTH(object_rows)};

const struct file_kind supports_kind = {
    "supports",     {&supports_objects, &metrics_objects, &mean_objects},
    supports_check, NULL,
    metrics_show,   NULL};

enum { CHUNK_VALUES = 1 << 18, SLACK_BYTES = 1 << 20 };

/* Atoms that a file may name without storing anything about them, and for each entry; atoms whose
 * densities a byte can hold when deflate packs them. */
enum { FREE_ATOMS = 1 << 20, ENTRY_ATOMS = 64, PACKED_ATOMS = 250 };
#define MAX_ROWS (INT64_C(1) << 48)

/* Bytes of an array on disk, with checksums, index and the unused part of its last chunk. */
static gidx array_bytes(double values, int width)
{
  return (gidx)(values * width * (1 + 0x1p-10)) + 2 * SLACK_BYTES;
}

/* Are there code blocks beside `data`? */
static int stores_codes(const struct supports_shape *shape)
{
  return shape->has_codes && shape->d > 1;
}

gidx supports_bytes(const struct supports_shape *shape)
{
  int is_known = !shape->encoder || shape->s < shape->k; /* else rows may be of any length */
  double nnz = is_known ? (double)shape->n * shape->s : 0;
  gidx bytes = SLACK_BYTES + array_bytes((double)shape->n + 1, 8) + array_bytes(shape->k, 8) +
               array_bytes(shape->p, 8) + 3 * array_bytes(nnz, 4);
  return bytes + (stores_codes(shape) ? array_bytes(nnz * shape->d, 4) : 0);
}

/* Rows whose entries fill a chunk of about a megabyte. */
static gidx chunk_rows(const struct supports_shape *shape)
{
  gidx width = (gidx)shape->s * (stores_codes(shape) ? shape->d : 1);
  return width < CHUNK_VALUES ? CHUNK_VALUES / width : 1;
}

/* Write rows of one chunk. */
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
  int n = stores_codes(&f->shape) ? 4 : 3;
  for (int i = 0; i < n; i++) {
    arrays[i]->hashes_later = team_spare() > 1;
    TRY(h5_array_write(arrays[i], first, count, values[i]));
  }
  return h5_arrays_hash(arrays, n);
}

/* Write rows of any length.  What a chunk ends with is written before more, so that chunks of the
 * arrays alternate here too. */
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

/* Write a block of rows, one chunk's rows at a time. */
static int sink_write(void *self, const struct support_block *block)
{
  struct supports_output *f = self;
  const struct supports_shape *shape = &f->shape;
  CHECK(block->s == shape->s && block->d == shape->d && !block->codes == !shape->has_codes &&
            !block->start == !shape->encoder,
        ERR_INTERNAL, "a block of supports has another shape than its file");
  CHECK(block->n >= 0 && block->n <= shape->n - block->first, ERR_INTERNAL,
        "rows %lld + %d of %lld are written", (long long)block->first, block->n,
        (long long)shape->n);
  if (block->start) return ragged_write(f, block);
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
  TRY(h5_attribute_long(h5, "/", "top_s", shape->s));
  TRY(h5_attribute_long(h5, "/", "frame", shape->d));
  TRY(h5_attribute_long(h5, "/", "codes", shape->has_codes != 0));
  TRY(nonnegative_write(h5, shape->nonnegative));
  if (shape->encoder) TRY(h5_attribute_text(h5, "/", "encoder", shape->encoder));
  TRY(h5_attribute_text(h5, "/supports", "encoding-type", "csr_matrix"));
  TRY(h5_attribute_text(h5, "/supports", "encoding-version", "0.1.0"));
  TRY(h5_attribute_longs(h5, "/supports", "shape", 2, size));
  return OK;
}

/* Begin the offsets of rows of any length, which are known as they are written. */
static int indptr_begin(struct supports_output *f)
{
  gidx count = f->shape.n + 1, zero = 0;
  TRY(object_create(&f->result.h5, "/supports/indptr", 1, &count, 0, &f->indptr));
  return h5_array_write(&f->indptr, 0, 1, &zero);
}

/* Entries of a chunk, and in *nnz those of all rows, or that it is not known. */
static gidx chunk_entries(const struct supports_shape *shape, gidx *nnz)
{
  *nnz = shape->encoder ? H5_GROWS : shape->n * shape->s;
  return shape->encoder ? imax(1, imin(CHUNK_VALUES, imin(shape->n, CHUNK_VALUES) * shape->s))
                        : chunk_rows(shape) * shape->s;
}

static int output_create(struct supports_output *f, const char *path,
                         const struct supports_shape *shape, const struct file_kind *kind)
{
  memset(f, 0, sizeof *f);
  f->shape = *shape;
  f->sink = (struct support_sink){f, sink_write};
  CHECK(shape->n >= 0 && shape->k >= 1 && shape->s >= 1 && shape->d >= 1 &&
            (!shape->encoder || (shape->d == 1 && shape->has_codes)),
        ERR_INTERNAL, "supports of %lld rows, %d of %d atoms, frames of %d", (long long)shape->n,
        shape->s, shape->k, shape->d);
  const struct h5_file *h5 = &f->result.h5;
  gidx nnz, chunk = chunk_entries(shape, &nnz), codes[2] = {nnz, shape->d};
  if (stores_codes(shape)) {
    f->summary = malloc((size_t)chunk * sizeof(float));
    CHECK(f->summary, ERR_MEMORY, "cannot allocate %lld bytes", (long long)chunk * 4);
  }
  TRY(result_create(&f->result, path, kind, supports_bytes(shape)));
  TRY(attributes_write(h5, shape));
  TRY(object_create(h5, "/supports/indices", 1, &nnz, chunk, &f->indices));
  TRY(object_create(h5, "/supports/score", 1, &nnz, chunk, &f->score));
  TRY(object_create(h5, "/supports/data", 1, &nnz, chunk, &f->data));
  if (stores_codes(shape)) TRY(object_create(h5, "/supports/codes", 2, codes, chunk, &f->codes));
  if (shape->encoder) TRY(indptr_begin(f));
  f->indices.hashing = f->score.hashing = f->data.hashing = f->codes.hashing = &f->hashing;
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

/* Every row has s entries, so row i begins at entry s i. */
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
  if (ending->part) TRY(part_write(h5, ending->part));
  if (!shape->encoder) TRY(indptr_write(h5, shape));
  TRY(metrics_write(h5, ending->metrics, shape->has_codes));
  if (ending->mean) TRY(object_write_vector(h5, "/mean", shape->p, ending->mean));
  TRY(result_publish(&f->result, facts, n_facts));
  supports_output_close(f);
  return OK;
}

void supports_output_close(struct supports_output *f)
{
  outputs_close(f);
  h5_close(&f->result.h5);
  free(f->summary);
  f->summary = NULL;
}

struct supports_input_state {
  char *file;
  char name[4096]; /* FILE:/GROUP */
  const char *group;
  struct h5_file h5;
  struct h5_array indptr, indices, data, score, codes;
  int has_score;
};

static int starts_read(void *self, gidx first, gidx count, gidx *out)
{
  const struct supports_input_state *s = self;
  TRY(h5_array_read(&s->indptr, first, count + 1, TYPE_I64, out));
  return OK;
}

static int entries_read(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes)
{
  const struct supports_input_state *s = self;
  TRY(h5_array_read(&s->indices, first, count, TYPE_I32, atoms));
  if (score && s->has_score) TRY(h5_array_read(&s->score, first, count, TYPE_F32, score));
  if (codes) TRY(h5_array_read(s->codes.id ? &s->codes : &s->data, first, count, TYPE_F32, codes));
  return OK;
}

/* How codes of another program become a CSR matrix that is read: m is one of SciPy, or dense. */
#define CSR_MEND                                                                                   \
  "save them as a CSR matrix: python3 -c 'import h5py, numpy, scipy.sparse as s; m = "             \
  "s.csr_matrix(CODES); g = h5py.File(\"NEW.h5\", \"w\").create_group(\"supports\"); "             \
  "g.attrs[\"shape\"] = m.shape; [g.create_dataset(k, data=getattr(m, k)) for k in (\"data\", "    \
  "\"indices\", \"indptr\")]', where CODES reads yours"

/* Open an array of the group; *a stays closed when the array is neither there nor needed. */
static int array_open(struct supports_input_state *s, const char *name, int needed,
                      struct h5_array *a)
{
  char object[256];
  CHECK(strlen(s->group) < 200, ERR_INPUT, "the name '%s' is too long", s->group);
  snprintf(object, sizeof object, "%.200s/%.20s", s->group, name);
  int there;
  TRY(h5_exists(&s->h5, object, &there));
  CHECK(there || !needed, ERR_INPUT, "no '%s' in '%s', which a CSR matrix has: " CSR_MEND, object,
        s->file);
  if (there) TRY(h5_array_open(&s->h5, object, a));
  return OK;
}

/* found <- "'/a', '/b'": the groups of a file that look like a CSR matrix. */
static void groups_list(const struct h5_file *f, char *found, size_t capacity)
{
  struct h5_listing list = {0};
  size_t used = 0;
  found[0] = '\0';
  if (h5_list(f, &list) != OK) status_clear();
  for (gidx i = 0; i < list.count && used < capacity; i++) {
    const char *path = list.entries[i].path, *end = strstr(path, "/indptr");
    if (list.entries[i].kind == ENTRY_DATASET && end && !end[strlen("/indptr")])
      used += (size_t)snprintf(found + used, capacity - used, "%s'%.*s'", used ? ", " : "",
                               end > path ? (int)(end - path) : 1, path);
  }
  h5_listing_free(&list);
}

/* Is the group one, with a shape?  Other programs may have a dense array there. */
static int group_check(const struct supports_input_state *s)
{
  struct h5_array dense = {0};
  int there, status = h5_array_open(&s->h5, s->group, &dense);
  h5_array_close(&dense);
  if (status) status_clear();
  CHECK(status, ERR_INPUT, "'%s' of '%s' is an array, and codes are sparse: " CSR_MEND, s->group,
        s->file);
  TRY(h5_attribute_is(&s->h5, s->group, "encoding-type", "csc_matrix", &there));
  CHECK(!there, ERR_INPUT, "'%s' of '%s' is a CSC matrix, rows have to be together: save m.tocsr()",
        s->group, s->file);
  TRY(h5_attribute_exists(&s->h5, s->group, "shape", &there));
  CHECK(there, ERR_INPUT,
        "'%s' of '%s' has no attribute 'shape', rows and atoms: in Python h5py.File(\"%s\", "
        "\"r+\")[\"%s\"].attrs[\"shape\"] = (ROWS, ATOMS)",
        s->group, s->file, s->file, s->group);
  return OK;
}

static int arrays_open(struct supports_input_state *s)
{
  int there;
  TRY(h5_exists(&s->h5, s->group, &there));
  char found[512];
  if (!there) groups_list(&s->h5, found, sizeof found);
  CHECK(there || !*found, ERR_INPUT,
        "no group '%s' in '%s', which has codes in %s: name it as %s:/PATH", s->group, s->file,
        found, s->file);
  CHECK(
      there, ERR_INPUT,
      "no group '%s' in '%s', nor codes elsewhere: give the supports.h5 of `sagitta encode`, or a "
      "CSR matrix of another program as FILE.h5:/PATH",
      s->group, s->file);
  TRY(group_check(s));
  TRY(array_open(s, "indptr", 1, &s->indptr));
  TRY(array_open(s, "indices", 1, &s->indices));
  TRY(array_open(s, "data", 1, &s->data));
  TRY(array_open(s, "score", 0, &s->score));
  TRY(array_open(s, "codes", 0, &s->codes));
  s->has_score = s->score.id != 0;
  return OK;
}

/* Check the shape of an array, if it is open. */
static int length_check(const struct supports_input_state *s, const struct h5_array *a, int rank,
                        gidx length)
{
  CHECK(!a->id || (a->rank == rank && a->shape[0] == length), ERR_INPUT,
        "'%s' of '%s' has %d dimensions and %lld entries, not %d and %lld", a->object, s->file,
        a->rank, (long long)a->shape[0], rank, (long long)length);
  return OK;
}

/* *stores <- whether the file stores a density for each atom, packed or not. */
static int density_look(const struct h5_file *f, gidx k, int *stores)
{
  struct h5_values v = {0};
  TRY(h5_exists(f, "/metrics/density", stores));
  if (!*stores) return OK;
  int status = h5_values_open(f, "/metrics/density", NULL, &v);
  *stores = !status && v.rank == 1 && v.shape[0] == k && v.stored >= k / PACKED_ATOMS;
  h5_values_close(&v);
  if (status) status_clear(); /* one that cannot be opened stores nothing */
  return OK;
}

int supports_shape_check(const struct h5_file *f, const gidx *shape, gidx entries)
{
  CHECK(shape[0] >= 0 && shape[0] <= MAX_ROWS && shape[1] >= 1 && shape[1] <= INT32_MAX, ERR_INPUT,
        "the supports of '%s' have %lld rows of %lld atoms", f->path, (long long)shape[0],
        (long long)shape[1]);
  gidx backed =
      imax(FREE_ATOMS, entries > INT32_MAX / ENTRY_ATOMS ? INT32_MAX : entries * ENTRY_ATOMS);
  int stores = 0;
  if (shape[1] > backed) TRY(density_look(f, shape[1], &stores));
  CHECK(shape[1] <= backed || stores, ERR_INPUT,
        "the attribute 'shape' of the supports of '%s' says %lld atoms, but there are %lld entries "
        "alone and no '/metrics/density': it is damaged, or give the matrix fewer columns",
        f->path, (long long)shape[1], (long long)entries);
  return OK;
}

/* Check all shapes against the matrix's shape[2], and fill in the source. */
static int shapes_check(struct supports_input *f, const gidx *shape)
{
  struct supports_input_state *s = f->state;
  gidx entries = s->indices.rank == 1 ? s->indices.shape[0] : -1;
  TRY(supports_shape_check(&s->h5, shape, entries));
  TRY(length_check(s, &s->indptr, 1, shape[0] + 1));
  TRY(length_check(s, &s->indices, 1, entries));
  TRY(length_check(s, &s->data, 1, entries));
  TRY(length_check(s, &s->score, 1, entries));
  TRY(length_check(s, &s->codes, 2, entries));
  CHECK(s->indices.type == TYPE_I32, ERR_INPUT,
        "'%s' of '%s' is not int32: save it as indices.astype(\"i4\")", s->indices.object, s->file);
  gidx d = s->codes.id ? s->codes.shape[1] : 1;
  CHECK(d >= 1 && d <= MAX_FRAME, ERR_INPUT,
        "'%s' of '%s' has blocks of %lld codes, 1 to %d are "
        "possible",
        s->codes.object, s->file, (long long)d, MAX_FRAME);
  f->source = (struct support_source){.n = shape[0],
                                      .entries = entries,
                                      .k = (idx)shape[1],
                                      .d = (idx)d,
                                      .has_codes = 1,
                                      .name = s->name,
                                      .self = s,
                                      .starts = starts_read,
                                      .read = entries_read};
  return OK;
}

int supports_encoder_read(const struct h5_file *f, const char **encoder)
{
  char name[32];
  int there;
  *encoder = NULL;
  TRY(h5_attribute_exists(f, "/", "encoder", &there));
  if (!there) return OK;
  TRY(h5_read_text(f, "/", "encoder", name, sizeof name));
  int kind = encoder_kind_find(name);
  CHECK(kind >= 0, ERR_INPUT, "'%s' has codes of an encoder '%s', which is not known", f->path,
        name);
  *encoder = encoder_names[kind];
  return OK;
}

/* Read the attributes that a file of ours has beside its arrays; a foreign one has none. */
static int facts_read(struct supports_input *f)
{
  const struct h5_file *h5 = &f->state->h5;
  gidx top_s, rounds, frame, codes;
  f->top_s = -1;
  f->rounds = 1;
  f->explained_variance = nan_canonical();
  int is_ours, has_fit, has_sweeps, normalized;
  TRY(h5_attribute_exists(h5, "/", "top_s", &is_ours));
  TRY(h5_attribute_exists(h5, "/metrics", "explained_variance", &has_fit));
  TRY(h5_attribute_exists(h5, "/", "sweeps", &has_sweeps));
  if (!is_ours) return OK;
  TRY(h5_read_long(h5, "/", "top_s", &top_s));
  TRY(h5_read_long(h5, "/", "rounds", &rounds));
  TRY(h5_read_long(h5, "/", "frame", &frame));
  TRY(h5_read_long(h5, "/", "codes", &codes));
  TRY(h5_read_real(h5, "/", "rho", &f->rho));
  if (codes && has_fit)
    TRY(h5_read_real(h5, "/metrics", "explained_variance", &f->explained_variance));
  TRY(nonnegative_read(h5, &f->nonnegative));
  TRY(supports_encoder_read(h5, &f->encoder));
  CHECK(!f->nonnegative || frame == 1, ERR_INPUT,
        "'%s' says that codes are nonnegative, and that atoms are frames of %lld", f->state->file,
        (long long)frame);
  if (has_sweeps) TRY(h5_read_long(h5, "/", "sweeps", &f->sweeps));
  TRY(identity_read(h5, INPUTS_GROUP, &f->inputs));
  TRY(identity_read(h5, CONTENTS_GROUP, &f->contents));
  TRY(h5_attribute_exists(h5, "/", "normalized", &normalized));
  if (normalized) f->inputs.dictionary = 0; /* not as it is read */
  CHECK(top_s >= 1 && top_s <= f->source.k && rounds >= 1 && rounds <= INT32_MAX && f->rho >= 0 &&
            isfinite(f->rho) && f->sweeps >= 0 && f->sweeps < INT32_MAX,
        ERR_INPUT, "'%s' says top_s %lld, rounds %lld, rho %g, sweeps %lld", f->state->file,
        (long long)top_s, (long long)rounds, f->rho, (long long)f->sweeps);
  CHECK(!codes || frame == f->source.d, ERR_INPUT, "'%s' says frames of %lld, its codes are of %d",
        f->state->file, (long long)frame, f->source.d);
  f->top_s = (idx)top_s;
  f->rounds = (idx)rounds;
  f->source.d = (idx)frame;
  f->source.has_codes = codes != 0;
  return OK;
}

/* A file that is no HDF5 has a mend that suits codes. */
static int file_check(const char *path)
{
  size_t length = strlen(path);
  int is_array =
      input_format_of(path) != INPUT_H5 || (length > 4 && strcmp(path + length - 4, ".npz") == 0);
  CHECK(!is_array || !input_is_there(path), ERR_INPUT,
        "'%s' is no HDF5 file, which codes are in: " CSR_MEND
        ", as s.load_npz(\"%s\") or numpy.load(\"%s\") does",
        path, path, path);
  return format_check(path);
}

int supports_part_open(struct supports_input *f, const char *name)
{
  gidx shape[2];
  *f = (struct supports_input){0};
  struct supports_input_state *s = f->state = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *s);
  TRY(input_split(name, &(struct input_standard){.object = "/supports", .file = "supports.h5"},
                  &s->file, &s->group));
  TRY(file_check(s->file));
  f->file = s->file;
  snprintf(s->name, sizeof s->name, "%s:%s", s->file, s->group);
  TRY(h5_open(&s->h5, s->file));
  TRY(arrays_open(s));
  TRY(h5_read_longs(&s->h5, s->group, "shape", 2, shape));
  TRY(shapes_check(f, shape));
  TRY(facts_read(f));
  int has_mean;
  TRY(h5_exists(&s->h5, "/mean", &has_mean));
  if (has_mean) TRY(mean_read(&s->h5, -1, &f->mean, &f->mean_length));
  return OK;
}

int supports_have_scores(const struct supports_input *f)
{
  return f->state->has_score;
}

const struct h5_file *supports_input_file(const struct supports_input *f)
{
  return &f->state->h5;
}

int supports_input_open(struct supports_input *f, const char *name)
{
  int is_part;
  TRY(supports_part_open(f, name));
  TRY(h5_exists(&f->state->h5, "/part", &is_part));
  CHECK(!is_part || !f->state->h5.version, ERR_INPUT,
        "'%s' is a part of an encoding: join all of them with `sagitta merge`", f->file);
  return OK;
}

void supports_input_close(struct supports_input *f)
{
  struct supports_input_state *s = f->state;
  free(f->mean);
  if (s) {
    struct h5_array *arrays[] = {&s->indptr, &s->indices, &s->data, &s->score, &s->codes};
    for (int i = 0; i < LENGTH(arrays); i++) h5_array_close(arrays[i]);
    h5_close(&s->h5);
    free(s->file);
  }
  free(s);
  *f = (struct supports_input){0};
}
