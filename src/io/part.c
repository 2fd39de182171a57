/* SPDX-License-Identifier: BSD-3-Clause
 * The numbers of a part are attributes, most of which a table lists.  Its shift, its sums and the
 * counts of its norms are datasets. */
#include "io/part.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/block_tree.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "io/inputs.h"
#include "base/sums.h"
#include "io/attributes.h"
#include "io/check.h"
#include "io/dictionary.h"
#include "io/mean.h"
#include "io/metrics.h"
#include "io/run_option.h"
#include "io/verify.h"

enum { BLOCK_ENTRIES = 1 << 18 };

static const struct object_row object_rows[] = {
    {"/part/shift", TYPE_F64, "P", 0, "subtracted from columns in the sums"},
    {"/part/sums", TYPE_F64, "nodes W", 0, "sums over runs of rows, for the whole's metrics"},
    {"/part/norms", TYPE_I64, "bins 3", 0, "rows by their squared norms: bin, rows, sum"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

/* The numbers of struct encode_part.  All have 64 bits. */
static const struct {
  const char *name;
  size_t offset;
} number_rows[] = {
    {"first_row", offsetof(struct encode_part, first)},
    {"rows", offsetof(struct encode_part, n)},
    {"rows_total", offsetof(struct encode_part, total)},
    {"rows_terms", offsetof(struct encode_part, rows_terms)},
    {"rows_sample", offsetof(struct encode_part, rows_sample)},
    {"fingerprint", offsetof(struct encode_part, fingerprint)},
    {"nonzero", offsetof(struct encode_part, nonzero)},
    {"codes", offsetof(struct encode_part, codes.all)},
    {"codes_negative", offsetof(struct encode_part, codes.negative)},
    {"codes_zero", offsetof(struct encode_part, codes.zero)},
};

static int norms_write(const struct h5_file *f, const struct norms *norms)
{
  gidx shape[] = {norms_used(norms), 3};
  gidx *packed = malloc((size_t)shape[0] * 3 * sizeof *packed);
  CHECK(packed, ERR_MEMORY, "cannot allocate %lld bins", (long long)shape[0]);
  norms_pack(norms, packed);
  int status = object_write(f, "/part/norms", LENGTH(shape), shape, packed);
  free(packed);
  return status;
}

static const char files_mark[] = "rows_files";

int part_is_mark(const char *attribute)
{
  return strcmp(attribute, files_mark) == 0;
}

int part_write(const struct h5_file *f, const struct encode_part *part)
{
  const struct part_sums *sums = &part->sums;
  gidx shape[] = {sums->nodes, part_width(part->p)};
  for (int i = 0; i < LENGTH(number_rows); i++) {
    gidx number;
    memcpy(&number, (const char *)part + number_rows[i].offset, sizeof number);
    TRY(h5_attribute_long(f, "/part", number_rows[i].name, number));
  }
  if (part->rows_files) TRY(h5_attribute_long(f, "/part", files_mark, (gidx)part->rows_files));
  TRY(h5_attribute_long(f, "/part", "columns", part->p));
  TRY(h5_attribute_long(f, "/part", "cosine_limit", part->max_cosine));
  if (!part->shift) return OK;
  TRY(object_write_vector(f, "/part/shift", part->p, part->shift));
  TRY(object_write(f, "/part/sums", LENGTH(shape), shape, sums->values));
  return part->norms ? norms_write(f, part->norms) : OK;
}

static int numbers_read(const struct h5_file *f, struct encode_part *part)
{
  gidx number, columns, limit;
  for (int i = 0; i < LENGTH(number_rows); i++) {
    TRY(h5_read_long(f, "/part", number_rows[i].name, &number));
    memcpy((char *)part + number_rows[i].offset, &number, sizeof number);
  }
  int has_mark;
  TRY(h5_attribute_exists(f, "/part", files_mark, &has_mark));
  if (has_mark) TRY(h5_read_long(f, "/part", files_mark, &number));
  part->rows_files = has_mark ? (uint64_t)number : 0;
  TRY(h5_read_long(f, "/part", "columns", &columns));
  TRY(h5_read_long(f, "/part", "cosine_limit", &limit));
  gidx first = part->first, end = first + part->n, total = part->total;
  int is_cut = first >= 0 && part->n >= 1 && part->n <= total - first && first % ROW_BLOCK == 0 &&
               (end % ROW_BLOCK == 0 || end == total);
  CHECK(is_cut && total < INT64_C(1) << 48, ERR_INPUT,
        "'%s' says that it has %lld rows from row %lld of %lld" ANEW, f->path, (long long)part->n,
        (long long)first, (long long)total);
  CHECK(columns >= 1 && columns < 1 << 30 && limit >= 0 && limit <= 1 << 30, ERR_INPUT,
        "'%s' says that it has %lld columns, and a cosine limit of %lld" ANEW, f->path,
        (long long)columns, (long long)limit);
  part->p = (idx)columns;
  part->max_cosine = (idx)limit;
  part->sums.first = first / ROW_BLOCK;
  part->sums.count = ceil_div(part->n, ROW_BLOCK);
  part->sums.p = part->p;
  part->sums.nodes = block_nodes_count(part->sums.first, part->sums.count);
  return OK;
}

/* *out <- all values of a dataset of reals, from the arena: [n][p], or if n is 0, [p]. */
static int reals_read(const struct h5_file *f, const char *object, gidx n, gidx p,
                      struct arena *arena, real **out)
{
  struct h5_array a = {0};
  int status = h5_array_open(f, object, &a);
  int fits = !status && a.rank == (n ? 2 : 1) && a.type == TYPE_F64 &&
             (n ? a.shape[0] == n && a.shape[1] == p : a.shape[0] == p);
  if (!status && !fits)
    status = status_fail(ERR_INPUT, __FILE__, __LINE__, "'%s' of '%s' has another shape" ANEW,
                         object, f->path);
  if (!status) status = arena_alloc(arena, out, (n ? n : 1) * p, sizeof **out);
  if (!status) status = h5_array_read(&a, 0, n ? n : p, TYPE_F64, *out);
  h5_array_close(&a);
  return status;
}

/* Read the norms of the rows of a part, if it has them. */
static int norms_read(const struct h5_file *f, struct encode_part *part, struct arena *arena)
{
  struct h5_array a = {0};
  struct norms *norms;
  gidx *packed = NULL;
  int there, fits = 0;
  TRY(h5_exists(f, "/part/norms", &there));
  if (!there) return OK;
  TRY(arena_alloc(arena, &norms, 1, sizeof *norms));
  int status = h5_array_open(f, "/part/norms", &a);
  if (!status) fits = a.rank == 2 && a.type == TYPE_I64 && a.shape[1] == 3 && a.shape[0] > 0;
  if (fits) status = arena_alloc(arena, &packed, 3 * a.shape[0], sizeof *packed);
  if (fits && !status) status = h5_array_read(&a, 0, a.shape[0], TYPE_I64, packed);
  if (fits && !status) fits = norms_unpack(norms, packed, a.shape[0]);
  h5_array_close(&a);
  TRY(status);
  CHECK(fits && norms_massive(norms).all == part->n, ERR_INPUT,
        "'/part/norms' of '%s' is not of %lld rows" ANEW, f->path, (long long)part->n);
  part->norms = norms;
  return OK;
}

static int sums_read(const struct h5_file *f, struct encode_part *part, struct arena *arena)
{
  real *shift;
  TRY(reals_read(f, "/part/shift", 0, part->p, arena, &shift));
  part->shift = shift;
  TRY(norms_read(f, part, arena));
  return reals_read(f, "/part/sums", part->sums.nodes, part_width(part->p), arena,
                    &part->sums.values);
}

/* Check that the sums and counts give the metrics of the part. */
static int sums_check(struct verify *v, const struct encode_part *part)
{
  struct metrics m = {0};
  real said;
  TRY(part_metrics(&m, part));
  for (int i = 0; i < metric_count; i++) {
    const struct metric_row *row = &metric_rows[i];
    if (!row->needs_codes || row->is_integer) continue;
    TRY(h5_read_real(v->file, "/metrics", row->name, &said));
    CHECK(memcmp(&said, (const char *)&m + row->offset, sizeof said) == 0, ERR_INPUT,
          "metric '%s' is %.17g, which '/part' does not give" ANEW, row->name, said);
  }
  return OK;
}

static int part_check(struct verify *v)
{
  struct arena arena = {0};
  struct encode_part part = {0};
  gidx codes;
  if (strcmp(v->kind, part_kind.name) != 0) return OK;
  TRY(numbers_read(v->file, &part));
  CHECK(part.n == dimension_value(&v->dims, "N"), ERR_INPUT,
        "'/part' says that there are %lld rows, there are %lld" ANEW, (long long)part.n,
        (long long)dimension_value(&v->dims, "N"));
  TRY(h5_read_long(v->file, "/", "codes", &codes));
  int status = codes ? sums_read(v->file, &part, &arena) : OK;
  if (!status && codes) status = sums_check(v, &part);
  arena_free(&arena);
  TRY(status);
  check_note(v, "part      rows %lld to %lld of %lld: sums give the metrics", (long long)part.first,
             (long long)(part.first + part.n - 1), (long long)part.total);
  return OK;
}

static int part_show(const struct h5_file *f, FILE *out)
{
  struct encode_part part = {0};
  int is_part, is_range;
  if (!f->version) return OK;
  TRY(h5_attribute_is(f, "/", "kind", part_kind.name, &is_part));
  if (!is_part) return OK;
  TRY(numbers_read(f, &part));
  TRY(run_is_of_range(f, &is_range));
  fprintf(out, "\na part: rows %lld to %lld of %lld; %s\n", (long long)part.first,
          (long long)(part.first + part.n - 1), (long long)part.total,
          is_range
              ? "`sagitta merge` joins all parts"
              : "its job was stopped, and the same command with --resume makes the other rows");
  return OK;
}

const struct file_kind part_kind = {
    "part",     {&objects, &supports_objects, &metrics_objects, &mean_objects},
    part_check, part_show,
    NULL,       NULL};

const char *part_name(const char *output, gidx first)
{
  static char name[4096];
  size_t length = strlen(output);
  int is_file = length > 3 && strcmp(output + length - 3, ".h5") == 0;
  if (is_file || length >= sizeof name - 64) return output;
  snprintf(name, sizeof name, "%s/part-%015lld.h5", output, (long long)first);
  return name;
}

static int density_read(struct part_input *p, const struct h5_file *f)
{
  struct h5_array a;
  gidx k = p->shape.k;
  TRY(arena_alloc(&p->arena, &p->density, k, sizeof *p->density));
  int status = h5_array_open(f, "/metrics/density", &a);
  if (!status) status = h5_array_read(&a, 0, k, TYPE_I64, p->density);
  h5_array_close(&a);
  return status;
}

/* Read the objects that only parts have. */
static int own_read(struct part_input *p, const struct h5_file *f)
{
  const struct supports_input *s = &p->supports;
  TRY(numbers_read(f, &p->part));
  if (s->source.has_codes) TRY(sums_read(f, &p->part, &p->arena));
  CHECK(!s->mean || s->mean_length == p->part.p, ERR_INPUT,
        "'/mean' of '%s' has %lld columns, its rows have %d" ANEW, f->path,
        (long long)s->mean_length, p->part.p);
  return OK;
}

/* Check the hash of the attributes, because the numbers among them are read at once.  Datasets are
 * checked when they are read.  A file of format version 1 has no hashes, and is verified whole. */
static int numbers_verify(const struct h5_file *f, const char *path)
{
  return f->version < H5_SEALED_FROM ? file_verify(path, NULL) : attributes_check(f);
}

static int part_open(struct part_input *p, const char *path, int may_be_whole, int is_taken)
{
  *p = (struct part_input){0};
  struct supports_input *s = &p->supports;
  TRY(supports_part_open(s, path));
  const struct h5_file *f = supports_input_file(s);
  int is_part, is_whole;
  TRY(h5_attribute_is(f, "/", "kind", part_kind.name, &is_part));
  TRY(h5_attribute_is(f, "/", "kind", supports_kind.name, &is_whole));
  p->is_whole = may_be_whole && is_whole && s->sweeps == 0;
  CHECK(f->version && (is_part || p->is_whole), ERR_INPUT,
        "'%s' is no part: `sagitta encode --row-range` and `route --row-range` make them", path);
  TRY(is_taken ? numbers_verify(f, path) : file_verify(path, NULL));
  if (p->is_whole)
    p->part.n = p->part.total = s->source.n;
  else
    TRY(own_read(p, f));
  p->shape = (struct supports_shape){.n = p->part.n,
                                     .k = s->source.k,
                                     .s = s->top_s,
                                     .d = s->source.d,
                                     .p = p->part.p,
                                     .has_codes = s->source.has_codes,
                                     .nonnegative = s->nonnegative,
                                     .encoder = s->encoder,
                                     .solved = s->solved};
  TRY(h5_attribute_exists(f, "/", "normalized", &p->normalized));
  TRY(h5_read_real(f, "/metrics", "max_decoder_cosine", &p->max_decoder_cosine));
  TRY(identity_read(f, INPUTS_GROUP, &s->inputs)); /* here with the hash of a scaled dictionary,
                                                    * which supports_part_open() sets to 0 */
  return p->is_whole ? OK : density_read(p, f);
}

int part_input_open(struct part_input *p, const char *path)
{
  return part_open(p, path, 0, 0);
}

int part_input_open_unread(struct part_input *p, const char *path)
{
  return part_open(p, path, 0, 1);
}

int part_or_whole_open(struct part_input *p, const char *path)
{
  return part_open(p, path, 1, 0);
}

void part_input_close(struct part_input *p)
{
  supports_input_close(&p->supports);
  arena_free(&p->arena);
  *p = (struct part_input){0};
}

/* Copy rows of different lengths, in blocks of rows; supports_block() limits the entries of a
 * block. */
static int ragged_copy(const struct part_input *p, const struct support_sink *sink, gidx first)
{
  const struct support_source *source = &p->supports.source;
  struct supports rows = {0};
  int status = OK;
  for (gidx row = 0, n, begin; row < p->shape.n && !status; row += n) {
    TRY(supports_block(source, row, p->shape.n - row, &n, &begin));
    status = supports_load(&rows, source, row, n, 1);
    struct support_block block = {.first = first + row,
                                  .n = (idx)n,
                                  .s = p->shape.s,
                                  .d = p->shape.d,
                                  .atoms = rows.view.atoms,
                                  .score = rows.score,
                                  .codes = rows.codes,
                                  .start = rows.view.start};
    if (!status) status = sink->write(sink->self, &block);
    supports_free(&rows);
  }
  return status;
}

/* Copy whole sum blocks (ROW_BLOCK rows, N.0), as io/supports_ranks.h needs them. */
static int blocks_copy(const struct part_input *p, const struct support_sink *sink, gidx first,
                       struct arena *arena)
{
  const struct supports_shape *shape = &p->shape;
  const struct support_source *source = &p->supports.source;
  gidx most = round_up(imax(1, BLOCK_ENTRIES / shape->s), ROW_BLOCK), entries = most * shape->s;
  idx *atoms;
  float *score, *codes = NULL;
  TRY(arena_alloc(arena, &atoms, entries, sizeof *atoms));
  TRY(arena_alloc(arena, &score, entries, sizeof *score));
  if (shape->has_codes) TRY(arena_alloc(arena, &codes, entries * shape->d, sizeof *codes));
  for (gidx row = 0; row < shape->n; row += most) {
    gidx n = imin(most, shape->n - row);
    TRY(source->read(source->self, row * shape->s, n * shape->s, atoms, score, codes));
    struct support_block block = {.first = first + row,
                                  .n = (idx)n,
                                  .s = shape->s,
                                  .d = shape->d,
                                  .atoms = atoms,
                                  .score = score,
                                  .codes = codes};
    TRY(sink->write(sink->self, &block));
  }
  return OK;
}

int part_copy(const struct part_input *p, const struct support_sink *sink, gidx first)
{
  struct arena arena = {0};
  if (p->shape.encoder) return ragged_copy(p, sink, first);
  int status = blocks_copy(p, sink, first, &arena);
  arena_free(&arena);
  return status;
}

/* A part that is copied to a sink. */
struct part_taking {
  const struct part_input *part;
  const struct support_sink *sink;
  gidx first;  /* the row of the sink that the part's first row becomes */
  gidx *start; /* row offsets of a block, from 0 on; owned */
  gidx capacity;
};

static int rows_take(void *self, const struct verify_rows *rows)
{
  struct part_taking *t = self;
  const struct supports_shape *shape = &t->part->shape;
  struct support_block block = {.first = t->first + rows->first,
                                .n = (idx)rows->n,
                                .s = shape->s,
                                .d = shape->d,
                                .atoms = rows->atoms,
                                .score = rows->score};
  if (shape->has_codes) block.codes = shape->d > 1 ? rows->blocks : rows->data;
  if (shape->encoder) {
    TRY(array_reserve(&t->start, &t->capacity, rows->n + 1, sizeof *t->start));
    for (gidx i = 0; i <= rows->n; i++) t->start[i] = rows->start[i] - rows->start[0];
    block.start = t->start;
  }
  return t->sink->write(t->sink->self, &block);
}

int part_copy_once(struct part_input *p, const struct support_sink *sink, gidx first)
{
  struct part_taking t = {.part = p, .sink = sink, .first = first};
  int status = file_verify_taking(supports_input_file(&p->supports),
                                  &(struct verify_taker){.self = &t, .take = rows_take});
  free(t.start);
  return status;
}

static int left_check(const struct h5_file *f, const char *kind, gidx whole, int *is_left)
{
  gidx rows = 0;
  TRY(h5_attribute_is(f, "/", "kind", kind, is_left));
  if (*is_left && whole) TRY(h5_read_long(f, "/part", "rows", &rows));
  *is_left = *is_left && (!whole || rows < whole);
  return OK;
}

int part_is_left(const char *path, const char *kind, gidx whole)
{
  struct h5_file f = {0};
  int is = 0, status = input_is_there(path) ? h5_open(&f, path) : ERR_IO;
  if (!status) status = left_check(&f, kind, whole, &is);
  h5_close(&f);
  status_clear();
  return !status && is;
}
