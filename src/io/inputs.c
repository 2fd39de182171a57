/* SPDX-License-Identifier: BSD-3-Clause
 * One state for both file formats; rows and dictionaries differ in the shapes they accept. */
#include "io/inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "io/h5.h"
#include "io/h5_walk.h"
#include "io/npy.h"

struct input_state {
  char *name, *file; /* FILE:/PATH for messages; FILE; owned */
  const char *object;
  int is_npy;
  struct npy_file npy;
  struct h5_file h5;
  struct h5_array array;
  enum h5_type type;
  int rank;
  gidx shape[3];
};

static int ends_in(const char *text, const char *end)
{
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

int input_split(const char *name, const char *standard, char **file, const char **object)
{
  *file = malloc(strlen(name) + 1);
  CHECK(*file, ERR_MEMORY, "cannot allocate %zu bytes", strlen(name) + 1);
  strcpy(*file, name);
  char *split = NULL;
  for (char *at = strstr(*file, ":/"); at; at = strstr(at + 1, ":/")) split = at;
  if (access(name, F_OK) == 0) split = NULL;
  if (split) *split = '\0';
  *object = split ? split + 1 : standard;
  return OK;
}

static int name_split(struct input_state *s, const char *name, const char *object)
{
  size_t room = strlen(name) + strlen(object) + 2;
  TRY(input_split(name, object, &s->file, &s->object));
  s->name = malloc(room);
  CHECK(s->name, ERR_MEMORY, "cannot allocate %zu bytes", room);
  s->is_npy = ends_in(s->file, ".npy");
  CHECK(!(s->object != object && s->is_npy), ERR_INPUT,
        "'%s' is a NumPy file, which holds one array: leave '%s' off", s->file,
        name + strlen(s->file));
  snprintf(s->name, room, "%s%s%s", s->file, s->is_npy ? "" : ":", s->is_npy ? "" : s->object);
  return OK;
}

/* "; it has '/a' (100 x 5 float32), ..." for the message about a missing dataset. */
static void matrices_list(const struct h5_file *f, char *out, int room)
{
  struct h5_listing list = {0};
  int used = 0;
  out[0] = '\0';
  if (h5_list(f, &list) != OK) status_clear();
  for (gidx i = 0; i < list.count && used < room - 1; i++) {
    struct h5_values v;
    char type[64], shape[64];
    if (list.entries[i].kind != KIND_DATASET) continue;
    int status = h5_values_open(f, list.entries[i].path, NULL, &v);
    if (status == OK && v.rank == 2) {
      h5_values_type(&v, type, sizeof type);
      h5_values_shape(&v, shape, sizeof shape);
      used += snprintf(out + used, (size_t)(room - used), "%s'%s' (%s %s)", used ? ", " : "",
                       list.entries[i].path, shape, type);
    }
    h5_values_close(&v);
    if (status != OK) status_clear();
  }
  h5_listing_free(&list);
}

static int h5_input_open(struct input_state *s)
{
  TRY(h5_open(&s->h5, s->file));
  if (!h5_exists(&s->h5, s->object)) {
    char found[1024];
    matrices_list(&s->h5, found, sizeof found);
    FAIL(ERR_INPUT, "no dataset '%s' in '%s'; %s%s: name one as %s:/PATH", s->object, s->file,
         found[0] ? "its 2-D datasets are " : "it has no 2-D dataset", found, s->file);
  }
  TRY(h5_array_open(&s->h5, s->object, &s->array));
  s->type = s->array.type;
  s->rank = s->array.rank;
  memcpy(s->shape, s->array.shape, sizeof s->shape);
  int is_float =
      s->type == TYPE_F32 || s->type == TYPE_F64 || s->type == TYPE_F16 || s->type == TYPE_BF16;
  CHECK(is_float, ERR_INPUT,
        "'%s' is not float16, bfloat16, float32 or float64 (bfloat16 as uint16 wants the attribute "
        "dtype = \"bfloat16\")",
        s->name);
  return OK;
}

static int input_open(struct input_state **state, const char *name, const char *object)
{
  struct input_state *s = *state = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *s);
  TRY(name_split(s, name, object));
  if (!s->is_npy) {
    TRY(h5_input_open(s));
    return OK;
  }
  TRY(npy_open(&s->npy, s->file));
  s->type = s->npy.type;
  s->rank = s->npy.rank;
  memcpy(s->shape, s->npy.shape, sizeof s->shape);
  return OK;
}

static void input_close(struct input_state **state)
{
  struct input_state *s = *state;
  *state = NULL;
  if (!s) return;
  h5_array_close(&s->array);
  h5_close(&s->h5);
  npy_close(&s->npy);
  free(s->name);
  free(s->file);
  free(s);
}

static int input_read(const struct input_state *s, gidx first, gidx count, float *out)
{
  if (s->is_npy)
    TRY(npy_read(&s->npy, first, count, out));
  else
    TRY(h5_array_read(&s->array, first, count, TYPE_F32, out));
  return OK;
}

static double type_bytes(enum h5_type type)
{
  return type == TYPE_F32 ? 4 : type == TYPE_F64 ? 8 : 2;
}

static int rows_read(void *self, gidx first, idx count, float *out)
{
  TRY(input_read(self, first, count, out));
  return OK;
}

int rows_open(struct rows_file *f, const char *name)
{
  *f = (struct rows_file){0};
  TRY(input_open(&f->state, name, "/rows"));
  struct input_state *s = f->state;
  CHECK(s->rank == 2, ERR_INPUT, "'%s' has %d dimensions, rows have 2: samples, columns", s->name,
        s->rank);
  CHECK(s->shape[1] >= 1 && s->shape[1] <= INT32_MAX, ERR_INPUT, "'%s' has %lld columns", s->name,
        (long long)s->shape[1]);
  f->source = (struct row_source){.n = s->shape[0],
                                  .p = (idx)s->shape[1],
                                  .name = s->name,
                                  .row_bytes = (double)s->shape[1] * type_bytes(s->type),
                                  .self = s,
                                  .read = rows_read};
  return OK;
}

void rows_close(struct rows_file *f)
{
  input_close(&f->state);
  *f = (struct rows_file){0};
}

static int atoms_read(void *self, idx first, idx count, float *out)
{
  TRY(input_read(self, first, count, out));
  return OK;
}

static int mean_read(struct dictionary_file *f, const struct input_state *s)
{
  struct h5_array a;
  gidx p = f->source.p;
  TRY(h5_array_open(&s->h5, "/mean", &a));
  f->mean = malloc((size_t)p * sizeof *f->mean);
  int fits = a.rank == 1 && a.shape[0] == p && (a.type == TYPE_F64 || a.type == TYPE_F32);
  int status = fits && f->mean ? h5_array_read(&a, 0, p, TYPE_F64, f->mean) : OK;
  h5_array_close(&a);
  CHECK(f->mean, ERR_MEMORY, "cannot allocate %lld bytes", (long long)p * 8);
  CHECK(fits, ERR_INPUT, "'/mean' of '%s' is not a vector of %lld float64", s->file, (long long)p);
  TRY(status);
  for (gidx c = 0; c < p; c++)
    CHECK(isfinite(f->mean[c]), ERR_INPUT, "column %lld of '/mean' of '%s' is %g", (long long)c,
          s->file, f->mean[c]);
  return OK;
}

int dictionary_open(struct dictionary_file *f, const char *name)
{
  *f = (struct dictionary_file){0};
  TRY(input_open(&f->state, name, "/atoms"));
  struct input_state *s = f->state;
  CHECK(
      s->rank == 2 || s->rank == 3, ERR_INPUT,
      "'%s' has %d dimensions, a dictionary has 2 (atoms, columns) or 3 (atoms, vectors, columns)",
      s->name, s->rank);
  gidx d = s->rank == 3 ? s->shape[1] : 1, p = s->shape[s->rank - 1];
  CHECK(s->shape[0] >= 1 && s->shape[0] <= INT32_MAX, ERR_INPUT, "'%s' has %lld atoms", s->name,
        (long long)s->shape[0]);
  CHECK(d >= 1 && d <= FRAME_MOST, ERR_INPUT,
        "'%s' has frames of %lld vectors, 1 to %d are possible", s->name, (long long)d, FRAME_MOST);
  CHECK(p >= 1 && p <= INT32_MAX, ERR_INPUT, "'%s' has %lld columns", s->name, (long long)p);
  f->source = (struct atom_source){.k = (idx)s->shape[0],
                                   .d = (idx)d,
                                   .p = (idx)p,
                                   .name = s->name,
                                   .self = s,
                                   .read = atoms_read};
  if (!s->is_npy && h5_exists(&s->h5, "/mean")) TRY(mean_read(f, s));
  return OK;
}

void dictionary_close(struct dictionary_file *f)
{
  free(f->mean);
  input_close(&f->state);
  *f = (struct dictionary_file){0};
}
