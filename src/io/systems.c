/* SPDX-License-Identifier: BSD-3-Clause
 * All shapes are read and checked when the file is opened.  Blocks of systems are read when they
 * are needed. */
#include "io/systems.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "io/check.h"
#include "io/verify.h"

enum { SLACK_BYTES = 8 << 20, PIECE = 1 << 14 };
/* MOST_PIECES: the most pieces of one array that threads read; MAX_PIECES: of all arrays;
 * LEAST_PIECE: about the fewest entries of a piece. */
enum { MOST_PIECES = 128, MAX_PIECES = SYSTEM_ARRAYS * (MOST_PIECES + 1), LEAST_PIECE = 1 << 15 };

static const struct object_row object_rows[] = {
    {"/systems/atom", TYPE_I32, "B", 1, "atom of each system"},
    {"/systems/color", TYPE_I32, "B", 1, "colour class of this atom"},
    {"/systems/atom_offsets", TYPE_I64, "B+1", 1, "where each system's rows begin"},
    {"/systems/row", TYPE_I64, "n", 0, "global row of each block, ascending"},
    {"/systems/row_dims", TYPE_I32, "B", 1, "d, size of the row blocks"},
    {"/systems/border_dims", TYPE_I32, "B", 1, "k, size of the border"},
    {"/systems/D_blocks", TYPE_F64, "ndd", 1, "row blocks H_i, without ridge"},
    {"/systems/B_blocks", TYPE_F64, "ndk", 1, "couplings B_i of rows and border"},
    {"/systems/g_t", TYPE_F64, "nd", 1, "gradient of the rows"},
    {"/systems/hbb", TYPE_F64, "kk", 1, "borders C, without ridge"},
    {"/systems/g_b", TYPE_F64, "k", 1, "gradient of the borders"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

static const char *const array_names[SYSTEM_ARRAYS] = {
    "/systems/D_blocks", "/systems/B_blocks", "/systems/g_t", "/systems/hbb", "/systems/g_b"};

/* [count + 1] the offset of each system in one of the arrays. */
static const gidx *sums_of(const struct systems_shape *s, int array)
{
  const gidx *const sums[SYSTEM_ARRAYS] = {s->h, s->b, s->g, s->c, s->border};
  return sums[array];
}

/* Open a vector of `count` entries; count -1: of any length. */
static int vector_open(const struct h5_file *f, const char *object, gidx count, struct h5_array *a)
{
  TRY(h5_array_open(f, object, a));
  CHECK(a->rank == 1, ERR_INPUT, "'%s' of '%s' has %d dimensions, not 1", object, f->path, a->rank);
  CHECK(count < 0 || a->shape[0] == count, ERR_INPUT,
        "'%s' of '%s' has %lld entries, not %lld" ANEW, object, f->path, (long long)a->shape[0],
        (long long)count);
  return OK;
}

static int vector_read(const struct h5_file *f, const char *object, enum h5_type type, gidx count,
                       void *out)
{
  struct h5_array a = {0};
  int status = vector_open(f, object, count, &a);
  if (status == OK) status = h5_array_read(&a, 0, count, type, out);
  h5_array_close(&a);
  return status;
}

static int order_compare(const void *x, const void *y)
{
  idx a = *(const idx *)x, b = *(const idx *)y;
  return (a > b) - (a < b);
}

/* Check that each atom occurs once. */
static int atoms_check(struct systems_input *f)
{
  idx *atom;
  gidx count = f->shape.count;
  TRY(arena_alloc(&f->arena, &atom, count, sizeof *atom));
  TRY(vector_read(&f->h5, "/systems/atom", TYPE_I32, count, atom));
  qsort(atom, (size_t)count, sizeof *atom, order_compare);
  CHECK(count == 0 || atom[0] >= 0, ERR_INPUT, "'/systems/atom' of '%s' lists atom %d" ANEW,
        f->h5.path, atom[0]);
  for (gidx a = 1; a < count; a++)
    CHECK(atom[a] != atom[a - 1], ERR_INPUT, "'/systems/atom' of '%s' lists atom %d twice" ANEW,
          f->h5.path, atom[a]);
  return OK;
}

/* Read the sizes of all systems. */
static int shape_read(struct systems_input *f)
{
  struct h5_array a = {0};
  struct systems_shape *s = &f->shape;
  int status = vector_open(&f->h5, "/systems/atom_offsets", -1, &a);
  gidx offsets = a.shape[0];
  h5_array_close(&a);
  TRY(status);
  CHECK(offsets >= 1, ERR_INPUT, "'/systems/atom_offsets' of '%s' is empty" ANEW, f->h5.path);
  TRY(systems_alloc(s, offsets - 1, &f->arena));
  TRY(vector_read(&f->h5, "/systems/atom_offsets", TYPE_I64, offsets, s->row));
  TRY(vector_read(&f->h5, "/systems/row_dims", TYPE_I32, s->count, s->d));
  TRY(vector_read(&f->h5, "/systems/border_dims", TYPE_I32, s->count, s->k));
  TRY(systems_measure(s, f->h5.path));
  TRY(atoms_check(f));
  return OK;
}

/* Open the arrays, and check that their lengths follow from the shapes. */
static int arrays_open(struct systems_input *f)
{
  const struct systems_shape *s = &f->shape;
  for (int i = 0; i < SYSTEM_ARRAYS; i++) {
    struct h5_array *a = &f->arrays[i];
    TRY(vector_open(&f->h5, array_names[i], -1, a));
    h5_array_stream(a);
    CHECK(a->type == TYPE_F64 || a->type == TYPE_F32, ERR_INPUT,
          "'%s' of '%s' holds values of %s: save it as float64, or as float32", array_names[i],
          f->h5.path, type_name(a->type));
    CHECK(a->shape[0] == sums_of(s, i)[s->count], ERR_INPUT,
          "'%s' of '%s' has %lld entries, the systems have %lld" ANEW, array_names[i], f->h5.path,
          (long long)a->shape[0], (long long)sums_of(s, i)[s->count]);
  }
  int has_rows;
  TRY(h5_exists(&f->h5, "/systems/row", &has_rows));
  if (!has_rows) return OK;
  struct h5_array rows = {0};
  int status = vector_open(&f->h5, "/systems/row", s->row[s->count], &rows);
  h5_array_close(&rows);
  return status;
}

/* The part of an array that a block of systems needs.  It is read in pieces that end where chunks
 * end. */
struct part {
  const struct h5_array *array;
  gidx first, end, unit; /* first, end: entries; unit: entries of a piece */
  real *out;
};
struct parts {
  struct part part[SYSTEM_ARRAYS];
  gidx until[SYSTEM_ARRAYS]; /* until[a]: number of pieces of arrays 0 .. a */
  int status[MAX_PIECES];
};

static int piece_read(const struct part *p, gidx piece)
{
  gidx at = p->first / p->unit + piece;
  gidx begin = imax(at * p->unit, p->first), end = imin((at + 1) * p->unit, p->end);
  return h5_array_read(p->array, begin, end - begin, TYPE_F64, p->out + (begin - p->first));
}

static int part_read(const struct parts *all, gidx i)
{
  int array = 0;
  while (i >= all->until[array]) array++;
  return piece_read(&all->part[array], i - (array ? all->until[array - 1] : 0));
}

static void part_run(void *self, gidx i)
{
  struct parts *all = self;
  all->status[i] = part_read(all, i);
  status_clear(); /* the error belongs to this thread */
}

/* Cut a block's range of an array into a limited number of pieces; returns their number. */
static gidx part_cut(struct part *p, gidx most)
{
  gidx chunk = imax(h5_array_unit(p->array), 1),
       chunks = ceil_div(p->end, chunk) - p->first / chunk;
  if (p->first == p->end) return 0;
  p->unit = chunk * imax(ceil_div(chunks, most), ceil_div(LEAST_PIECE, chunk));
  return ceil_div(p->end, p->unit) - p->first / p->unit;
}

/* Read a block, with the spare threads (base/team.h). */
static int block_read(void *self, const struct systems_block *to)
{
  struct systems_input *f = self;
  real *const out[SYSTEM_ARRAYS] = {to->h, to->b, to->g, to->c, to->g_b};
  struct parts all;
  gidx count = 0;
  int threads = team_spare();
  for (int i = 0; i < SYSTEM_ARRAYS; i++) {
    const gidx *sums = sums_of(&f->shape, i);
    struct part *p = &all.part[i];
    *p = (struct part){&f->arrays[i], sums[to->first], sums[to->first + to->count], 1, out[i]};
    count += part_cut(p, threads > 1 ? imin(2 * threads, MOST_PIECES) : 1);
    all.until[i] = count;
  }
  if (threads > 1) spare_run(count, part_run, &all);
  for (gidx i = 0; i < count; i++) /* read a failed piece again, so that this thread has the
                                    * error */
    if (threads == 1 || all.status[i]) TRY(part_read(&all, i));
  return OK;
}

static int systems_open(struct systems_input *f, const char *path)
{
  TRY(shape_read(f));
  TRY(arrays_open(f));
  TRY(identity_read(&f->h5, INPUTS_GROUP, &f->inputs));
  f->source = (struct system_source){&f->shape, path, f, block_read};
  return OK;
}

int systems_input_open(struct systems_input *f, const char *path)
{
  int is_part;
  *f = (struct systems_input){0};
  TRY(h5_open(&f->h5, path));
  TRY(systems_part_is(&f->h5, &systems_part_kind, &is_part));
  CHECK(!is_part, ERR_INPUT,
        "'%s' has some of the systems: `sagitta assemble --resume` makes the others", path);
  return systems_open(f, path);
}

int systems_part_open(struct systems_input *f, const char *path)
{
  *f = (struct systems_input){0};
  TRY(h5_open(&f->h5, path));
  TRY(systems_part_read(&f->h5, &systems_part_kind, &systems_kind, &f->part));
  TRY(file_verify(path, NULL));
  TRY(systems_open(f, path));
  gidx count = f->shape.count;
  TRY(arena_alloc(&f->arena, &f->atom, count, sizeof *f->atom));
  TRY(arena_alloc(&f->arena, &f->color, count, sizeof *f->color));
  TRY(vector_read(&f->h5, "/systems/atom", TYPE_I32, count, f->atom));
  return vector_read(&f->h5, "/systems/color", TYPE_I32, count, f->color);
}

/* Add to *sum the hash terms of some runs of entries, spread over the whole array. */
static int sample_terms(const struct h5_array *a, uint64_t *sum)
{
  enum { RUNS = 64, VALUES = 512 };
  real values[VALUES];
  gidx n = a->shape[0], runs = imin(RUNS, ceil_div(n, VALUES));
  for (gidx i = 0; i < runs; i++) {
    gidx first = i * (n / runs), count = imin(VALUES, n - first);
    TRY(h5_array_read(a, first, count, TYPE_F64, values));
    *sum += fingerprint(values, count, sizeof *values, first);
  }
  return OK;
}

int systems_input_mark(const struct systems_input *f, uint64_t *mark)
{
  const struct systems_shape *s = &f->shape;
  uint64_t sum = fingerprint(s->d, s->count, sizeof *s->d, 0) +
                 3 * fingerprint(s->k, s->count, sizeof *s->k, 0) +
                 5 * fingerprint(s->row, s->count + 1, sizeof *s->row, 0);
  for (int i = 0; i < SYSTEM_ARRAYS; i++) {
    char digits[128];
    uint64_t terms = 0;
    TRY(h5_digest_text(&f->h5, array_names[i], digits, sizeof digits));
    TRY(sample_terms(&f->arrays[i], &terms));
    sum += (uint64_t)(2 * i + 7) * (terms + hash64(digits, strlen(digits)));
  }
  *mark = content_hash(sum, s->count, 1, 1);
  return OK;
}

/* Allocate space for the largest piece that is copied. */
static int piece_alloc(const struct systems_shape *s, struct arena *arena, real **values,
                       gidx **rows)
{
  gidx reals = 0, most = 0;
  for (gidx first = 0, end; first < s->count; first = end) {
    end = systems_piece(s, first, s->count);
    reals = imax(reals, systems_reals(s, first, end));
    most = imax(most, s->row[end] - s->row[first]);
  }
  TRY(arena_alloc(arena, values, reals, sizeof **values));
  return arena_alloc(arena, rows, most, sizeof **rows);
}

static int pieces_copy(const struct systems_input *f, const struct h5_array *rows,
                       const struct system_sink *sink, struct arena *arena)
{
  const struct systems_shape *s = &f->shape;
  real *values;
  gidx *row;
  TRY(piece_alloc(s, arena, &values, &row));
  for (gidx first = 0, end; first < s->count; first = end) {
    end = systems_piece(s, first, s->count);
    struct systems_block block = systems_block_at(s, first, end, values);
    block.rows = row;
    TRY(f->source.read(f->source.self, &block));
    TRY(h5_array_read(rows, s->row[first], s->row[end] - s->row[first], TYPE_I64, row));
    TRY(sink->write(sink->self, &block));
  }
  return OK;
}

int systems_copy(const struct systems_input *f, const struct system_sink *sink)
{
  struct arena arena = {0};
  struct h5_array rows = {0};
  int status = vector_open(&f->h5, "/systems/row", f->shape.row[f->shape.count], &rows);
  if (!status) status = pieces_copy(f, &rows, sink, &arena);
  h5_array_close(&rows);
  arena_free(&arena);
  return status;
}

void systems_input_close(struct systems_input *f)
{
  for (int i = 0; i < SYSTEM_ARRAYS; i++) h5_array_close(&f->arrays[i]);
  h5_close(&f->h5);
  arena_free(&f->arena);
}

gidx systems_bytes(const struct systems_shape *s, int has_rows)
{
  double reals = (double)systems_reals(s, 0, s->count) + (has_rows ? (double)s->row[s->count] : 0);
  return (gidx)(8 * reals * (1 + 0x1p-10)) + 24 * s->count + SLACK_BYTES;
}

gidx systems_max_bytes(gidx n, gidx count, gidx d, gidx k)
{
  double reals = (double)n * (double)(d * d + d * k + d + 1) + (double)count * (double)(k * k + k);
  return (gidx)(8 * reals * (1 + 0x1p-10)) + 24 * count + SLACK_BYTES;
}

static int block_write(void *self, const struct systems_block *block)
{
  struct systems_output *r = self;
  const real *const values[SYSTEM_ARRAYS] = {block->h, block->b, block->g, block->c, block->g_b};
  for (int i = 0; i < SYSTEM_ARRAYS; i++) {
    const gidx *sums = sums_of(r->shape, i);
    gidx first = sums[block->first];
    TRY(h5_array_write(&r->arrays[i], first, sums[block->first + block->count] - first, values[i]));
  }
  const gidx *row = r->shape->row;
  if (r->has_rows)
    TRY(h5_array_write(&r->rows, row[block->first],
                       row[block->first + block->count] - row[block->first], block->rows));
  return OK;
}

int systems_output_create(struct systems_output *r, const char *path,
                          const struct systems_shape *shape, const idx *atom, const idx *color,
                          int has_rows)
{
  memset(r, 0, sizeof *r);
  r->shape = shape;
  r->atom = atom;
  r->color = color;
  r->has_rows = has_rows;
  r->sink = (struct system_sink){r, block_write};
  const struct h5_file *h5 = &r->result.h5;
  gidx count = shape->count;
  TRY(result_create(&r->result, path, &systems_kind, systems_bytes(shape, has_rows)));
  for (int i = 0; i < SYSTEM_ARRAYS; i++)
    TRY(object_create(h5, array_names[i], 1, &sums_of(shape, i)[count], 0, &r->arrays[i]));
  if (has_rows) TRY(object_create(h5, "/systems/row", 1, &shape->row[count], 0, &r->rows));
  return OK;
}

/* Write the vectors that have an entry for each system, for the first `count` systems. */
static int vectors_write(const struct systems_output *r, gidx count)
{
  const struct systems_shape *s = r->shape;
  const struct h5_file *h5 = &r->result.h5;
  TRY(object_write_vector(h5, "/systems/atom", count, r->atom));
  TRY(object_write_vector(h5, "/systems/color", count, r->color));
  TRY(object_write_vector(h5, "/systems/atom_offsets", count + 1, s->row));
  TRY(object_write_vector(h5, "/systems/row_dims", count, s->d));
  return object_write_vector(h5, "/systems/border_dims", count, s->k);
}

int systems_output_finish(struct systems_output *r, const struct identity *inputs,
                          const struct systems_part *part, const struct run_fact *facts,
                          int n_facts)
{
  const struct systems_shape *s = r->shape;
  gidx count = part ? part->systems : s->count;
  int is_stopped = part && !systems_part_is_whole(part);
  TRY(vectors_write(r, count));
  for (int i = 0; i < SYSTEM_ARRAYS; i++) {
    TRY(h5_array_truncate(&r->arrays[i]));
    CHECK(r->arrays[i].next == sums_of(s, i)[count], ERR_INTERNAL, "'%s' of '%s' lacks systems",
          array_names[i], r->result.h5.path);
    TRY(h5_array_close(&r->arrays[i]));
  }
  if (r->has_rows && is_stopped) TRY(h5_array_truncate(&r->rows));
  if (r->has_rows) TRY(h5_array_close(&r->rows));
  if (part) TRY(systems_part_write(&r->result.h5, &systems_part_kind, part));
  TRY(identity_write(&r->result.h5, INPUTS_GROUP, inputs));
  TRY(result_publish(&r->result, facts, n_facts));
  return OK;
}

/* Check that all values of an array are finite. */
static int finite_check(const struct h5_array *a)
{
  static real values[PIECE];
  for (gidx first = 0; first < a->shape[0]; first += PIECE) {
    gidx n = imin(PIECE, a->shape[0] - first);
    TRY(h5_array_read(a, first, n, TYPE_F64, values));
    for (gidx i = 0; i < n; i++)
      CHECK(isfinite(values[i]), ERR_INPUT, "entry %lld of '%s' of '%s' is %g" ANEW,
            (long long)(first + i), a->object, a->path, values[i]);
  }
  return OK;
}

/* Check that global rows ascend inside each system. */
static int rows_check(const struct verify *v, const struct systems_shape *s)
{
  static gidx row[PIECE];
  struct h5_array a = {0};
  gidx last = -1, system = 0, total = s->row[s->count];
  int status = h5_array_open(v->file, "/systems/row", &a);
  for (gidx at = 0; at < total && status == OK; at++) {
    if (at % PIECE == 0) status = h5_array_read(&a, at, imin(PIECE, total - at), TYPE_I64, row);
    for (; at >= s->row[system + 1]; system++) last = -1;
    if (at == s->row[system]) last = -1;
    gidx now = row[at % PIECE];
    if (status == OK && now <= last)
      status =
          status_fail(ERR_INPUT, __FILE__, __LINE__,
                      "'/systems/row' of '%s' does not rise in system %lld: %lld after %lld" ANEW,
                      v->file->path, (long long)system, (long long)now, (long long)last);
    last = now;
  }
  h5_array_close(&a);
  return status;
}

static int file_check(struct verify *v)
{
  static struct systems_input f;
  int there, has_rows;
  TRY(h5_exists(v->file, "/systems/atom_offsets", &there));
  TRY(h5_exists(v->file, "/systems/row", &has_rows));
  if (!there) return OK;
  f = (struct systems_input){0};
  int status = h5_open(&f.h5, v->file->path);
  if (status == OK) status = systems_open(&f, v->file->path);
  for (int i = 0; i < SYSTEM_ARRAYS && status == OK; i++) status = finite_check(&f.arrays[i]);
  if (status == OK && has_rows) status = rows_check(v, &f.shape);
  if (status == OK)
    check_note(v, "systems   %lld of %lld rows, sizes agree, all values are finite",
               (long long)f.shape.count, (long long)f.shape.row[f.shape.count]);
  systems_input_close(&f);
  return status;
}

const struct file_kind systems_kind = {"systems", {&objects}, file_check, NULL, NULL, NULL};

static int part_check(struct verify *v)
{
  return systems_part_check(v, &systems_part_kind);
}

static int part_show(const struct h5_file *f, FILE *out)
{
  return systems_part_show(f, &systems_part_kind, out);
}

const struct file_kind systems_part_kind = {"systems_part", {&objects}, part_check,
                                            part_show,      NULL,       NULL};
