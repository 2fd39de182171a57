/* SPDX-License-Identifier: BSD-3-Clause
 * A strict reader of the header.  It is JSON of fixed depth: an object of tensors, each of which is
 * an object of three known keys, and an object of texts, __metadata__. */
#include "io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"
#include "base/num.h"
#include "base/status.h"
#include "io/format.h"

enum { MAX_HEADER = 100 * 1000 * 1000, MAX_RANK = 8, LENGTH_BYTES = 8, MAX_LISTED = 8 };

/* numbers[*count] <- a list of at most `most` numbers.  Numbers after the first `capacity` are not
 * stored. */
static int numbers_read(struct json_reader *r, int most, int capacity, gidx *numbers, int *count)
{
  JSON_GOOD(r, json_sign(r, '['), "a list is missing");
  *count = 0;
  if (json_sign(r, ']')) return OK;
  do {
    gidx number = 0;
    TRY(json_number(r, &number));
    JSON_GOOD(r, *count < most, "a list is too long");
    if (*count < capacity) numbers[*count] = number;
    (*count)++;
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, ']'), "a list does not end");
  return OK;
}

/* Skip __metadata__, an object of texts.  Only its keys are kept, to find a repeated one. */
static int metadata_read(struct json_reader *r, struct tensor_table *t)
{
  char *key, *text;
  JSON_GOOD(r, json_sign(r, '{'), "__metadata__ is no object");
  if (json_sign(r, '}')) return OK;
  do {
    TRY(json_key(r, &key));
    TRY(json_string(r, &text));
    TRY(json_keys_add(&t->notes, key));
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}'), "__metadata__ does not end");
  return OK;
}

/* Read one of the three entries of a tensor. */
static int entry_read(struct json_reader *r, struct tensor *t, unsigned *seen)
{
  static const char *const keys[] = {"dtype", "shape", "data_offsets"};
  char *key, *text;
  gidx offsets[2] = {0};
  int k = 0, count;
  TRY(json_key(r, &key));
  while (k < LENGTH(keys) && strcmp(keys[k], key) != 0) k++;
  JSON_GOOD(r, k < LENGTH(keys) && !(*seen & 1u << k),
            "a tensor has dtype, shape and data_offsets, each once");
  *seen |= 1u << k;
  if (k == 0) {
    TRY(json_string(r, &text));
    t->dtype = text;
    return OK;
  }
  if (k == 1) return numbers_read(r, MAX_RANK, LENGTH(t->shape), t->shape, &t->rank);
  TRY(numbers_read(r, 2, 2, offsets, &count));
  JSON_GOOD(r, count == 2 && offsets[0] <= offsets[1], "data_offsets are not a begin and an end");
  t->begin = offsets[0];
  t->end = offsets[1];
  return OK;
}

static int tensor_read(struct json_reader *r, struct tensor_table *t, const char *name)
{
  unsigned seen = 0;
  if (t->count == t->capacity) {
    t->capacity = 2 * t->capacity + 16;
    struct tensor *list = realloc(t->list, (size_t)t->capacity * sizeof *list);
    CHECK(list, ERR_MEMORY, "cannot allocate %lld tensors", (long long)t->capacity);
    t->list = list;
  }
  struct tensor *tensor = &t->list[t->count++];
  *tensor = (struct tensor){.name = name};
  JSON_GOOD(r, json_sign(r, '{'), "a tensor is no object");
  do TRY(entry_read(r, tensor, &seen));
  while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}') && seen == 7,
            "a tensor has dtype, shape and data_offsets, each once");
  return OK;
}

static int header_parse(struct json_reader *r, struct tensor_table *t)
{
  char *name;
  int metadata = 0;
  JSON_GOOD(r, *r->at++ == '{', "it does not begin with a brace");
  if (json_sign(r, '}')) return OK;
  do {
    TRY(json_key(r, &name));
    if (strcmp(name, "__metadata__") != 0) {
      TRY(tensor_read(r, t, name));
      continue;
    }
    JSON_GOOD(r, !metadata++, "__metadata__ is there twice");
    TRY(metadata_read(r, t));
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}'), "it does not end");
  json_blanks(r);
  JSON_GOOD(r, !*r->at, "it goes on behind its end");
  return OK;
}

static int names_check(struct tensor_table *t, const char *path)
{
  for (gidx i = 0; i < t->count; i++) TRY(json_keys_add(&t->names, t->list[i].name));
  const char *twice = json_keys_twice(&t->names), *note = json_keys_twice(&t->notes);
  CHECK(!twice, ERR_INPUT, "the header of '%s' is damaged: it has '%s' twice" ANEW, path, twice);
  CHECK(!note, ERR_INPUT, "the header of '%s' is damaged: its __metadata__ has '%s' twice" ANEW,
        path, note);
  return OK;
}

static int begin_order(const void *a, const void *b)
{
  const struct tensor *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

/* Check that the tensors follow each other without gaps, from the first of the `bytes` bytes to the
 * last. */
static int offsets_check(struct tensor_table *t, const char *path, gidx bytes)
{
  gidx at = 0;
  if (t->count > 0) qsort(t->list, (size_t)t->count, sizeof *t->list, begin_order);
  for (gidx i = 0; i < t->count; at = t->list[i++].end)
    CHECK(t->list[i].begin == at, ERR_INPUT,
          "the header of '%s' is damaged: '%s' begins at byte %lld, the one before it ends at "
          "%lld" ANEW,
          path, t->list[i].name, (long long)t->list[i].begin, (long long)at);
  CHECK(at == bytes, ERR_INPUT,
        "'%s' is %s: it has %lld bytes of values, its header says %lld" ANEW, path,
        at > bytes ? "truncated" : "damaged", (long long)bytes, (long long)at);
  return OK;
}

int tensor_type(const struct tensor *t, enum h5_type *type)
{
  static const struct {
    const char *dtype;
    enum h5_type type;
  } types[] = {{"F16", TYPE_F16}, {"BF16", TYPE_BF16}, {"F32", TYPE_F32}, {"F64", TYPE_F64}};
  for (int i = 0; i < LENGTH(types); i++)
    if (strcmp(types[i].dtype, t->dtype) == 0) {
      *type = types[i].type;
      return 1;
    }
  return 0;
}

/* Check that each tensor of a type that can be read has as many bytes as its shape needs. */
static int shapes_check(const struct tensor_table *t, const char *path)
{
  for (gidx i = 0; i < t->count; i++) {
    const struct tensor *tensor = &t->list[i];
    enum h5_type type;
    if (!tensor_type(tensor, &type) || tensor->rank > LENGTH(tensor->shape)) continue;
    double bytes = type == TYPE_F32 ? 4 : type == TYPE_F64 ? 8 : 2;
    for (int r = 0; r < tensor->rank; r++) bytes *= (double)tensor->shape[r];
    CHECK(bytes == (double)(tensor->end - tensor->begin), ERR_INPUT,
          "the header of '%s' is damaged: '%s' has %lld bytes, its shape wants %.0f", path,
          tensor->name, (long long)(tensor->end - tensor->begin), bytes);
  }
  return OK;
}

/* *length <- the number of bytes of the header. */
static int length_read(const struct flat_file *f, uint64_t *length)
{
  unsigned char head[LENGTH_BYTES];
  *length = 0;
  TRY(flat_bytes(f, 0, sizeof head, head));
  for (int i = LENGTH_BYTES - 1; i >= 0; i--) *length = *length << 8 | head[i];
  if (*length >= 2 && *length <= MAX_HEADER) return OK;
  TRY(format_check(f->path));
  FAIL(ERR_INPUT, "'%s' is no safetensors file, or damaged: its header would have %llu bytes" ANEW,
       f->path, (unsigned long long)*length);
}

int tensors_open(struct flat_file *f, struct tensor_table *t, const char *path)
{
  uint64_t length;
  *t = (struct tensor_table){0};
  TRY(flat_open(f, path));
  TRY(length_read(f, &length));
  gidx held = f->input->facts.size - LENGTH_BYTES;
  CHECK((gidx)length <= held, ERR_INPUT,
        "'%s' is truncated: its header would have %llu bytes, %lld are there" ANEW, path,
        (unsigned long long)length, (long long)held);
  t->header = malloc((size_t)length + 1);
  CHECK(t->header, ERR_MEMORY, "cannot allocate %llu bytes", (unsigned long long)length);
  TRY(flat_bytes(f, LENGTH_BYTES, (size_t)length, t->header));
  t->header[length] = '\0';
  CHECK(strlen(t->header) == length, ERR_INPUT,
        "the header of '%s' is damaged: it is not text" ANEW, path);
  f->data = f->values = LENGTH_BYTES + (gidx)length;
  struct json_reader r = {path, "the header", t->header, t->header, LENGTH_BYTES};
  TRY(header_parse(&r, t));
  TRY(names_check(t, path));
  TRY(offsets_check(t, path, held - (gidx)length));
  return shapes_check(t, path);
}

void tensors_free(struct tensor_table *t)
{
  free(t->list);
  free(t->header);
  json_keys_free(&t->names);
  json_keys_free(&t->notes);
  *t = (struct tensor_table){0};
}

const struct tensor *tensor_find(const struct tensor_table *t, const char *name)
{
  for (gidx i = 0; i < t->count; i++)
    if (strcmp(t->list[i].name, name) == 0) return &t->list[i];
  return NULL;
}

static int find_fail(const struct tensor_table *t, const char *path, const char *name)
{
  char found[512] = "";
  int used = 0;
  for (gidx i = 0; i < t->count && i < MAX_LISTED && used < (int)sizeof found - 1; i++)
    used += snprintf(found + used, sizeof found - (size_t)used, "%s'%s'", i ? ", " : "",
                     t->list[i].name);
  CHECK(t->count, ERR_INPUT, "'%s' has no tensors" ANEW, path);
  const char *more = t->count > MAX_LISTED ? ", ..." : "";
  CHECK(!name, ERR_INPUT, "no tensor '%s' in '%s'; it has %s%s: name one as %s:NAME", name, path,
        found, more, path);
  FAIL(ERR_INPUT, "'%s' has several tensors, %s%s: name one as %s:NAME", path, found, more, path);
}

int tensor_array(struct flat_file *f, const struct tensor *tensor)
{
  const unsigned short probe = 1;
  CHECK(tensor_type(tensor, &f->type), ERR_INPUT,
        "'%s' of '%s' holds values of type %s: save it as F16, BF16, F32 or F64", tensor->name,
        f->path, tensor->dtype);
  f->swap = *(const unsigned char *)&probe == 0; /* files are little-endian */
  f->rank = tensor->rank;
  memcpy(f->shape, tensor->shape, sizeof f->shape);
  f->data = f->values + tensor->begin;
  return flat_array(f, tensor->name);
}

int safetensors_open(struct flat_file *f, const char *path, const char *name, const char *standard)
{
  struct tensor_table t;
  int status = tensors_open(f, &t, path);
  const struct tensor *found = NULL;
  if (!status) found = tensor_find(&t, name ? name : standard);
  if (!status && !found && !name && t.count == 1) found = t.list;
  if (!status && !found) status = find_fail(&t, path, name);
  if (!status) status = tensor_array(f, found);
  tensors_free(&t);
  return status;
}
