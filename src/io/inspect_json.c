/* SPDX-License-Identifier: BSD-3-Clause
 * The JSON of an HDF5 file: its datasets, its links, and the attributes of all objects.
 * inspect_npy.c has the JSON of .npy and safetensors files. */
#include "io/inspect_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/status.h"
#include "io/attributes.h"
#include "io/inspect.h"
#include "io/h5/listing.h"
#include "io/h5/values.h"
#include "io/inputs.h"
#include "io/inspect_npy.h"
#include "io/journal.h"
#include "io/record.h"
#include "io/schema.h"

static int head_json(const struct h5_file *f, struct json *j)
{
  char kind[64];
  json_text(j, "file", f->path);
  json_text(j, "type", "hdf5");
  json_long(j, "bytes", f->input->facts.size);
  if (!f->version) return OK;
  TRY(h5_read_text(f, "/", "kind", kind, sizeof kind));
  json_text(j, "kind", kind);
  json_long(j, "format_version", f->version);
  json_flag(j, "newer", f->version > FORMAT_VERSION);
  return OK;
}

/* Add the facts of a dataset.  If it cannot be read, the reason is added instead. */
static int dataset_json(const struct h5_file *f, const char *path, struct json *j)
{
  struct h5_values v;
  char type[64];
  int status = h5_values_open(f, path, NULL, &v);
  if (status == OK) {
    const struct object_row *row = object_find(path);
    h5_values_type(&v, type, sizeof type);
    json_array(j, "shape");
    for (int i = 0; i < v.rank; i++) json_long(j, NULL, v.shape[i]);
    json_end(j);
    json_text(j, "type", type);
    json_long(j, "stored", v.stored);
    if (row) json_text(j, "meaning", row->meaning);
  } else if (status == ERR_INPUT) {
    json_text(j, "unreadable", status_message());
    status_clear();
    status = OK;
  }
  h5_values_close(&v);
  return status;
}

static int datasets_json(const struct h5_file *f, const struct h5_listing *list, struct json *j)
{
  int status = OK;
  json_array(j, "datasets");
  for (gidx i = 0; i < list->count && !status; i++) {
    const struct h5_entry *e = &list->entries[i];
    if (e->kind != ENTRY_DATASET || h5_is_leaves(f, e->path)) continue;
    json_object(j, NULL);
    json_text(j, "path", e->path);
    status = dataset_json(f, e->path, j);
    json_end(j);
  }
  json_end(j);
  return status;
}

static void links_json(const struct h5_listing *list, struct json *j)
{
  json_array(j, "links");
  for (gidx i = 0; i < list->count; i++) {
    const struct h5_entry *e = &list->entries[i];
    if (e->kind != ENTRY_SOFT && e->kind != ENTRY_EXTERNAL) continue;
    json_object(j, NULL);
    json_text(j, "path", e->path);
    json_text(j, "target", e->target);
    json_end(j);
  }
  json_end(j);
}

/* Hashes of contents are written as 16 hexadecimal digits, as logs and messages show them. */
static int hash_json(const struct h5_values *v, const char *name, struct json *j)
{
  char text[64];
  TRY(h5_values_print(v, 0, text, sizeof text));
  snprintf(text, sizeof text, "%016llx", (unsigned long long)strtoll(text, NULL, 10));
  json_text(j, name, text);
  return OK;
}

static int items_json(struct h5_values *v, const char *name, struct json *j)
{
  int status = OK, is_list = v->rank > 0 || v->total > 1;
  TRY(h5_values_next(v));
  if (!is_list && !v->is_text && v->count && name_is_hash(name)) return hash_json(v, name, j);
  if (is_list) json_array(j, name);
  if (!is_list && !v->count) json_text(j, name, NULL);
  for (; v->count && !status; status = status ? status : h5_values_next(v))
    for (gidx i = 0; i < v->count && !status; i++)
      status = h5_values_json(v, i, is_list ? NULL : name, j);
  if (is_list) json_end(j);
  return status;
}

static int attribute_json(const struct h5_file *f, const char *object, const char *name,
                          struct json *j)
{
  struct h5_values v;
  int status = h5_values_open(f, object, name, &v);
  if (status == OK) status = items_json(&v, name, j);
  h5_values_close(&v);
  return status;
}

/* Add the attributes of an object, if it has any. */
static int attributes_json(const struct h5_file *f, const char *object, struct json *j)
{
  struct h5_listing names = {0};
  int status = h5_list_attributes(f, object, &names), told = 0;
  for (gidx i = 0; i < names.count && status == OK; i++) {
    const char *name = names.entries[i].path;
    if (f->version && hash_names(name)) continue; /* hashes are compared by `verify` */
    if (!told++) json_object(j, object);
    status = attribute_json(f, object, name, j);
  }
  if (told) json_end(j);
  h5_listing_free(&names);
  return status;
}

static int entries_json(const struct h5_file *f, const struct h5_listing *list, struct json *j)
{
  TRY(head_json(f, j));
  TRY(datasets_json(f, list, j));
  links_json(list, j);
  json_object(j, "attributes");
  for (gidx i = 0; i < list->count; i++)
    if (list->entries[i].kind <= ENTRY_TYPE) TRY(attributes_json(f, list->entries[i].path, j));
  json_end(j);
  for (int k = 0; k < file_kind_count && f->version <= FORMAT_VERSION; k++)
    if (file_kinds[k]->tell) TRY(file_kinds[k]->tell(f, j));
  return OK;
}

static int h5_json(const char *path, struct json *j)
{
  struct h5_file f;
  struct h5_listing list = {0};
  TRY(inspect_open(&f, path));
  int status = h5_list(&f, &list);
  if (status == OK) status = entries_json(&f, &list, j);
  h5_listing_free(&list);
  return h5_close_after(&f, status);
}

int file_json(const char *path, struct json *j)
{
  int grows = journal_is(path) || journal_is_growing(path);
  enum input_format format = grows ? INPUT_H5 : input_format_of(path);
  json_object(j, NULL);
  if (grows)
    TRY(record_json(path, j));
  else if (format == INPUT_NPY)
    TRY(npy_json(path, j));
  else if (format == INPUT_SAFETENSORS)
    TRY(tensors_json(path, j));
  else
    TRY(h5_json(path, j));
  json_end(j);
  return OK;
}
