/* SPDX-License-Identifier: BSD-3-Clause
 * The order of checks: the identity of the file; every byte, and so every checksum; types and
 * shapes, by the tables; then the contents, kind by kind. */
#include "io/verify.h"

#include <string.h>

#include "base/status.h"
#include "base/team.h"
#include "io/check.h"
#include "io/h5/listing.h"
#include "io/h5/values.h"
#include "io/attributes.h"
#include "io/damage.h"
#include "io/entry_hashes.h"
#include "io/input_file.h"
#include "io/metrics.h"
#include "io/supports.h"

/* v->kind <- the kind of a file that Sagitta wrote. */
static int kind_check(struct verify *v)
{
  const struct h5_file *f = v->file;
  TRY(h5_read_text(f, "/", "kind", v->kind, sizeof v->kind));
  CHECK(file_kind_find(v->kind), ERR_INPUT, "'%s' is of the unknown kind '%s'" ANEW, f->path,
        v->kind);
  return OK;
}

/* Did Sagitta write the file, and of which kind is it?  Text attributes have no checksum.  A file
 * that has the other marks of Sagitta, but not its format attribute, is damaged and is refused. */
static int identity_check(struct verify *v)
{
  const struct h5_file *f = v->file;
  int has_version, has_run;
  TRY(h5_attribute_exists(f, "/", "format_version", &has_version));
  TRY(h5_exists(f, "/run", &has_run));
  v->is_ours = f->version > 0;
  if (!v->is_ours && has_version && has_run) TRY(check_text(v, "/", "format", FORMAT_NAME));
  if (v->is_ours) TRY(kind_check(v));
  check_note(v, "format    %s%s%s", v->is_ours ? "sagitta, " : "foreign HDF5", v->kind,
             v->is_ours ? "" : ": only what is common to all files is checked");
  return OK;
}

enum { LARGE_BYTES = 4 << 20 }; /* threads read the chunks of datasets from this size on */

/* Read all values, and the bytes of texts.  is_known: 1: another check reads these values, or they
 * were checked when they were written, so they are not read here. */
static int values_read(struct verify *v, struct h5_values *values, int is_known)
{
  char text[64];
  double bytes = (double)values->total * (double)values->bytes;
  CHECK(!v->is_ours || values->is_attribute || (double)values->stored >= bytes, ERR_INPUT,
        "'%s' of '%s' stores %lld of %.0f bytes" ANEW, values->name, v->file->path,
        (long long)values->stored, bytes);
  if (is_known) return OK;
  if (team_spare() > 1 && bytes >= LARGE_BYTES && h5_values_are_whole(values)) return OK;
  do {
    TRY(h5_values_next(values));
    for (gidx i = 0; i < values->count && values->is_text; i++)
      TRY(h5_values_print(values, i, text, sizeof text));
  } while (values->count > 0);
  return OK;
}

/* Check that a dataset of the tables has a hash of all its values, which is compared while they are
 * read.  Check also that the hashes of its chunks, if it has any, agree with that hash. */
static int hash_check(struct verify *v, const char *object, const struct h5_values *values)
{
  int is_sealed = v->file->version >= H5_SEALED_FROM && object_find(object);
  CHECK(!is_sealed || values->digest, ERR_INPUT, "'%s' of '%s' has no attribute '%s'" ANEW, object,
        v->file->path, v->file->version < H5_TREE_FROM ? "sha256" : "sha256_tree");
  return h5_values_leaves(values);
}

/* Read a dataset, or if `attribute` is not NULL, that attribute of the object. */
static int object_read(struct verify *v, const char *object, const char *attribute, int is_known)
{
  struct h5_values values;
  char type[64], shape[512];
  int status = h5_values_open(v->file, object, attribute, &values);
  if (status == OK && !attribute) status = hash_check(v, object, &values);
  if (status == OK) status = values_read(v, &values, is_known);
  if (status == OK && !attribute) {
    h5_values_type(&values, type, sizeof type);
    h5_values_shape(&values, shape, sizeof shape);
    check_note(v, "read      %s  %s  %s%s", object, shape, type,
               values.is_readable ? "" : ", not read: variable-length data");
  }
  h5_values_close(&values);
  return status;
}

/* Read an object and its attributes.  Entries of supports may be left to supports_check(). */
static int entry_read(struct verify *v, const struct h5_entry *entry)
{
  int has_offsets = v->counts && v->counts->has_offsets && !strcmp(entry->path, OFFSETS_PATH);
  int is_known = has_offsets || ((v->leaves || v->counts) && entry_hashes_have(entry->path));
  struct h5_listing names = {0};
  int has_attributes = entry->kind <= ENTRY_TYPE;
  int status = entry->kind == ENTRY_DATASET ? object_read(v, entry->path, NULL, is_known) : OK;
  if (status == OK && has_attributes) status = h5_list_attributes(v->file, entry->path, &names);
  for (gidx i = 0; i < names.count && status == OK; i++)
    status = object_read(v, entry->path, names.entries[i].path, 0);
  h5_listing_free(&names);
  return status;
}

static int everything_read(struct verify *v)
{
  struct h5_listing list = {0};
  int status = h5_list(v->file, &list);
  v->leaves = !v->counts && (team_spare() > 1 || v->taker) && v->file->version >= H5_SEALED_FROM;
  for (gidx i = 0; i < list.count && status == OK; i++) status = entry_read(v, &list.entries[i]);
  h5_listing_free(&list);
  TRY(status);
  if (v->file->version < H5_SEALED_FROM) return OK;
  TRY(attributes_check(v->file));
  check_note(v, "hashes    every dataset and every text is what was written");
  return OK;
}

/* Check that a required dataset exists.  If a dataset exists, check its shape, and in Sagitta's
 * files its type. */
static int row_check(struct verify *v, const struct object_row *row)
{
  struct h5_array a;
  int there;
  TRY(h5_exists(v->file, row->path, &there));
  CHECK(there || !v->is_ours || !row->required, ERR_INPUT, "no '%s' in '%s'" ANEW, row->path,
        v->file->path);
  if (!there) return OK;
  int status = h5_array_open(v->file, row->path, &a);
  if (status == OK && v->is_ours && row->type != TYPE_OTHER && a.type != row->type)
    status = status_fail(ERR_INPUT, __FILE__, __LINE__, "'%s' of '%s' is %s, not %s" ANEW,
                         row->path, v->file->path, type_name(a.type), type_name(row->type));
  if (status == OK) status = object_check_shape(row, &a, &v->dims);
  h5_array_close(&a);
  return status;
}

/* Check the objects against the tables of kinds.  A file of Sagitta must have the objects of its
 * kind.  In other files, objects of all kinds are checked if they exist. */
static int tables_check(struct verify *v)
{
  for (int k = 0; k < file_kind_count; k++) {
    const struct object_row *row;
    if (v->is_ours && strcmp(file_kinds[k]->name, v->kind) != 0) continue;
    for (int i = 0; (row = file_kind_row(file_kinds[k], i)); i++) TRY(row_check(v, row));
  }
  for (int i = 0; i < v->dims.count; i++)
    check_note(v, "shape     %s = %lld", v->dims.list[i].name, (long long)v->dims.list[i].value);
  return OK;
}

static int all_check(struct verify *v)
{
  TRY(identity_check(v));
  TRY(everything_read(v));
  v->file->is_hashed = 1;
  TRY(tables_check(v));
  for (int k = 0; k < file_kind_count; k++) TRY(file_kinds[k]->check(v));
  return OK;
}

static int verify_run(struct verify *v, const char *path)
{
  struct h5_file f;
  v->file = &f;
  TRY(h5_open(&f, path));
  int status = all_check(v);
  if (status) status = damage_locate(v, status);
  TRY(h5_close_after(&f, status));
  check_note(v, "verified  %s", path);
  return OK;
}

int file_verify(const char *path, FILE *out)
{
  struct verify v = {.out = out};
  return verify_run(&v, path);
}

int file_verify_rest(const char *path, const struct support_counts *counts)
{
  struct verify v = {.counts = counts};
  return verify_run(&v, path);
}

int file_verify_taking(struct h5_file *f, const struct verify_taker *taker)
{
  struct verify v = {.file = f, .taker = taker};
  int status = all_check(&v);
  if (status) status = damage_locate(&v, status);
  return input_file_failed(f->input, status);
}
