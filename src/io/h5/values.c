/* SPDX-License-Identifier: BSD-3-Clause
 * Values of any type as they are stored, a block of at most a few megabytes at a time. */
#include "io/h5/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/status.h"
#include "io/h5/chunks.h"
#include "io/h5/dataset.h"
#include "io/h5/filters.h"
#include "io/h5/leaves.h"
#include "io/h5/vlen_text.h"

/* Does a type hold variable-length data, or region references, which point to such data? */
static int holds_variable(hid_t type)
{
  int holds = 0;
  hid_t inner = -1;
  switch (H5Tget_class(type)) {
  case H5T_VLEN:
    return 1;
  case H5T_STRING:
    return H5Tis_variable_str(type) > 0;
  case H5T_ARRAY:
    inner = H5Tget_super(type);
    holds = inner < 0 || holds_variable(inner);
    break;
  case H5T_COMPOUND:
    for (int i = 0; i < H5Tget_nmembers(type) && !holds; i++) {
      inner = H5Tget_member_type(type, (unsigned)i);
      holds = inner < 0 || holds_variable(inner);
      if (inner >= 0) H5Tclose(inner);
    }
    return holds;
  case H5T_REFERENCE:
    return H5Tequal(type, H5T_STD_REF_OBJ) <= 0;
  case H5T_NO_CLASS:
    return 1;
  default:
    return 0;
  }
  if (inner >= 0) H5Tclose(inner);
  return holds;
}

static int attribute_open(const struct h5_file *f, const char *object, const char *attribute,
                          hid_t *id)
{
  *id = H5Aopen_by_name(f->id, object, attribute, H5P_DEFAULT, h5_links());
  TRY_H5(*id, ERR_INPUT, "cannot open attribute '%s' of '%s' of '%s'", attribute, object, f->path);
  return OK;
}

/* Fill in shape, type and sizes of the open dataset or attribute. */
static int describe(struct h5_values *v)
{
  hid_t space = v->is_attribute ? H5Aget_space(v->id) : H5Dget_space(v->id);
  TRY_H5(space, ERR_INPUT, "cannot read '%s' of '%s'", v->name, v->file->path);
  int is_null = H5Sget_simple_extent_type(space) == H5S_NULL;
  int status = h5_space_shape(space, v->name, LENGTH(v->shape), &v->rank, v->shape);
  H5Sclose(space);
  TRY(status);
  v->total = !is_null;
  for (int i = 0; i < v->rank; i++) v->total *= v->shape[i];
  TRY_H5(v->type = v->is_attribute ? H5Aget_type(v->id) : H5Dget_type(v->id), ERR_INPUT,
         "cannot read the type of '%s' of '%s'", v->name, v->file->path);
  v->stored = (gidx)(v->is_attribute ? H5Aget_storage_size(v->id) : H5Dget_storage_size(v->id));
  v->is_text = H5Tis_variable_str(v->type) > 0;
  v->is_readable = v->is_text || !holds_variable(v->type);
  v->bytes = v->is_text ? sizeof(struct h5_text) : H5Tget_size(v->type);
  CHECK(v->bytes > 0, ERR_INPUT, "'%s' of '%s' has items of 0 bytes" ANEW, v->name, v->file->path);
  return OK;
}

int h5_values_open(const struct h5_file *f, const char *object, const char *attribute,
                   struct h5_values *v)
{
  *v = (struct h5_values){.file = f, .is_attribute = attribute != NULL};
  TRY(h5_begin());
  snprintf(v->name, sizeof v->name, "%s%s%s", object, attribute ? " @" : "",
           attribute ? attribute : "");
  hid_t id = -1;
  int status =
      attribute ? attribute_open(f, object, attribute, &id) : h5_dataset_open(f, object, &id);
  v->id = id < 0 ? 0 : id;
  TRY(status);
  if (!attribute) TRY(h5_chunks_open(id, &v->chunks));
  TRY(describe(v));
  if (attribute) return OK;
  TRY(h5_digest_open(f, object, v->id, v->total * (gidx)v->bytes, &v->digest));
  if (v->chunks) h5_digest_chunks(v->digest, v->chunks);
  return OK;
}

void h5_values_close(struct h5_values *v)
{
  free(v->chunks);
  h5_digest_free(&v->digest);
  if (v->type > 0) H5Tclose(v->type);
  if (v->id > 0 && v->is_attribute) H5Aclose(v->id);
  if (v->id > 0 && !v->is_attribute) H5Dclose(v->id);
  free(v->block);
  *v = (struct h5_values){0};
}

/* Items per block.  A block has about as many bytes as a chunk that Sagitta writes. */
static gidx block_items(const struct h5_values *v)
{
  return v->bytes < BLOCK_BYTES ? BLOCK_BYTES / (gidx)v->bytes : 1;
}

/* start, size <- the next block; returns its number of items.  Let `axis` be the first dimension
 * for which a block can hold all items that differ only in the dimensions after it.  The next block
 * has a range of indices of `axis`, all indices of the dimensions after it, and one index of each
 * dimension before it.  So it is both a hyperslab and contiguous in C order. */
static gidx block_shape(const struct h5_values *v, hsize_t *start, hsize_t *size)
{
  gidx at = v->first, count = 1, max = block_items(v);
  int axis = v->rank - 1;
  for (gidx trailing = 1; axis > 0 && trailing * v->shape[axis] <= max; axis--)
    trailing *= v->shape[axis];
  for (int i = v->rank - 1; i >= 0; i--) {
    start[i] = (hsize_t)(at % v->shape[i]);
    at /= v->shape[i];
    size[i] = i > axis ? (hsize_t)v->shape[i] : 1;
    count *= (gidx)size[i];
  }
  if (axis < 0) return 1;
  gidx left = v->shape[axis] - (gidx)start[axis], fits = max / count > 1 ? max / count : 1;
  size[axis] = (hsize_t)(fits < left ? fits : left);
  return count * (gidx)size[axis];
}

static herr_t dataset_read(const struct h5_values *v, hid_t type, const hsize_t *start,
                           const hsize_t *size)
{
  if (v->rank == 0) return H5Dread(v->id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, v->block);
  return h5_block_read(v->id, type, v->is_text ? NULL : v->chunks, v->rank, start, size, v->block);
}

int h5_values_next(struct h5_values *v)
{
  hsize_t start[H5S_MAX_RANK], size[H5S_MAX_RANK];
  TRY(h5_begin());
  v->first += v->count;
  v->count = 0;
  if (v->first >= v->total || !v->is_readable) return OK;
  v->count = v->is_attribute ? v->total : block_shape(v, start, size);
  if (!v->block || v->is_attribute) {
    gidx capacity = v->is_attribute ? v->total : block_items(v);
    free(v->block);
    v->block = calloc((size_t)capacity, v->bytes);
    CHECK(v->block, ERR_MEMORY, "cannot allocate %lld items of '%s'", (long long)capacity, v->name);
  }
  hid_t type = v->is_text ? h5_text_type() : v->type;
  input_file_read(v->file->input);
  herr_t done =
      v->is_attribute ? H5Aread(v->id, type, v->block) : dataset_read(v, type, start, size);
  if (done < 0) {
    int status = v->is_attribute ? h5_fail(ERR_INPUT, __FILE__, __LINE__,
                                           "cannot read '%s' of '%s'", v->name, v->file->path)
                                 : h5_read_fail(v->id, v->name, v->file->path);
    return input_file_failed(v->file->input, status);
  }
  TRY(h5_digest_read(v->digest, v->file->path, v->name, v->first * (gidx)v->bytes,
                     (size_t)v->count * v->bytes, v->block));
  return OK;
}

int h5_values_are_whole(const struct h5_values *v)
{
  return h5_leaves_agree(v->digest, v->chunks, v->id);
}

int h5_values_leaves(const struct h5_values *v)
{
  unsigned char *leaves;
  if (!v->digest || !v->digest->is_tree || h5_digest_leaves(v->digest) < 2) return OK;
  TRY(h5_leaves_read(v->file, v->name, v->digest, &leaves));
  free(leaves);
  return OK;
}

int h5_values_same_type(const struct h5_values *a, const struct h5_values *b)
{
  return H5Tequal(a->type, b->type) > 0;
}

int h5_values_text(const struct h5_values *v, gidx i, char **text, size_t *length)
{
  struct h5_text descriptor;
  memcpy(&descriptor, v->block + (size_t)i * v->bytes, sizeof descriptor);
  return h5_text_fetch(v->file, &descriptor, text, length);
}

int h5_values_compare(const struct h5_values *a, const struct h5_values *b, gidx i, int *differ)
{
  if (!a->is_text || !b->is_text) {
    *differ =
        memcmp(a->block + (size_t)i * a->bytes, b->block + (size_t)i * b->bytes, a->bytes) != 0;
    return OK;
  }
  char *s = NULL, *t = NULL;
  size_t n = 0, m = 0;
  int status = h5_values_text(a, i, &s, &n);
  if (status == OK) status = h5_values_text(b, i, &t, &m);
  *differ = status == OK && (n != m || memcmp(s, t, n) != 0);
  free(s);
  free(t);
  return status;
}

void h5_values_shape(const struct h5_values *v, char *out, int capacity)
{
  int used = snprintf(out, (size_t)capacity, "%s", v->rank ? "" : v->total ? "scalar" : "empty");
  for (int i = 0; i < v->rank && used < capacity; i++)
    used += snprintf(out + used, (size_t)(capacity - used), "%s%lld", i ? " x " : "",
                     (long long)v->shape[i]);
}

void h5_values_type(const struct h5_values *v, char *out, int capacity)
{
  int swap, bits = (int)(H5Tget_size(v->type) * 8);
  enum h5_type type = h5_type_of(v->type, &swap);
  const char *order = swap ? " big-endian" : "";
  switch (H5Tget_class(v->type)) {
  case H5T_FLOAT:
    if (type == TYPE_BF16)
      snprintf(out, (size_t)capacity, "bfloat16%s", order);
    else
      snprintf(out, (size_t)capacity, "%s%d%s", type == TYPE_OTHER ? "other float" : "float", bits,
               order);
    return;
  case H5T_INTEGER:
    snprintf(out, (size_t)capacity, "%sint%d%s", H5Tget_sign(v->type) == H5T_SGN_NONE ? "u" : "",
             bits, order);
    return;
  case H5T_STRING:
    snprintf(out, (size_t)capacity, v->is_text ? "text" : "text of %d bytes", bits / 8);
    return;
  case H5T_COMPOUND:
    snprintf(out, (size_t)capacity, "table of %d columns", H5Tget_nmembers(v->type));
    return;
  case H5T_ENUM:
    snprintf(out, (size_t)capacity, "enum%d", bits);
    return;
  case H5T_REFERENCE:
    snprintf(out, (size_t)capacity, "reference");
    return;
  case H5T_VLEN:
    snprintf(out, (size_t)capacity, "variable-length");
    return;
  default:
    snprintf(out, (size_t)capacity, "%d bytes", bits / 8);
  }
}

/* The bytes, taken as one little-endian number, in hexadecimal. */
static void hex_print(const unsigned char *bytes, size_t count, char *out, int capacity)
{
  int used = snprintf(out, (size_t)capacity, "0x");
  for (size_t i = count; i-- > 0 && used < capacity - 2;)
    used += snprintf(out + used, (size_t)(capacity - used), "%02x", bytes[i]);
}

enum number { NUMBER_OTHER, NUMBER_WHOLE, NUMBER_REAL };

/* *which <- the kind of number that an item is; *whole or *value <- the number.  NUMBER_OTHER:
 * items of this type are not converted. */
static int number_read(const struct h5_values *v, const unsigned char *item, enum number *which,
                       int64_t *whole, double *value)
{
  int swap;
  double wide[4] = {0};
  enum h5_type type = h5_type_of(v->type, &swap);
  int is_float = H5Tget_class(v->type) == H5T_FLOAT;
  *which = NUMBER_OTHER;
  if (type == TYPE_OTHER || v->bytes > sizeof wide) return OK;
  memcpy(wide, item, v->bytes);
  TRY_H5(H5Tconvert(v->type, is_float ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, 1, wide, NULL,
                    H5P_DEFAULT),
         ERR_INPUT, "cannot read '%s'", v->name);
  memcpy(whole, wide, sizeof *whole);
  memcpy(value, wide, sizeof *value);
  *which = is_float ? NUMBER_REAL : NUMBER_WHOLE;
  return OK;
}

/* A NaN is printed with its bits, since two NaNs may have different bits. */
static int number_print(const struct h5_values *v, const unsigned char *item, char *out,
                        int capacity)
{
  int swap;
  enum number which;
  int64_t whole;
  double value;
  TRY(number_read(v, item, &which, &whole, &value));
  if (which == NUMBER_OTHER)
    hex_print(item, v->bytes, out, capacity);
  else if (which == NUMBER_WHOLE)
    snprintf(out, (size_t)capacity, "%lld", (long long)whole);
  else if (!isnan(value))
    snprintf(out, (size_t)capacity, "%.*g", h5_type_of(v->type, &swap) == TYPE_F64 ? 17 : 9, value);
  else {
    int used = snprintf(out, (size_t)capacity, "nan ");
    hex_print(item, v->bytes, out + used, capacity - used);
  }
  return OK;
}

int h5_values_print(const struct h5_values *v, gidx i, char *out, int capacity)
{
  const unsigned char *item = v->block + (size_t)i * v->bytes;
  H5T_class_t class = H5Tget_class(v->type);
  if (class == H5T_STRING && !v->is_text) {
    snprintf(out, (size_t)capacity, "%.*s", (int)v->bytes, (const char *)item);
  } else if (v->is_text) {
    char *text = NULL;
    size_t length = 0;
    int status = h5_values_text(v, i, &text, &length);
    if (status == OK) snprintf(out, (size_t)capacity, "%s", text);
    free(text);
    TRY(status);
  } else if (class == H5T_FLOAT || class == H5T_INTEGER) {
    TRY(number_print(v, item, out, capacity));
  } else
    hex_print(item, v->bytes, out, capacity);
  return OK;
}

static int text_json(const struct h5_values *v, gidx i, const char *key, struct json *j)
{
  char *text = NULL;
  size_t length = 0;
  int status = h5_values_text(v, i, &text, &length);
  if (status == OK) json_text(j, key, text);
  free(text);
  return status;
}

int h5_values_json(const struct h5_values *v, gidx i, const char *key, struct json *j)
{
  const unsigned char *item = v->block + (size_t)i * v->bytes;
  H5T_class_t class = H5Tget_class(v->type);
  enum number which = NUMBER_OTHER;
  char text[600];
  int64_t whole;
  double value;
  if (v->is_text) return text_json(v, i, key, j);
  if (class == H5T_FLOAT || class == H5T_INTEGER) TRY(number_read(v, item, &which, &whole, &value));
  if (which == NUMBER_WHOLE)
    json_long(j, key, whole);
  else if (which == NUMBER_REAL)
    json_real(j, key, value);
  else {
    TRY(h5_values_print(v, i, text, sizeof text));
    json_text(j, key, text);
  }
  return OK;
}
