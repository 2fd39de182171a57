/* SPDX-License-Identifier: BSD-3-Clause
 * A page about a file: what it is, its objects, its attributes, and of supports the metrics with a
 * bar a decade of density. */
#include "io/files.h"

#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "io/h5_walk.h"
#include "io/inspect.h"
#include "io/schema.h"
#include "model/results.h"

enum { BAR_WIDTH = 40, VALUES_SHOWN = 8, NAME_WIDTH = 28 };

static void bytes_print(double bytes, char *out, int room)
{
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < LENGTH(units) - 1; unit++) bytes /= 1000;
  snprintf(out, (size_t)room, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static int head_print(const struct h5_file *f, FILE *out)
{
  char format[64] = "", kind[64] = "", size[32];
  struct stat facts;
  CHECK(stat(f->path, &facts) == 0, ERR_IO, "cannot open '%s'", f->path);
  if (h5_attribute_exists(f, "/", "format"))
    if (h5_read_text(f, "/", "format", format, sizeof format)) status_clear();
  bytes_print((double)facts.st_size, size, sizeof size);
  if (strcmp(format, FORMAT_NAME) == 0) {
    gidx version;
    TRY(h5_read_long(f, "/", "format_version", &version));
    TRY(h5_read_text(f, "/", "kind", kind, sizeof kind));
    fprintf(out, "%s: %s %s, format version %lld, %s\n", f->path, format, kind, (long long)version,
            size);
  } else
    fprintf(out, "%s: HDF5 file, %s\n", f->path, size);
  return OK;
}

/* What cannot be read is said in its line; the page goes on. */
static int dataset_print(const struct h5_file *f, const char *path, FILE *out)
{
  struct h5_values v;
  char shape[512], type[64], stored[32];
  int status = h5_values_open(f, path, NULL, &v);
  if (status == OK) {
    const struct object_row *row = object_find(NULL, path);
    h5_values_shape(&v, shape, sizeof shape);
    h5_values_type(&v, type, sizeof type);
    bytes_print((double)v.stored, stored, sizeof stored);
    fprintf(out, "  %-*s %-18s %-10s %10s%s%s\n", NAME_WIDTH, path, shape, type, stored,
            row ? "  " : "", row ? row->meaning : "");
  } else if (status == ERR_INPUT) {
    fprintf(out, "  %-*s not readable: %s\n", NAME_WIDTH, path, status_message());
    status_clear();
    status = OK;
  }
  h5_values_close(&v);
  return status;
}

static int objects_print(const struct h5_file *f, const struct h5_listing *list, FILE *out)
{
  fprintf(out, "\n  %-*s %-18s %-10s %10s\n", NAME_WIDTH, "dataset", "shape", "type", "stored");
  for (gidx i = 0; i < list->count; i++) {
    const struct h5_entry *e = &list->entries[i];
    if (e->kind == KIND_DATASET) TRY(dataset_print(f, e->path, out));
    if (e->kind == KIND_SOFT || e->kind == KIND_EXTERNAL)
      fprintf(out, "  %-*s link to %s, not followed\n", NAME_WIDTH, e->path, e->target);
  }
  return OK;
}

/* Control characters of a hostile text must not reach a terminal. */
static void text_clean(char *text)
{
  for (; *text; text++)
    if ((unsigned char)*text < 32 || *text == 127) *text = ' ';
}

/* A text of several lines: each below the name, empty ones left out. */
static void lines_print(char *text, FILE *out)
{
  for (char *line; (line = strsep(&text, "\n"));) {
    text_clean(line);
    if (line[strspn(line, " ")]) fprintf(out, "\n    %s", line);
  }
}

static int attribute_print(const struct h5_file *f, const char *object, const char *name, FILE *out)
{
  struct h5_values v;
  char value[8192];
  int status = h5_values_open(f, object, name, &v);
  if (status == OK) status = h5_values_next(&v);
  if (status == OK) fprintf(out, "  %-*s", NAME_WIDTH, name);
  for (gidx i = 0; i < v.count && i < VALUES_SHOWN && status == OK; i++) {
    status = h5_values_print(&v, i, value, sizeof value);
    if (status != OK) break;
    if (strchr(value, '\n')) {
      lines_print(value, out);
    } else {
      text_clean(value);
      fprintf(out, " %s", value);
    }
  }
  if (status == OK) fprintf(out, "%s\n", v.total > VALUES_SHOWN ? " ..." : "");
  h5_values_close(&v);
  return status;
}

static int attributes_print(const struct h5_file *f, const char *object, FILE *out)
{
  struct h5_listing names = {0};
  int status = h5_list_attributes(f, object, &names);
  if (names.count) fprintf(out, "\n%s\n", object);
  for (gidx i = 0; i < names.count && status == OK; i++)
    status = attribute_print(f, object, names.entries[i].path, out);
  h5_listing_free(&names);
  return status;
}

static int metrics_print(const struct h5_file *f, FILE *out)
{
  fprintf(out, "\nmetrics\n");
  for (int i = 0; i < metric_count; i++) {
    const struct metric_row *row = &metric_rows[i];
    gidx whole;
    real value;
    if (!h5_attribute_exists(f, "/metrics", row->name)) continue;
    if (row->is_integer) {
      TRY(h5_read_long(f, "/metrics", row->name, &whole));
      fprintf(out, "  %-*s %14lld  %s\n", NAME_WIDTH, row->name, (long long)whole, row->formula);
    } else {
      TRY(h5_read_real(f, "/metrics", row->name, &value));
      fprintf(out, "  %-*s %14.6g  %s\n", NAME_WIDTH, row->name, value, row->formula);
    }
  }
  return OK;
}

static int histogram_read(const struct h5_file *f, gidx *bins)
{
  struct h5_array a;
  int status = h5_array_open(f, "/metrics/density_histogram", &a);
  if (status == OK && (a.rank != 1 || a.shape[0] != DENSITY_BINS))
    status = status_fail(ERR_INPUT, __FILE__, __LINE__, "'%s' of '%s' does not have %d entries",
                         a.object, f->path, DENSITY_BINS);
  if (status == OK) status = h5_array_read(&a, 0, DENSITY_BINS, TYPE_I64, bins);
  h5_array_close(&a);
  return status;
}

static int histogram_print(const struct h5_file *f, FILE *out)
{
  gidx bins[DENSITY_BINS], most = 1;
  TRY(histogram_read(f, bins));
  for (int i = 0; i < DENSITY_BINS; i++) most = bins[i] > most ? bins[i] : most;
  fprintf(out, "\natoms by the share of rows that they are in\n");
  for (int i = 0; i < DENSITY_BINS; i++) {
    char label[32], bar[BAR_WIDTH + 1];
    int length = bins[i] > 0 ? (int)((double)bins[i] / (double)most * (BAR_WIDTH - 1)) + 1 : 0;
    memset(bar, '#', sizeof bar);
    bar[length] = '\0';
    if (i == 0)
      snprintf(label, sizeof label, "never");
    else
      snprintf(label, sizeof label, "up to 1e%d", i - DENSITY_BINS + 1);
    fprintf(out, "  %-*s %14lld%s%s\n", NAME_WIDTH, label, (long long)bins[i], length ? "  " : "",
            bar);
  }
  return OK;
}

/* Of our supports the metrics and of a terminal pass its page are shown as such; the attributes of
 * every other object follow. */
static int page_print(const struct h5_file *f, const struct h5_listing *list, FILE *out)
{
  int has_metrics = h5_exists(f, "/metrics/density_histogram");
  int is_terminal = h5_exists(f, "/terminal/border") && h5_exists(f, "/run/terminal");
  TRY(head_print(f, out));
  if (is_terminal) TRY(inspect_terminal(f, out));
  TRY(objects_print(f, list, out));
  if (has_metrics) TRY(metrics_print(f, out));
  if (has_metrics) TRY(histogram_print(f, out));
  for (gidx i = 0; i < list->count; i++) {
    const struct h5_entry *e = &list->entries[i];
    if (e->kind <= KIND_TYPE && !(has_metrics && strncmp(e->path, "/metrics", 8) == 0))
      TRY(attributes_print(f, e->path, out));
  }
  CHECK(!ferror(out), ERR_IO, "cannot write the page about '%s'", f->path);
  return OK;
}

int file_inspect(const char *path, FILE *out)
{
  struct h5_file f;
  struct h5_listing list = {0};
  TRY(h5_open(&f, path));
  int status = h5_list(&f, &list);
  if (status == OK) status = page_print(&f, &list, out);
  h5_listing_free(&list);
  h5_close(&f);
  return status;
}
