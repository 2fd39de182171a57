/* SPDX-License-Identifier: BSD-3-Clause
 * Shards are read through inputs.c, and rows are written through matrix.c.  A check looks for
 * values that are not finite. */
#include "io/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_facts.h"
#include "base/fingerprint.h"
#include "base/num.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "io/check.h"
#include "io/place.h"
#include "io/shards_order.h"

static const struct object_row object_rows[] = {
    {"/rows", TYPE_F32, "N P", 1, "activations, a row per token or sample"},
    {"/lse", TYPE_F32, "N H", 0, "attention: logarithm of the sum of weights, of each head"},
    {"/planted/atoms", TYPE_I32, "N s", 0, "planted data: the atoms behind each row"},
    {"/planted/codes", TYPE_F32, "N s|N s d", 0, "planted data: codes of these atoms"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

/* The shard that has a row. */
static const struct rows_shard *shard_find(const struct rows_input *f, gidx row)
{
  int low = 0, high = f->count; /* shards 0 .. low - 1 do not begin after the row */
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (f->shards[middle].first <= row)
      low = middle + 1;
    else
      high = middle;
  }
  return &f->shards[low - 1];
}

static int rows_read(void *self, gidx first, idx count, float *out)
{
  struct rows_input *f = self;
  for (gidx end = first + count; first < end;) {
    const struct rows_shard *s = shard_find(f, first);
    gidx n = imin(end, s->first + s->count) - first;
    CHECK(n > 0, ERR_INTERNAL, "row %lld of %lld is read", (long long)first,
          (long long)f->source.n);
    gidx from = s->from + first - s->first;
    TRY(s->pooled ? pool_read(&f->pool, s->pooled - 1, from, n, out)
                  : input_array_read(s->input, from, n, out));
    first += n;
    out += n * f->source.p;
  }
  return OK;
}

static const char *row_offsets(void *self, gidx *row)
{
  const struct rows_shard *s = shard_find(self, *row);
  *row += s->from - s->first;
  return s->input->name;
}

/* Add rows of an input as a shard, which then owns the input. */
static int shard_add(struct rows_input *f, struct input_array *input, gidx from, gidx count)
{
  if (f->count == f->capacity) {
    f->capacity = 2 * f->capacity + 4;
    struct rows_shard *shards = realloc(f->shards, (size_t)f->capacity * sizeof *shards);
    if (!shards) input_array_close(&input);
    CHECK(shards, ERR_MEMORY, "cannot allocate %d shards", f->capacity);
    f->shards = shards;
  }
  f->shards[f->count++] = (struct rows_shard){input, from, f->source.n, count, 0};
  f->source.n += count;
  f->source.row_bytes += (double)count * (double)input->shape[1] * input_array_value_bytes(input);
  return OK;
}

static int shape_check(struct rows_input *f, const struct input_array *s)
{
  CHECK(s->rank == 2, ERR_INPUT,
        "'%s' has %d dimensions, rows have 2: samples, columns; save it as x.reshape(-1, COLUMNS)",
        s->name, s->rank);
  CHECK(s->shape[1] >= 1 && s->shape[1] <= INT32_MAX, ERR_INPUT,
        "'%s' has %lld columns: rows have 1 to 2147483647", s->name, (long long)s->shape[1]);
  if (!f->count) f->source.p = (idx)s->shape[1];
  CHECK(s->shape[1] == f->source.p, ERR_INPUT,
        "'%s' has %lld columns, '%s' has %d: all shards have the same", s->name,
        (long long)s->shape[1], f->shards[0].input->name, f->source.p);
  return OK;
}

/* Open an input and check its shape.  The caller must close *input, also after a failure. */
static int input_open(struct rows_input *f, const char *name, int follows,
                      struct input_array **input)
{
  TRY(input_array_open(input, name, &(struct input_standard){"/rows", "rows.h5", follows}));
  h5_array_stream(&(*input)->array);
  return shape_check(f, *input);
}

/* path[MAX_NAME] <- the file of a source of a virtual dataset.  It must be below the folder of the
 * dataset's own file. */
static int source_path(const struct input_array *all, const struct h5_source *source, char *path)
{
  char folder[4096];
  int is_own = strcmp(source->file, ".") == 0, is_whole = source->file[0] == '/';
  path_folder(all->file, folder);
  int used = snprintf(path, MAX_NAME, "%s%s%s", is_own || is_whole ? "" : folder,
                      is_own || is_whole ? "" : "/", is_own ? all->file : source->file);
  CHECK(used < MAX_NAME, ERR_INPUT, "the name '%s' is too long: give a shorter one", source->file);
  int step = watchdog_begin(ERR_IO, "looking at", path);
  char *found = realpath(path, NULL);
  int error = errno;
  char *below = found ? realpath(folder, NULL) : NULL;
  if (found && !below) error = errno;
  watchdog_end(step);
  size_t depth = below ? strlen(below) : 0;
  if (depth == 1) depth = 0; /* the folder is the root */
  int is_below = found && below && strncmp(found, below, depth) == 0 && found[depth] == '/';
  int there = found && below;
  free(found);
  free(below);
  CHECK(there, error == ENOMEM ? ERR_MEMORY : ERR_IO,
        "cannot open '%s', a source of the virtual '%s': %s", path, all->name, strerror(error));
  CHECK(is_below, ERR_INPUT,
        "'%s', a source of the virtual '%s', is not in the folder of that file or below, and not "
        "followed: name the files themselves in a list, as --rows @LIST",
        path, all->name);
  return OK;
}

static int source_add(struct rows_input *f, const struct input_array *all,
                      const struct h5_source *source)
{
  char path[MAX_NAME], name[2 * MAX_NAME];
  struct input_array *input;
  TRY(source_path(all, source, path));
  int used = snprintf(name, sizeof name, "%s:%s%s", path, source->object[0] == '/' ? "" : "/",
                      source->object);
  CHECK(used < LENGTH(name), ERR_INPUT, "the name '%s' is too long: give a shorter one",
        source->object);
  int status = input_open(f, name, 0, &input);
  if (!status && input->type != all->type)
    status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                         "'%s' is %s, the virtual '%s' made of it is %s: make the virtual dataset "
                         "of the same type",
                         input->name, type_name(input->type), all->name, type_name(all->type));
  gidx left = input ? input->shape[0] - source->from : 0;
  if (!status && (source->is_whole ? source->count != left : source->count > left))
    status = status_fail(
        ERR_INPUT, __FILE__, __LINE__, "'%s' has %lld rows, the virtual '%s' wants %s%lld of it",
        input->name, (long long)input->shape[0], all->name,
        source->is_whole ? "all " : "those up to ", (long long)(source->from + source->count));
  if (status) input_array_close(&input);
  return status ? status : shard_add(f, input, source->from, source->count);
}

static int name_open(struct rows_input *f, const char *name)
{
  struct input_array *input;
  int status = input_open(f, name, 1, &input);
  if (status) {
    input_array_close(&input);
    return status;
  }
  const struct h5_sources *sources = &input->sources;
  TRY(shard_add(f, input, 0, sources->count ? 0 : input->shape[0]));
  for (gidx i = 0; i < sources->count; i++) TRY(source_add(f, input, &sources->list[i]));
  return OK;
}

/* Report that shard i cannot be opened, and which pattern or list names it. */
static int shard_fail(const struct rows_input *f, int i, int status)
{
  char reason[2048], line[32] = "";
  const struct shard_name *n = &f->names.list[i];
  if (f->names.count == 1 && !n->origin) return status;
  status_take(reason, sizeof reason);
  if (n->line) snprintf(line, sizeof line, "line %d of ", n->line);
  return status_fail(status, __FILE__, __LINE__, "%s (shard %d of %d%s%s%s%s%s)", reason, i + 1,
                     f->names.count, n->origin ? ", by " : "", line, n->origin ? "'" : "",
                     n->origin ? n->origin : "", n->origin ? "'" : "");
}

/* Compare two shards by the place where their rows are stored. */
static int offset_order(const void *a, const void *b)
{
  const struct rows_shard *x = *(const struct rows_shard *const *)a;
  const struct rows_shard *y = *(const struct rows_shard *const *)b;
  int order = input_array_order(x->input, y->input);
  return order ? order : x->from < y->from ? -1 : x->from > y->from;
}

/* list[] <- all shards of a and b that have rows (b may be NULL), by the place of their rows.
 * Returns their number. */
static int offsets_sort(const struct rows_input *a, const struct rows_input *b,
                        const struct rows_shard **list)
{
  int count = 0;
  for (int i = 0; i < a->count; i++)
    if (a->shards[i].count) list[count++] = &a->shards[i];
  for (int i = 0; b && i < b->count; i++)
    if (b->shards[i].count) list[count++] = &b->shards[i];
  qsort(list, (size_t)count, sizeof *list, offset_order);
  return count;
}

/* *twice <- a shard that shares rows with another one; NULL: none. */
static int overlap_find(const struct rows_input *a, const struct rows_input *b,
                        const struct rows_shard **twice)
{
  size_t most = (size_t)a->count + (size_t)(b ? b->count : 0) + 1;
  const struct rows_shard **list = malloc(most * sizeof *list);
  *twice = NULL;
  CHECK(list, ERR_MEMORY, "cannot allocate %zu shards", most);
  int count = offsets_sort(a, b, list);
  for (int i = 1; i < count && !*twice; i++)
    if (input_array_order(list[i - 1]->input, list[i]->input) == 0 &&
        list[i - 1]->from + list[i - 1]->count > list[i]->from)
      *twice = list[i];
  free(list);
  return OK;
}

int rows_inputs_disjoint(const struct rows_input *a, const char *option_a,
                         const struct rows_input *b, const char *option_b)
{
  const struct rows_shard *twice;
  TRY(overlap_find(a, b, &twice));
  CHECK(!twice, ERR_USAGE, "'%s' and '%s' are both '%s': rows that are fitted are not unseen",
        option_a, option_b, twice->input->name);
  return OK;
}

static int name_survey(void *self, int i, struct input_array **input)
{
  struct rows_input alone = {0}; /* numbers of columns are compared later, when all are known */
  const struct rows_input *f = self;
  int status = input_open(&alone, f->names.list[i].name, 1, input);
  return status ? shard_fail(f, i, status) : OK;
}

/* Add the inputs that the ranks have surveyed.  Each rank opens virtual datasets itself. */
static int surveyed_add(struct rows_input *f, const struct survey *s)
{
  int pooled = 0;
  for (int i = 0; i < s->n; i++) {
    struct input_array *input = s->facts[i].is_virtual ? NULL : f->pool.arrays[pooled].input;
    int status = input ? shape_check(f, input) : name_open(f, f->names.list[i].name);
    if (status) return shard_fail(f, i, status);
    if (!input) continue;
    if (shard_add(f, input, 0, input->shape[0])) f->pool.arrays[pooled].input = NULL;
    TRY(f->pool.arrays[pooled].input ? OK : ERR_MEMORY);
    f->shards[f->count - 1].pooled = ++pooled;
  }
  return OK;
}

static int pooled_open(struct rows_input *f, struct comm *c)
{
  struct survey s;
  int status = survey_make(&s, c, f->names.count, OK, name_survey, f);
  if (!status) status = pool_open(&f->pool, &s, c, "/rows");
  if (!status) status = surveyed_add(f, &s);
  survey_free(&s);
  return status;
}

/* Check that all ranks have the same number of names. */
static int names_agree(const struct rows_input *f, struct comm *c, int status)
{
  gidx n = f->names.count;
  TRY(comm_agree(c, status));
  TRY(comm_broadcast(c, &n, 1, sizeof n));
  if (n != f->names.count)
    status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                         "rank %d sees other inputs than rank 0: %d inputs, not %lld", c->rank,
                         f->names.count, (long long)n);
  return comm_agree(c, status);
}

static int names_open(struct rows_input *f)
{
  for (int i = 0; i < f->names.count; i++) {
    int status = name_open(f, f->names.list[i].name);
    if (status) return shard_fail(f, i, status);
  }
  return OK;
}

/* Set the name of the whole source, and the list of its files. */
static int names_fill(struct rows_input *f)
{
  const char *first = f->shards[0].input->name;
  f->files = malloc(((size_t)f->count + (size_t)f->names.n_files) * sizeof *f->files);
  f->name = malloc(strlen(first) + 32);
  CHECK(f->files && f->name, ERR_MEMORY, "cannot allocate the names of %d shards", f->count);
  int more = f->count - 1 - (f->shards[0].input->sources.count > 0);
  sprintf(f->name, more ? "%s and %d more" : "%s", first, more);
  for (int i = 0; i < f->count; i++) f->files[f->n_files++] = f->shards[i].input->file;
  for (int i = 0; i < f->names.n_files; i++) f->files[f->n_files++] = f->names.files[i].path;
  return OK;
}

int rows_input_open(struct rows_input *f, struct comm *c, const char *text)
{
  const struct rows_shard *twice;
  *f = (struct rows_input){0};
  int status = shards_open(&f->names, text);
  if (c) status = names_agree(f, c, status);
  TRY(status);
  TRY(c && f->names.count > POOL_OPEN ? pooled_open(f, c) : names_open(f));
  TRY(overlap_find(f, NULL, &twice));
  CHECK(!twice, ERR_INPUT, "rows of '%s' are there twice: name each shard once",
        twice->input->name);
  TRY(names_fill(f));
  shards_order_warn(&f->names);
  struct row_source *s = &f->source;
  s->row_bytes /= s->n ? (double)s->n : 1;
  s->name = f->name;
  s->self = f;
  s->read = rows_read;
  s->is_shared = 1;
  s->unit = f->count ? f->shards[0].input->unit : 0;
  for (int i = 1; i < f->count; i++)
    if (f->shards[i].input->unit != s->unit) s->unit = 0;
  s->place = f->count > 1 ? row_offsets : NULL;
  return OK;
}

/* A hash of size, time and position in the list of each file.  With has_inodes 0 the inode numbers
 * are left out. */
static uint64_t files_mark(const struct rows_input *f, int has_inodes)
{
  uint64_t mark = 1;
  for (int i = 0; i < f->n_files; i++) {
    int is_pooled = i < f->count && f->shards[i].pooled;
    struct file_facts facts = {0};
    if (is_pooled) facts = f->shards[i].input->facts;
    if (!is_pooled && file_facts_of(f->files[i], &facts)) {
      status_clear();
      return 0;
    }
    const gidx numbers[] = {facts.size, facts.modified.tv_sec, facts.modified.tv_nsec,
                            (gidx)facts.inode};
    gidx count = LENGTH(numbers) - !has_inodes;
    mark += fingerprint(numbers, count, sizeof *numbers, i * count);
  }
  return mark;
}

uint64_t rows_input_mark(const struct rows_input *f)
{
  return files_mark(f, 0);
}

uint64_t rows_input_facts(const struct rows_input *f)
{
  return f->n_files ? files_mark(f, 1) : 0;
}

void rows_input_close(struct rows_input *f)
{
  for (int i = 0; i < f->count; i++)
    if (!f->shards[i].pooled) input_array_close(&f->shards[i].input);
  if (pool_close(&f->pool)) status_clear();
  shards_close(&f->names);
  free(f->shards);
  free(f->files);
  free(f->name);
  *f = (struct rows_input){0};
}

int rows_output_create(struct matrix_output *f, const char *path, gidx n, idx p)
{
  gidx shape[2] = {n, p};
  TRY(matrix_output_create(f, path, &rows_kind, "/rows", 2, shape));
  return OK;
}

static int block_check(const struct verify *v, const struct value_block *b)
{
  (void)v;
  TRY(rows_check(b->values, b->count, (idx)b->width, b->first, b->array->object));
  return OK;
}

static int file_check(struct verify *v)
{
  int there;
  TRY(h5_exists(v->file, "/rows", &there));
  if (!there) return OK;
  TRY(check_blocks(v, "/rows", block_check));
  check_note(v, "rows      all values are finite");
  return OK;
}

const struct file_kind rows_kind = {"rows", {&objects}, file_check, NULL, NULL, NULL};
