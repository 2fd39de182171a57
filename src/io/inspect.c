/* SPDX-License-Identifier: BSD-3-Clause
 * A page about any HDF5 file: what it is, its objects, its attributes, and what its kind adds.
 * inspect_npy.c has the pages of .npy and safetensors files. */
#include "io/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "io/h5/listing.h"
#include "io/h5/values.h"
#include "io/input_file.h"
#include "io/schema.h"
#include "io/attributes.h"
#include "io/inputs.h"
#include "io/inspect_npy.h"
#include "io/record.h"

enum { VALUES_SHOWN = 8 }; /* values that are shown of an attribute */

void size_print(double bytes, char *out, int capacity)
{
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < LENGTH(units) - 1; unit++) bytes /= 1000;
  snprintf(out, (size_t)capacity, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

/* Print the first line: format, kind, version and size. */
static int head_print(const struct h5_file *f, FILE *out)
{
  char kind[64] = "", size[32];
  size_print((double)f->input->facts.size, size, sizeof size);
  if (f->version) {
    TRY(h5_read_text(f, "/", "kind", kind, sizeof kind));
    text_print(out, "%s: %s %s, format version %lld, %s\n", f->path, FORMAT_NAME, kind,
               (long long)f->version, size);
  } else
    text_print(out, "%s: HDF5 file, %s\n", f->path, size);
  return OK;
}

/* Print the line of a dataset.  If it cannot be read, the line says so, and the page continues. */
static int dataset_print(const struct h5_file *f, const char *path, FILE *out)
{
  struct h5_values v;
  char shape[512], type[64], stored[32];
  int status = h5_values_open(f, path, NULL, &v);
  if (status == OK) {
    const struct object_row *row = object_find(path);
    h5_values_shape(&v, shape, sizeof shape);
    h5_values_type(&v, type, sizeof type);
    size_print((double)v.stored, stored, sizeof stored);
    text_print(out, "  %-*s %-18s %-10s %10s%s%s\n", NAME_WIDTH, path, shape, type, stored,
               row ? "  " : "", row ? row->meaning : "");
  } else if (status == ERR_INPUT) {
    text_print(out, "  %-*s not readable: %s\n", NAME_WIDTH, path, status_message());
    status_clear();
    status = OK;
  }
  h5_values_close(&v);
  return status;
}

static int objects_print(const struct h5_file *f, const struct h5_listing *list, FILE *out)
{
  text_print(out, "\n  %-*s %-18s %-10s %10s\n", NAME_WIDTH, "dataset", "shape", "type", "stored");
  for (gidx i = 0; i < list->count; i++) {
    const struct h5_entry *e = &list->entries[i];
    if (h5_is_leaves(f, e->path)) continue; /* hashes are compared by `verify` */
    if (e->kind == ENTRY_DATASET) TRY(dataset_print(f, e->path, out));
    if (e->kind == ENTRY_SOFT || e->kind == ENTRY_EXTERNAL)
      text_print(out, "  %-*s link to %s, not followed\n", NAME_WIDTH, e->path, e->target);
  }
  return OK;
}

/* Print the lines of a text, without the empty ones, below the attribute's name. */
static void lines_print(char *text, FILE *out)
{
  for (char *line; (line = strsep(&text, "\n"));) {
    if (line[strspn(line, " ")]) text_print(out, "\n    %s", line);
  }
}

/* Hashes of contents are stored as integers.  text <- the 16 hexadecimal digits that logs and
 * messages show. */
static void hash_print(const char *name, char *text, size_t capacity)
{
  if (name_is_hash(name))
    snprintf(text, capacity, "%016llx", (unsigned long long)strtoll(text, NULL, 10));
}

static int attribute_print(const struct h5_file *f, const char *object, const char *name, FILE *out)
{
  struct h5_values v;
  char value[8192];
  int status = h5_values_open(f, object, name, &v);
  if (status == OK) status = h5_values_next(&v);
  if (status == OK) text_print(out, "  %-*s", NAME_WIDTH, name);
  for (gidx i = 0; i < v.count && i < VALUES_SHOWN && status == OK; i++) {
    status = h5_values_print(&v, i, value, sizeof value);
    if (status != OK) break;
    hash_print(name, value, sizeof value);
    if (strchr(value, '\n'))
      lines_print(value, out);
    else
      text_print(out, " %s", value);
  }
  if (status == OK) text_print(out, "%s\n", v.total > VALUES_SHOWN ? " ..." : "");
  h5_values_close(&v);
  return status;
}

static int attributes_print(const struct h5_file *f, const char *object, FILE *out)
{
  struct h5_listing names = {0};
  int status = h5_list_attributes(f, object, &names);
  int shown = 0;
  for (gidx i = 0; i < names.count && status == OK; i++) {
    const char *name = names.entries[i].path;
    if (f->version && hash_names(name)) continue; /* hashes are compared by `verify` */
    if (!shown++) text_print(out, "\n%s\n", object);
    status = attribute_print(f, object, name, out);
  }
  h5_listing_free(&names);
  return status;
}

/* Print a hint about a file without datasets, or about a file that Sagitta did not write. */
static void hint_print(const struct h5_file *f, const struct h5_listing *list, FILE *out)
{
  gidx datasets = 0;
  for (gidx i = 0; i < list->count; i++) datasets += list->entries[i].kind == ENTRY_DATASET;
  if (!datasets)
    text_print(out, "\nThere are no datasets in it: nothing that a job could read.\n");
  else if (!f->version)
    text_print(out,
               "\nSagitta did not write it, so it does not say how it came to be.  A matrix of it "
               "is given to a job as %s:/PATH.\n",
               f->path);
}

/* Print what each kind shows above the list of objects, the list, what each kind shows below it,
 * and the attributes of the objects that no kind has printed yet. */
static int contents_print(const struct h5_file *f, const struct h5_listing *list, FILE *out)
{
  const char *group = NULL;
  int knows =
      f->version <= FORMAT_VERSION; /* in newer files the same names may mean something else */
  TRY(head_print(f, out));
  for (int k = 0; k < file_kind_count && knows; k++)
    if (file_kinds[k]->show_above) TRY(file_kinds[k]->show_above(f, out));
  TRY(objects_print(f, list, out));
  for (int k = 0; k < file_kind_count && knows; k++)
    if (file_kinds[k]->show_below) TRY(file_kinds[k]->show_below(f, out, &group));
  for (gidx i = 0; i < list->count; i++) {
    const struct h5_entry *e = &list->entries[i];
    if (e->kind <= ENTRY_TYPE && !(group && strncmp(e->path, group, strlen(group)) == 0))
      TRY(attributes_print(f, e->path, out));
  }
  hint_print(f, list, out);
  CHECK(!ferror(out), ERR_IO, "cannot write the page about '%s'", f->path);
  return OK;
}

int inspect_open(struct h5_file *f, const char *path)
{
  char why[2048];
  int newer;
  TRY(h5_open_newer(f, path, &newer, why, sizeof why));
  if (newer) log_warn("%s: what is shown here may mean something else", why);
  return OK;
}

int file_inspect(const char *path, FILE *out)
{
  struct h5_file f;
  struct h5_listing list = {0};
  if (journal_is(path) || journal_is_growing(path)) return record_print(path, out);
  enum input_format format = input_format_of(path);
  if (format == INPUT_NPY) return npy_inspect(path, out);
  if (format == INPUT_SAFETENSORS) return tensors_inspect(path, out);
  TRY(inspect_open(&f, path));
  int status = h5_list(&f, &list);
  if (status == OK) status = contents_print(&f, &list, out);
  h5_listing_free(&list);
  return h5_close_after(&f, status);
}
