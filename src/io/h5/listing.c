/* SPDX-License-Identifier: BSD-3-Clause
 * A depth-first walk over hard links.  Hostile files have cycles, and groups that share members so
 * that the number of paths explodes.  So a group with several links is entered once, and depth and
 * number of objects are bounded. */
#include "io/h5/h5_impl.h"
#include "io/h5/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_OBJECTS = 1000000, MAX_PATH = 1024 };

struct walk {
  const struct h5_file *file;
  struct h5_listing *list;
  haddr_t *seen; /* groups with several links; owned */
  gidx n_seen, capacity_seen;
};

/* Make the array *(T **)pointer, of items of size bytes, hold one more than count. */
static int grow(void *pointer, gidx count, gidx *capacity, size_t size)
{
  if (count < *capacity) return OK;
  void *old, *new;
  memcpy(&old, pointer, sizeof old);
  gidx wanted = *capacity ? 2 * *capacity : 16;
  new = realloc(old, (size_t)wanted * size);
  CHECK(new, ERR_MEMORY, "cannot allocate %zu bytes", (size_t)wanted * size);
  memcpy(pointer, &new, sizeof new);
  *capacity = wanted;
  return OK;
}

static int entry_add(struct h5_listing *list, const char *path, enum h5_entry_kind kind,
                     const char *target)
{
  CHECK(list->count < MAX_OBJECTS, ERR_INPUT, "more than %d objects", MAX_OBJECTS);
  TRY(grow(&list->entries, list->count, &list->capacity, sizeof *list->entries));
  struct h5_entry e = {.path = strdup(path), .kind = kind};
  if (target) e.target = strdup(target);
  if (e.path && (e.target || !target)) {
    list->entries[list->count++] = e;
    return OK;
  }
  free(e.path);
  free(e.target);
  FAIL(ERR_MEMORY, "cannot allocate a name");
}

static int by_path(const void *a, const void *b)
{
  return strcmp(((const struct h5_entry *)a)->path, ((const struct h5_entry *)b)->path);
}

void h5_listing_free(struct h5_listing *list)
{
  for (gidx i = 0; i < list->count; i++) {
    free(list->entries[i].path);
    free(list->entries[i].target);
  }
  free(list->entries);
  *list = (struct h5_listing){0};
}

/* The names of the links or attributes that HDF5 visits.  Every hard link has the kind
 * ENTRY_GROUP. */
struct names {
  struct h5_listing list;
  int status;
};

static herr_t name_visit(hid_t group, const char *name, const H5L_info_t *info, void *self)
{
  struct names *names = self;
  enum h5_entry_kind kind = info->type == H5L_TYPE_HARD       ? ENTRY_GROUP
                            : info->type == H5L_TYPE_SOFT     ? ENTRY_SOFT
                            : info->type == H5L_TYPE_EXTERNAL ? ENTRY_EXTERNAL
                                                              : ENTRY_OTHER;
  (void)group;
  names->status = entry_add(&names->list, name, kind, NULL);
  return names->status == OK ? 0 : -1;
}

/* out <- the path that a soft link points to, or "file:/path" of an external one. */
static int target_read(hid_t group, const char *name, enum h5_entry_kind kind, char *out,
                       size_t capacity)
{
  char value[MAX_PATH] = {0};
  H5L_info_t info;
  TRY_H5(H5Lget_info(group, name, &info, H5P_DEFAULT), ERR_INPUT, "cannot read link '%s'", name);
  CHECK(info.u.val_size < sizeof value, ERR_INPUT, "link '%s' has a target of %zu bytes", name,
        info.u.val_size);
  TRY_H5(H5Lget_val(group, name, value, sizeof value - 1, H5P_DEFAULT), ERR_INPUT,
         "cannot read link '%s'", name);
  const char *file = NULL, *path = value;
  if (kind == ENTRY_EXTERNAL)
    TRY_H5(H5Lunpack_elink_val(value, info.u.val_size, NULL, &file, &path), ERR_INPUT,
           "cannot read link '%s'", name);
  snprintf(out, capacity, "%s%s%s", file ? file : "", file ? ":" : "", path);
  return OK;
}

static int group_visit(struct walk *w, hid_t group, const char *path, int depth);

/* *seen <- whether this group has been entered; the root, and a group with several links, are
 * remembered. */
static int was_seen(struct walk *w, const H5O_info_t *info, int *seen)
{
  *seen = 0;
  if (info->rc < 2 && w->list->count > 1) return OK;
  for (gidx i = 0; i < w->n_seen && !*seen; i++) *seen = w->seen[i] == info->addr;
  if (*seen) return OK;
  TRY(grow(&w->seen, w->n_seen, &w->capacity_seen, sizeof *w->seen));
  w->seen[w->n_seen++] = info->addr;
  return OK;
}

/* Add an object that was reached by a hard link, and the objects in it. */
static int object_add(struct walk *w, hid_t object, const char *path, int depth)
{
  H5O_info_t info;
  TRY_H5(H5Oget_info2(object, &info, H5O_INFO_ALL), ERR_INPUT, "cannot read '%s' of '%s'", path,
         w->file->path);
  enum h5_entry_kind kind = info.type == H5O_TYPE_GROUP            ? ENTRY_GROUP
                            : info.type == H5O_TYPE_DATASET        ? ENTRY_DATASET
                            : info.type == H5O_TYPE_NAMED_DATATYPE ? ENTRY_TYPE
                                                                   : ENTRY_OTHER;
  int seen;
  TRY(entry_add(w->list, path, kind, NULL));
  if (kind != ENTRY_GROUP) return OK;
  CHECK(depth < MAX_DEPTH, ERR_INPUT, "groups of '%s' are nested deeper than %d", w->file->path,
        MAX_DEPTH);
  TRY(was_seen(w, &info, &seen));
  return seen ? OK : group_visit(w, object, path, depth);
}

/* Add the object to which a hard link leads, or the link itself if it is not a hard link. */
static int link_add(struct walk *w, hid_t group, const char *path, const struct h5_entry *link,
                    int depth)
{
  char target[2 * MAX_PATH];
  if (link->kind == ENTRY_OTHER) return entry_add(w->list, path, ENTRY_OTHER, NULL);
  if (link->kind != ENTRY_GROUP) {
    TRY(target_read(group, link->path, link->kind, target, sizeof target));
    return entry_add(w->list, path, link->kind, target);
  }
  hid_t object = H5Oopen(group, link->path, H5P_DEFAULT);
  TRY_H5(object, ERR_INPUT, "cannot open '%s' of '%s'", path, w->file->path);
  int status = object_add(w, object, path, depth);
  H5Oclose(object);
  return status;
}

static void listing_sort(struct h5_listing *list)
{
  if (list->count) qsort(list->entries, (size_t)list->count, sizeof *list->entries, by_path);
}

/* Add the members of a group.  HDF5 visits them in native order, and they are sorted here.  If HDF5
 * 1.10 sorted them, it would crash on a damaged group of many members, when it frees its table of
 * them. */
static int group_visit(struct walk *w, hid_t group, const char *path, int depth)
{
  struct names names = {0};
  char member[MAX_PATH];
  int status = OK;
  if (H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, name_visit, &names) < 0)
    status = names.status ? names.status
                          : h5_fail(ERR_INPUT, __FILE__, __LINE__, "cannot read group '%s' of '%s'",
                                    path, w->file->path);
  listing_sort(&names.list);
  for (gidx i = 0; i < names.list.count && status == OK; i++) {
    const struct h5_entry *link = &names.list.entries[i];
    int length = snprintf(member, sizeof member, "%s/%s", depth ? path : "", link->path);
    if (length < (int)sizeof member)
      status = link_add(w, group, member, link, depth + 1);
    else
      status = status_fail(ERR_INPUT, __FILE__, __LINE__, "a path of '%s' has %d bytes",
                           w->file->path, length);
  }
  h5_listing_free(&names.list);
  return status;
}

int h5_list(const struct h5_file *f, struct h5_listing *list)
{
  struct walk w = {.file = f, .list = list};
  hid_t root;
  TRY(h5_begin());
  TRY_H5(root = H5Oopen(f->id, "/", H5P_DEFAULT), ERR_INPUT, "cannot open '/' of '%s'", f->path);
  int status = object_add(&w, root, "/", 0);
  H5Oclose(root);
  free(w.seen);
  listing_sort(list);
  return status;
}

static herr_t attribute_visit(hid_t object, const char *name, const H5A_info_t *info, void *self)
{
  struct names *names = self;
  (void)object, (void)info;
  names->status = entry_add(&names->list, name, ENTRY_OTHER, NULL);
  return names->status == OK ? 0 : -1;
}

int h5_list_attributes(const struct h5_file *f, const char *object, struct h5_listing *list)
{
  struct names names = {.list = *list};
  TRY(h5_begin());
  herr_t done = H5Aiterate_by_name(f->id, object, H5_INDEX_NAME, H5_ITER_NATIVE, NULL,
                                   attribute_visit, &names, h5_links());
  *list = names.list;
  if (names.status) return names.status;
  TRY_H5(done, ERR_INPUT, "cannot read attributes of '%s' of '%s'", object, f->path);
  listing_sort(list);
  return OK;
}
