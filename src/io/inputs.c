/* SPDX-License-Identifier: BSD-3-Clause
 * A name FILE:PATH is split into file and path of the dataset.  One struct serves all file
 * formats. */
#include "io/inputs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/retry.h"
#include "base/status.h"
#include "base/watchdog.h"
#include "io/format.h"
#include "io/h5/listing.h"
#include "io/h5/values.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "io/schema.h"

int input_is_there(const char *path)
{
  int step = watchdog_begin(ERR_IO, "looking at", path), found = access(path, F_OK) == 0;
  watchdog_end(step);
  return found;
}

/* Returns the colon between FILE and PATH: the last one that follows the name of an existing file.
 * If there is none, the last colon in front of a slash.  NULL: the name has no PATH. */
static char *split_find(char *name)
{
  char *split = NULL;
  if (input_is_there(name)) return NULL;
  for (size_t at = strlen(name); at-- > 1;) {
    if (name[at] != ':' || !name[at + 1]) continue;
    name[at] = '\0';
    int has_file = input_is_there(name);
    name[at] = ':';
    if (has_file) return name + at;
  }
  for (char *at = strstr(name, ":/"); at; at = strstr(at + 1, ":/")) split = at;
  return split;
}

int input_split(const char *name, const struct input_standard *standard, char **file,
                const char **object)
{
  char path[MAX_NAME], copy[MAX_NAME];
  CHECK(strlen(name) < sizeof copy, ERR_INPUT, "the name '%s' is too long: give a shorter one",
        name);
  strcpy(copy, name);
  char *split = split_find(copy);
  if (split) *split++ = '\0';
  TRY(input_of_folder(copy, standard->file, path));
  size_t length = strlen(path), more = split ? strlen(split) : 0;
  *file = malloc(length + more + 3);
  CHECK(*file, ERR_MEMORY, "cannot allocate %zu bytes", length + more + 3);
  strcpy(*file, path);
  *object = split ? *file + length + 1 : standard->object;
  if (split) sprintf(*file + length + 1, "%s%s", *split == '/' ? "" : "/", split);
  return OK;
}

enum input_format input_format_of(const char *file)
{
  const char *ending = format_ending(file);
  if (strcmp(ending, ".npy") == 0) return INPUT_NPY;
  return strcmp(ending, ".safetensors") == 0 ? INPUT_SAFETENSORS : INPUT_H5;
}

/* Set file, object, format and name of *s. */
static int name_split(struct input_array *s, const char *name,
                      const struct input_standard *standard)
{
  TRY(input_split(name, standard, &s->file, &s->object));
  size_t capacity = strlen(s->file) + strlen(s->object) + 2;
  s->name = malloc(capacity);
  CHECK(s->name, ERR_MEMORY, "cannot allocate %zu bytes", capacity);
  s->format = input_format_of(s->file);
  int is_standard = s->object == standard->object, is_npy = s->format == INPUT_NPY;
  CHECK(is_standard || !is_npy, ERR_INPUT,
        "'%s' is a NumPy file, which holds one array: leave '%s' off", s->file, s->object);
  if (s->format == INPUT_SAFETENSORS) s->object = is_standard ? NULL : s->object + 1;
  snprintf(s->name, capacity, "%s%s%s", s->file, is_npy || !s->object ? "" : ":",
           is_npy || !s->object ? "" : s->object);
  return OK;
}

/* out <- the matrices of a file, such as "'/a' (100 x 5 float32), ...".  The message about a
 * missing dataset lists them. */
static void matrices_list(const struct h5_file *f, char *out, int capacity)
{
  struct h5_listing list = {0};
  int used = 0;
  out[0] = '\0';
  if (h5_list(f, &list) != OK) status_clear();
  for (gidx i = 0; i < list.count && used < capacity - 1; i++) {
    struct h5_values v;
    char type[64], shape[64];
    if (list.entries[i].kind != ENTRY_DATASET || h5_is_leaves(f, list.entries[i].path)) continue;
    int status = h5_values_open(f, list.entries[i].path, NULL, &v);
    if (status == OK && v.rank == 2) {
      h5_values_type(&v, type, sizeof type);
      h5_values_shape(&v, shape, sizeof shape);
      used += snprintf(out + used, (size_t)(capacity - used), "%s'%s' (%s %s)", used ? ", " : "",
                       list.entries[i].path, shape, type);
    }
    h5_values_close(&v);
    if (status != OK) status_clear();
  }
  h5_listing_free(&list);
}

static int array_open(struct input_array *s, const struct input_standard *standard)
{
  if (standard->follows) TRY(h5_sources_read(&s->h5, s->object, &s->sources));
  if (s->sources.count) {
    s->type = s->sources.type;
    s->rank = LENGTH(s->sources.shape);
    memcpy(s->shape, s->sources.shape, sizeof s->sources.shape);
    return OK;
  }
  TRY(h5_array_open(&s->h5, s->object, &s->array));
  s->type = s->array.type;
  s->rank = s->array.rank;
  memcpy(s->shape, s->array.shape, sizeof s->shape);
  return OK;
}

/* Fail if the file is a capture and rows are wanted: it has none, but they can be computed from
 * it. */
static int no_capture(const struct input_array *s, const struct input_standard *standard)
{
  int has_q, has_k, has_pool, wants_rows = s->object == standard->object;
  if (!wants_rows || strcmp(standard->object, "/rows") != 0) return OK;
  TRY(h5_exists(&s->h5, "/q", &has_q));
  TRY(h5_exists(&s->h5, "/k", &has_k));
  TRY(h5_exists(&s->h5, "/kv/k", &has_pool));
  CHECK(!has_q || !(has_k || has_pool), ERR_INPUT,
        "no dataset '%s' in '%s', which is a capture: give the rows that `sagitta harvest "
        "--capture %s` computes (in the place of '--rows', `encode` and `fit` take it as "
        "'--capture')",
        s->object, s->file, s->file);
  return OK;
}

/* text[capacity] <- the stored type, in the words of `sagitta inspect`. */
static void type_text(const struct input_array *s, char *text, int capacity)
{
  struct h5_values v;
  int status = h5_values_open(&s->h5, s->object, NULL, &v);
  if (status)
    snprintf(text, (size_t)capacity, "%s", type_name(s->type));
  else
    h5_values_type(&v, text, capacity);
  h5_values_close(&v);
  if (status) status_clear();
}

static int h5_input_open(struct input_array *s, const struct input_standard *standard)
{
  TRY(h5_open(&s->h5, s->file));
  int there;
  TRY(h5_exists(&s->h5, s->object, &there));
  if (!there) {
    char found[1024];
    TRY(no_capture(s, standard));
    matrices_list(&s->h5, found, sizeof found);
    CHECK(found[0], ERR_INPUT,
          "no dataset '%s' in '%s', nor any dataset of two dimensions: give the file that has "
          "it%s%s",
          s->object, s->file, *standard->file ? ", such as " : "", standard->file);
    FAIL(ERR_INPUT, "no dataset '%s' in '%s'; its 2-D datasets are %s: name one as %s:/PATH",
         s->object, s->file, found, s->file);
  }
  TRY(array_open(s, standard));
  int is_float =
      s->type == TYPE_F32 || s->type == TYPE_F64 || s->type == TYPE_F16 || s->type == TYPE_BF16;
  if (is_float) return OK;
  char type[64];
  type_text(s, type, sizeof type);
  FAIL(ERR_INPUT,
       "'%s' holds values of type %s: save it as float16, bfloat16, float32 or float64 (bfloat16 "
       "as uint16 wants the attribute dtype = \"bfloat16\")",
       s->name, type);
}

static int flat_input_open(struct input_array *s, const char *standard)
{
  if (s->format == INPUT_NPY) return npy_open(&s->flat, s->file);
  return safetensors_open(&s->flat, s->file, s->object, standard);
}

struct input_file *input_array_file(const struct input_array *s)
{
  return s->format == INPUT_H5 ? s->h5.input : s->flat.input;
}

int input_array_open(struct input_array **input, const char *name,
                     const struct input_standard *standard)
{
  struct input_array *s = *input = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *s);
  TRY(name_split(s, name, standard));
  if (s->format == INPUT_H5) {
    TRY(h5_input_open(s, standard));
    if (!s->sources.count) s->unit = h5_array_unit(&s->array);
  } else {
    TRY(flat_input_open(s, standard->object + 1));
    s->type = s->flat.type;
    s->rank = s->flat.rank;
    memcpy(s->shape, s->flat.shape, sizeof s->shape);
    s->data = s->flat.data;
  }
  s->facts = input_array_file(s)->facts;
  return OK;
}

int input_array_pause(struct input_array *s)
{
  return s->format == INPUT_H5 ? h5_close_beside(&s->h5, &s->array) : flat_close(&s->flat);
}

/* After the array was opened again: is it still the same?  is_known: s->facts are those of the
 * first time. */
static int same_check(struct input_array *s, int is_known)
{
  struct input_file *file = input_array_file(s);
  if (is_known) TRY(file_facts_check(file->descriptor, s->file, &s->facts));
  s->facts = file->facts;
  int is_h5 = s->format == INPUT_H5;
  const gidx *shape = is_h5 ? s->array.shape : s->flat.shape;
  enum h5_type type = is_h5 ? s->array.type : s->flat.type;
  int rank = is_h5 ? s->array.rank : s->flat.rank;
  CHECK(type == s->type && rank == s->rank && shape[0] == s->shape[0] && shape[1] == s->shape[1] &&
            (is_h5 || s->flat.data == s->data),
        ERR_INPUT, "'%s' has another type or shape than when it was opened first", s->name);
  return OK;
}

/* After the array could not be opened again: if the file has changed, the error says that
 * instead. */
static int changed_check(const struct input_array *s, int status)
{
  char reason[2048];
  status_take(reason, sizeof reason);
  int file = retry_open(s->file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  int changed = file < 0 ? OK : file_facts_check(file, s->file, &s->facts);
  if (file >= 0) close(file);
  return changed ? changed : status_set(status, reason);
}

int input_array_resume(struct input_array *s, const char *standard, int is_known)
{
  int status = s->format == INPUT_H5 ? h5_open_beside(&s->h5, s->file, s->object, &s->array)
                                     : flat_input_open(s, standard + 1);
  if (!status) h5_array_stream(&s->array);
  if (!status)
    status = same_check(s, is_known);
  else if (is_known)
    status = changed_check(s, status);
  if (status) (void)input_array_pause(s);
  return status;
}

void input_array_close(struct input_array **input)
{
  struct input_array *s = *input;
  *input = NULL;
  if (!s) return;
  h5_array_close(&s->array);
  h5_sources_free(&s->sources);
  h5_close(&s->h5);
  flat_close(&s->flat);
  free(s->name);
  free(s->file);
  free(s);
}

int input_array_read(const struct input_array *s, gidx first, gidx count, float *out)
{
  if (s->format == INPUT_H5)
    TRY(h5_array_read(&s->array, first, count, TYPE_F32, out));
  else
    TRY(flat_read(&s->flat, first, count, out));
  return OK;
}

static int numbers_order(gidx a, gidx b)
{
  return a < b ? -1 : a > b;
}

int input_array_order(const struct input_array *a, const struct input_array *b)
{
  const struct file_facts *x = &a->facts, *y = &b->facts;
  int order = numbers_order((gidx)x->inode, (gidx)y->inode);
  if (!order) order = numbers_order(x->size, y->size);
  if (!order) order = numbers_order(x->modified.tv_sec, y->modified.tv_sec);
  if (!order) order = numbers_order(x->modified.tv_nsec, y->modified.tv_nsec);
  if (order) return order;
  if (a->format == INPUT_H5) return strcmp(a->object, b->object);
  return numbers_order(a->data, b->data);
}

int input_array_value_bytes(const struct input_array *s)
{
  return s->type == TYPE_F32 ? 4 : s->type == TYPE_F64 ? 8 : 2;
}
