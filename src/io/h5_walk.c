/* SPDX-License-Identifier: BSD-3-Clause
 * A walk over hard links, depth first, with bounds: hostile files have cycles, and groups that
 * share members so that their paths multiply.  A group with several links is entered at its
 * first. */
#include "io/h5_inside.h"
#include "io/h5_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 64, OBJECTS_MOST = 1000000, PATH_MOST = 1024 };

struct walk {
  const struct h5_file *file;
  struct h5_listing *list;
  haddr_t *seen; /* groups with several links; owned */
  gidx n_seen, room_seen;
};

static int grow(void *pointer, gidx count, gidx *room, size_t size)
{
  if (count < *room) return OK;
  void *old, *new;
  memcpy(&old, pointer, sizeof old);
  gidx wanted = *room ? 2 * *room : 16;
  new = realloc(old, (size_t)wanted * size);
  CHECK(new, ERR_MEMORY, "cannot allocate %zu bytes", (size_t)wanted * size);
  memcpy(pointer, &new, sizeof new);
  *room = wanted;
  return OK;
}

static int entry_add(struct h5_listing *list, const char *path, enum h5_kind kind,
                     const char *target)
{
  CHECK(list->count < OBJECTS_MOST, ERR_INPUT, "more than %d objects", OBJECTS_MOST);
  TRY(grow(&list->entries, list->count, &list->room, sizeof *list->entries));
  struct h5_entry *e = &list->entries[list->count];
  *e = (struct h5_entry){.path = strdup(path), .kind = kind};
  if (target) e->target = strdup(target);
  list->count++;
  CHECK(e->path && (!target || e->target), ERR_MEMORY, "cannot allocate a name");
  return OK;
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

struct names {
  struct h5_listing list; /* kind tells hard, soft, external */
  int status;
};

static herr_t name_visit(hid_t group, const char *name, const H5L_info_t *info, void *self)
{
  struct names *names = self;
  enum h5_kind kind = info->type == H5L_TYPE_HARD       ? KIND_GROUP
                      : info->type == H5L_TYPE_SOFT     ? KIND_SOFT
                      : info->type == H5L_TYPE_EXTERNAL ? KIND_EXTERNAL
                                                        : KIND_OTHER;
  (void)group;
  names->status = entry_add(&names->list, name, kind, NULL);
  return names->status == OK ? 0 : -1;
}

/* "file:/path" of an external link, the path of a soft one. */
static int target_read(hid_t group, const char *name, enum h5_kind kind, char *out, size_t room)
{
  char value[PATH_MOST] = {0};
  H5L_info_t info;
  TRY_H5(H5Lget_info(group, name, &info, H5P_DEFAULT), ERR_INPUT, "cannot read link '%s'", name);
  CHECK(info.u.val_size < sizeof value, ERR_INPUT, "link '%s' has a target of %zu bytes", name,
        info.u.val_size);
  TRY_H5(H5Lget_val(group, name, value, sizeof value - 1, H5P_DEFAULT), ERR_INPUT,
         "cannot read link '%s'", name);
  const char *file = NULL, *path = value;
  if (kind == KIND_EXTERNAL)
    TRY_H5(H5Lunpack_elink_val(value, info.u.val_size, NULL, &file, &path), ERR_INPUT,
           "cannot read link '%s'", name);
  snprintf(out, room, "%s%s%s", file ? file : "", file ? ":" : "", path);
  return OK;
}

static int group_walk(struct walk *w, hid_t group, const char *path, int depth);

/* Has this group been entered?  Remembers it when it has several links. */
static int was_seen(struct walk *w, const H5O_info_t *info, int *seen)
{
  *seen = 0;
  if (info->rc < 2 && w->list->count > 1) return OK;
  for (gidx i = 0; i < w->n_seen && !*seen; i++) *seen = w->seen[i] == info->addr;
  if (*seen) return OK;
  TRY(grow(&w->seen, w->n_seen, &w->room_seen, sizeof *w->seen));
  w->seen[w->n_seen++] = info->addr;
  return OK;
}

static int object_add(struct walk *w, hid_t object, const char *path, int depth)
{
  H5O_info_t info;
  TRY_H5(H5Oget_info2(object, &info, H5O_INFO_BASIC), ERR_INPUT, "cannot read '%s' of '%s'", path,
         w->file->path);
  enum h5_kind kind = info.type == H5O_TYPE_GROUP            ? KIND_GROUP
                      : info.type == H5O_TYPE_DATASET        ? KIND_DATASET
                      : info.type == H5O_TYPE_NAMED_DATATYPE ? KIND_TYPE
                                                             : KIND_OTHER;
  int seen;
  TRY(entry_add(w->list, path, kind, NULL));
  if (kind != KIND_GROUP) return OK;
  CHECK(depth < DEPTH_MOST, ERR_INPUT, "groups of '%s' are nested deeper than %d", w->file->path,
        DEPTH_MOST);
  TRY(was_seen(w, &info, &seen));
  return seen ? OK : group_walk(w, object, path, depth);
}

static int link_add(struct walk *w, hid_t group, const char *path, const struct h5_entry *link,
                    int depth)
{
  char target[2 * PATH_MOST];
  if (link->kind == KIND_OTHER) return entry_add(w->list, path, KIND_OTHER, NULL);
  if (link->kind != KIND_GROUP) {
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

/* In native order, sorted here: HDF5 1.10 sorts in a table of its own, and crashes on freeing it
 * when a group of many members turns out to be damaged. */
static int group_walk(struct walk *w, hid_t group, const char *path, int depth)
{
  struct names names = {0};
  char member[PATH_MOST];
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
  names->status = entry_add(&names->list, name, KIND_OTHER, NULL);
  return names->status == OK ? 0 : -1;
}

int h5_list_attributes(const struct h5_file *f, const char *object, struct h5_listing *list)
{
  struct names names = {.list = *list};
  TRY(h5_begin());
  hid_t links = h5_access(H5P_LINK_ACCESS);
  herr_t done = H5Aiterate_by_name(f->id, object, H5_INDEX_NAME, H5_ITER_NATIVE, NULL,
                                   attribute_visit, &names, links);
  H5Pclose(links);
  *list = names.list;
  if (names.status) return names.status;
  TRY_H5(done, ERR_INPUT, "cannot read attributes of '%s' of '%s'", object, f->path);
  listing_sort(list);
  return OK;
}
