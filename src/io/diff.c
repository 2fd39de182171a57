/* SPDX-License-Identifier: BSD-3-Clause
 * The two lists of objects are merged by path.  The links, attributes and data of each pair are
 * compared, until a difference is found. */
#include "io/diff.h"

#include <string.h>

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "io/h5/listing.h"
#include "io/h5/values.h"
#include "io/attributes.h"
#include "io/part.h"

struct diff {
  const struct h5_file *a, *b;
  FILE *out;         /* NULL: nothing is printed */
  struct json *json; /* NULL: no JSON is written */
  int differs;
};

/* Print a difference, and note it, which ends the comparison. */
#define DIFFER(d, ...)                                                                             \
  do {                                                                                             \
    if ((d)->out) text_print((d)->out, __VA_ARGS__);                                               \
    (d)->differs = 1;                                                                              \
  } while (0)

/* Begin the JSON of a difference: the two files, what differs, and in which object. */
static void difference_begin(const struct diff *d, const char *what, const char *object)
{
  json_object(d->json, "difference");
  json_array(d->json, "files");
  json_text(d->json, NULL, d->a->path);
  json_text(d->json, NULL, d->b->path);
  json_end(d->json);
  json_text(d->json, "what", what);
  json_text(d->json, "object", object);
}

/* Write the JSON of a difference between two texts, such as types or shapes. */
static void texts_json(const struct diff *d, const char *what, const char *object, const char *a,
                       const char *b)
{
  if (!d->json) return;
  difference_begin(d, what, object);
  json_text(d->json, "first", a);
  json_text(d->json, "second", b);
  json_end(d->json);
}

/* index[v->rank] <- the indices of item i of an array. */
static void index_of(const struct h5_values *v, gidx i, gidx *index)
{
  for (int k = v->rank - 1; k >= 0; k--) {
    index[k] = i % v->shape[k];
    i /= v->shape[k];
  }
}

/* out <- the indices of item i as text, such as " [3, 17]"; "" for a scalar. */
static void index_print(const struct h5_values *v, gidx i, char *out, int capacity)
{
  char text[512];
  gidx index[LENGTH(v->shape)];
  int used = 0;
  index_of(v, i, index);
  text[0] = '\0';
  for (int k = 0; k < v->rank && used < (int)sizeof text; k++)
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%lld", k ? ", " : "",
                     (long long)index[k]);
  snprintf(out, (size_t)capacity, v->rank ? " [%s]" : "%s", text);
}

static int item_json(const struct diff *d, const struct h5_values *a, const struct h5_values *b,
                     gidx i)
{
  gidx index[LENGTH(a->shape)];
  if (!d->json) return OK;
  difference_begin(d, "value", a->name);
  json_array(d->json, "index");
  index_of(a, a->first + i, index);
  for (int k = 0; k < a->rank; k++) json_long(d->json, NULL, index[k]);
  json_end(d->json);
  TRY(h5_values_json(a, i, "first", d->json));
  TRY(h5_values_json(b, i, "second", d->json));
  json_end(d->json);
  return OK;
}

static int item_differs(struct diff *d, const struct h5_values *a, const struct h5_values *b,
                        gidx i)
{
  char index[600], in_a[200], in_b[200];
  index_print(a, a->first + i, index, sizeof index);
  TRY(h5_values_print(a, i, in_a, sizeof in_a));
  TRY(h5_values_print(b, i, in_b, sizeof in_b));
  DIFFER(d, "'%s'%s is %s in '%s' and %s in '%s'\n", a->name, index, in_a, d->a->path, in_b,
         d->b->path);
  return item_json(d, a, b, i);
}

static int blocks_compare(struct diff *d, struct h5_values *a, struct h5_values *b)
{
  CHECK(a->is_readable && b->is_readable, ERR_INPUT,
        "cannot compare '%s': it holds variable-length data", a->name);
  for (;;) {
    TRY(h5_values_next(a));
    TRY(h5_values_next(b));
    if (a->count == 0) return OK;
    if (!a->is_text && memcmp(a->block, b->block, (size_t)a->count * a->bytes) == 0) continue;
    for (gidx i = 0; i < a->count; i++) {
      int differ;
      TRY(h5_values_compare(a, b, i, &differ));
      if (differ) return item_differs(d, a, b, i);
    }
  }
}

static int values_compare(struct diff *d, struct h5_values *a, struct h5_values *b)
{
  char in_a[600], in_b[600];
  if (!h5_values_same_type(a, b)) {
    h5_values_type(a, in_a, sizeof in_a);
    h5_values_type(b, in_b, sizeof in_b);
    DIFFER(d, "'%s' is of type %s in '%s' and %s in '%s'\n", a->name, in_a, d->a->path, in_b,
           d->b->path);
    texts_json(d, "type", a->name, in_a, in_b);
    return OK;
  }
  int same = a->rank == b->rank && a->total == b->total;
  if (!same || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) != 0) {
    h5_values_shape(a, in_a, sizeof in_a);
    h5_values_shape(b, in_b, sizeof in_b);
    DIFFER(d, "'%s' has shape %s in '%s' and %s in '%s'\n", a->name, in_a, d->a->path, in_b,
           d->b->path);
    texts_json(d, "shape", a->name, in_a, in_b);
    return OK;
  }
  return blocks_compare(d, a, b);
}

static int pair_compare(struct diff *d, const char *object, const char *attribute)
{
  struct h5_values a, b = {0};
  int status = h5_values_open(d->a, object, attribute, &a);
  if (status == OK) status = h5_values_open(d->b, object, attribute, &b);
  if (status == OK) status = values_compare(d, &a, &b);
  h5_values_close(&a);
  h5_values_close(&b);
  return status;
}

/* Report something that only one file has: an object, or if `object` is not NULL the attribute
 * `name` of it. */
static void only_differs(struct diff *d, const char *object, const char *name, int in_first)
{
  char path[512];
  snprintf(path, sizeof path, "%s%s%s", object ? object : "", object ? " @" : "", name);
  DIFFER(d, "'%s' is only in '%s'\n", path, in_first ? d->a->path : d->b->path);
  if (!d->json) return;
  difference_begin(d, "only", path);
  json_text(d->json, "in", in_first ? d->a->path : d->b->path);
  json_end(d->json);
}

typedef int visit_pair(struct diff *d, const char *object, const struct h5_entry *a,
                       const struct h5_entry *b);

/* Visit the pairs of two sorted lists until the first difference; an entry of only one list is a
 * difference.  object: NULL for lists of objects, or the object whose attributes are listed.  Of
 * objects, /run and /hashes are skipped.  Of attributes, marks of input files and hashes are
 * skipped if Sagitta wrote both files; the data that the hashes describe are compared. */
static int lists_merge_by_path(struct diff *d, const char *object, const struct h5_listing *a,
                               const struct h5_listing *b, visit_pair *visit)
{
  gidx i = 0, j = 0;
  int hashes = d->a->version && d->b->version;
  while (!d->differs && (i < a->count || j < b->count)) {
    int order = i == a->count   ? 1
                : j == b->count ? -1
                                : strcmp(a->entries[i].path, b->entries[j].path);
    const struct h5_entry *one = order <= 0 ? &a->entries[i] : &b->entries[j];
    int names_hash = object && (hash_names(one->path) || part_is_mark(one->path));
    int is_left_out = path_is_run(one->path) || h5_is_leaves(order <= 0 ? d->a : d->b, one->path);
    int skipped = object ? hashes && names_hash : is_left_out;
    if (order && !skipped)
      only_differs(d, object, one->path, order < 0);
    else if (!skipped)
      TRY(visit(d, object, one, &b->entries[j]));
    i += order <= 0;
    j += order >= 0;
  }
  return OK;
}

static int attribute_visit(struct diff *d, const char *object, const struct h5_entry *a,
                           const struct h5_entry *b)
{
  (void)b;
  return pair_compare(d, object, a->path);
}

static int attributes_compare(struct diff *d, const char *object)
{
  struct h5_listing a = {0}, b = {0};
  int status = h5_list_attributes(d->a, object, &a);
  if (status == OK) status = h5_list_attributes(d->b, object, &b);
  if (status == OK) status = lists_merge_by_path(d, object, &a, &b, attribute_visit);
  h5_listing_free(&a);
  h5_listing_free(&b);
  return status;
}

static const char *const kind_names[] = {
    [ENTRY_GROUP] = "group",    [ENTRY_DATASET] = "dataset",        [ENTRY_TYPE] = "type",
    [ENTRY_SOFT] = "soft link", [ENTRY_EXTERNAL] = "external link", [ENTRY_OTHER] = "other"};

static int object_visit(struct diff *d, const char *none, const struct h5_entry *a,
                        const struct h5_entry *b)
{
  (void)none;
  const char *to_a = a->target ? a->target : "", *to_b = b->target ? b->target : "";
  if (a->kind != b->kind) {
    DIFFER(d, "'%s' is of another kind in '%s'\n", a->path, d->b->path);
    texts_json(d, "kind", a->path, kind_names[a->kind], kind_names[b->kind]);
  } else if (strcmp(to_a, to_b) != 0) {
    DIFFER(d, "'%s' links to '%s' in '%s' and to '%s' in '%s'\n", a->path, to_a, d->a->path, to_b,
           d->b->path);
    texts_json(d, "link", a->path, to_a, to_b);
  }
  if (d->differs || a->kind > ENTRY_TYPE) return OK;
  TRY(attributes_compare(d, a->path));
  if (!d->differs && a->kind == ENTRY_DATASET) TRY(pair_compare(d, a->path, NULL));
  return OK;
}

static int files_compare(struct diff *d)
{
  struct h5_listing a = {0}, b = {0};
  int status = h5_list(d->a, &a);
  if (status == OK) status = h5_list(d->b, &b);
  if (status == OK) status = lists_merge_by_path(d, NULL, &a, &b, object_visit);
  h5_listing_free(&a);
  h5_listing_free(&b);
  return status;
}

int file_diff(const char *a, const char *b, FILE *out, struct json *json, int *equal)
{
  struct h5_file fa = {0}, fb = {0};
  struct diff d = {&fa, &fb, out, json, 0};
  *equal = 0;
  int status = h5_open(&fa, a);
  if (status == OK) status = h5_open(&fb, b);
  if (status == OK) status = files_compare(&d);
  status = h5_close_after(&fa, status);
  TRY(h5_close_after(&fb, status));
  *equal = !d.differs;
  return OK;
}
