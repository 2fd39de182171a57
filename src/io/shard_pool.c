/* SPDX-License-Identifier: BSD-3-Clause
 * A pool keeps a limited number of files open.  If all places are taken, one of the files without a
 * reader is closed: the one that was used longest ago. */
#include "io/shard_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"

/* What one rank does in a survey, in which each rank opens some of the files. */
struct surveyor {
  struct survey *s;
  struct comm *c;
  idx *counts, *sizes; /* [size] of each rank: number of arrays, and bytes of texts */
  char *own;           /* texts of this rank */
  gidx used, capacity; /* of `own`: bytes in use, bytes allocated */
  struct arena arena;
};

static int texts_add(struct surveyor *v, const char *text, int64_t *bytes)
{
  gidx n = text ? (gidx)strlen(text) + 1 : 1;
  if (v->used + n > v->capacity) {
    v->capacity = 2 * v->capacity + n + 4096;
    char *own = realloc(v->own, (size_t)v->capacity);
    CHECK(own, ERR_MEMORY, "cannot allocate %lld bytes of names", (long long)v->capacity);
    v->own = own;
  }
  memcpy(v->own + v->used, text ? text : "", (size_t)n);
  v->used += n;
  *bytes = n;
  return OK;
}

static int facts_fill(struct surveyor *v, const struct input_array *a, struct pool_facts *f)
{
  *f = (struct pool_facts){.format = a->format,
                           .type = a->type,
                           .rank = a->rank,
                           .shape = {a->shape[0], a->shape[1], a->shape[2]},
                           .unit = a->unit,
                           .data = a->data,
                           .inode = (int64_t)a->facts.inode,
                           .fraction = a->facts.modified.tv_nsec,
                           .is_virtual = a->sources.count > 0,
                           .surveyor = v->c->rank};
  TRY(texts_add(v, a->file, &f->file));
  TRY(texts_add(v, a->object, &f->object));
  return input_file_mark(input_array_file(a), &f->mark);
}

static int array_survey(struct surveyor *v, int i, survey_open *open, void *self)
{
  struct input_array *input = NULL;
  int status = open(self, i, &input);
  if (!status) status = facts_fill(v, input, &v->s->facts[i]);
  if (!status && !v->s->facts[i].is_virtual) status = input_array_pause(input);
  input_array_close(&input);
  return status;
}

static int survey_alloc(struct surveyor *v)
{
  gidx size = v->c->size;
  v->s->facts = calloc((size_t)v->s->n + 1, sizeof *v->s->facts);
  CHECK(v->s->facts, ERR_MEMORY, "cannot allocate the facts of %d files", v->s->n);
  TRY(arena_alloc(&v->arena, &v->counts, size, sizeof *v->counts));
  return arena_alloc(&v->arena, &v->sizes, size, sizeof *v->sizes);
}

/* All ranks get the facts of all files, then the texts. */
static int facts_exchange(struct surveyor *v)
{
  struct survey *s = v->s;
  gidx first, n, all = 0;
  comm_partition(s->n, v->c->size, v->c->rank, &first, &n);
  TRY(comm_allgather(v->c, s->facts + first, v->counts, sizeof *s->facts, s->facts));
  for (int r = 0; r < v->c->size; r++) {
    gidx bytes = 0;
    comm_partition(s->n, v->c->size, r, &first, &n);
    for (gidx i = first; i < first + n; i++) bytes += s->facts[i].file + s->facts[i].object;
    all += bytes;
    TRY(comm_count(bytes, &v->sizes[r]));
  }
  s->texts = malloc((size_t)all + 1);
  int status = OK;
  if (!s->texts)
    status = status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate %lld bytes of names",
                         (long long)all);
  TRY(comm_agree(v->c, status));
  return comm_allgather(v->c, v->own, v->sizes, 1, s->texts);
}

static int survey_run(struct surveyor *v, survey_open *open, void *self)
{
  gidx first, n;
  TRY(comm_agree(v->c, survey_alloc(v)));
  for (int r = 0; r < v->c->size; r++) {
    comm_partition(v->s->n, v->c->size, r, &first, &n);
    v->counts[r] = (idx)n;
  }
  comm_partition(v->s->n, v->c->size, v->c->rank, &first, &n);
  for (gidx i = first; i < first + n && !comm_failure(v->c); i++)
    comm_record_at(v->c, array_survey(v, (int)i, open, self), i);
  TRY(comm_agree(v->c, OK));
  return facts_exchange(v);
}

int survey_make(struct survey *s, struct comm *c, int n, int status, survey_open *open, void *self)
{
  struct surveyor v = {.s = s, .c = c};
  *s = (struct survey){.n = n};
  TRY(comm_agree(c, status));
  status = survey_run(&v, open, self);
  free(v.own);
  arena_free(&v.arena);
  return status;
}

void survey_free(struct survey *s)
{
  free(s->facts);
  free(s->texts);
  *s = (struct survey){0};
}

/* Make the array that these facts describe.  Its file is not open. */
static int array_make(struct pool_array *a, const struct pool_facts *f, const char *file)
{
  const char *object = f->object > 1 ? file + f->file : NULL;
  size_t bytes = (size_t)(f->file + f->object) + 1;
  struct input_array *in = a->input = calloc(1, sizeof *in);
  CHECK(in, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *in);
  in->file = malloc(bytes);
  in->name = malloc(bytes);
  CHECK(in->file && in->name, ERR_MEMORY, "cannot allocate %zu bytes", bytes);
  memcpy(in->file, file, (size_t)(f->file + f->object));
  in->object = object ? in->file + f->file : NULL;
  strcpy(in->name, file);
  if (object && f->format != INPUT_NPY) {
    strcat(in->name, ":");
    strcat(in->name, object);
  }
  in->format = (enum input_format)f->format;
  in->type = (enum h5_type)f->type;
  in->rank = (int)f->rank;
  for (int i = 0; i < 3; i++) in->shape[i] = f->shape[i];
  in->unit = f->unit;
  in->data = f->data;
  in->facts.inode = (ino_t)f->inode;
  in->facts.size = (off_t)f->mark.size;
  in->facts.modified = (struct timespec){(time_t)f->mark.seconds, (long)f->fraction};
  a->mark = f->mark;
  a->inode = f->inode;
  a->fraction = f->fraction;
  a->surveyor = (int)f->surveyor;
  return OK;
}

int pool_open(struct shard_pool *pool, const struct survey *s, const struct comm *c,
              const char *standard)
{
  *pool = (struct shard_pool){.rank = c->rank, .standard = standard};
  pthread_mutex_init(&pool->lock, NULL);
  pool->arrays = calloc((size_t)s->n + 1, sizeof *pool->arrays);
  CHECK(pool->arrays, ERR_MEMORY, "cannot allocate %d arrays", s->n);
  const char *text = s->texts;
  for (int i = 0; i < s->n; i++) {
    const struct pool_facts *f = &s->facts[i];
    if (!f->is_virtual) TRY(array_make(&pool->arrays[pool->count++], f, text));
    text += f->file + f->object;
  }
  return OK;
}

int pool_close(struct shard_pool *pool)
{
  int status = OK;
  for (int i = 0; i < pool->count; i++) {
    struct input_array *in = pool->arrays[i].input;
    int is_open = in && input_array_file(in), closed = is_open ? input_array_pause(in) : OK;
    if (!status) status = closed;
    input_array_close(&pool->arrays[i].input);
  }
  if (pool->arrays) pthread_mutex_destroy(&pool->lock);
  free(pool->arrays);
  *pool = (struct shard_pool){0};
  return status;
}

/* Close the file that was read longest ago, among those without a reader. */
static int oldest_pause(struct shard_pool *pool)
{
  struct pool_array *oldest = NULL;
  for (int i = 0; i < pool->count; i++) {
    struct pool_array *a = &pool->arrays[i];
    if (a->users || !input_array_file(a->input)) continue;
    if (!oldest || a->used < oldest->used) oldest = a;
  }
  if (!oldest) return OK;
  pool->n_open--;
  return input_array_pause(oldest->input);
}

/* Check that the file is the one that the surveying rank saw.  A file with the same inode must also
 * have been modified at the same fraction of a second; a copy on another machine need not. */
static int mark_check(const struct shard_pool *pool, const struct pool_array *a)
{
  const struct input_array *in = a->input;
  struct input_mark mark;
  char text[256];
  TRY(input_file_mark(input_array_file(in), &mark));
  int differs = input_mark_differs(&a->mark, &mark, text, sizeof text);
  CHECK(!differs || a->surveyor == pool->rank, ERR_INPUT,
        "rank %d sees another '%s' than rank %d: %s", pool->rank, in->file, a->surveyor, text);
  CHECK(!differs, ERR_IO, "'%s' changed since it was opened first: %s", in->file, text);
  CHECK((int64_t)in->facts.inode != a->inode || in->facts.modified.tv_nsec == a->fraction, ERR_IO,
        "'%s' changed since it was opened first", in->file);
  return OK;
}

static int array_resume(struct shard_pool *pool, struct pool_array *a)
{
  if (pool->n_open >= POOL_OPEN) TRY(oldest_pause(pool));
  TRY(input_array_resume(a->input, pool->standard, a->is_known));
  pool->n_open++;
  if (!a->is_known) TRY(mark_check(pool, a));
  a->is_known = 1;
  input_file_compared(input_array_file(a->input));
  return OK;
}

static int array_enter(struct shard_pool *pool, struct pool_array *a)
{
  pthread_mutex_lock(&pool->lock);
  int status = input_array_file(a->input) ? OK : array_resume(pool, a);
  a->users += !status;
  a->used = ++pool->clock;
  pthread_mutex_unlock(&pool->lock);
  return status;
}

static void array_leave(struct shard_pool *pool, struct pool_array *a)
{
  pthread_mutex_lock(&pool->lock);
  a->users--;
  pthread_mutex_unlock(&pool->lock);
}

int pool_read(struct shard_pool *pool, int i, gidx first, gidx count, float *out)
{
  struct pool_array *a = &pool->arrays[i];
  TRY(array_enter(pool, a));
  int status = input_array_read(a->input, first, count, out);
  array_leave(pool, a);
  return status;
}
