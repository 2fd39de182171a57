/* SPDX-License-Identifier: BSD-3-Clause
 * A selection is a range of whole rows if it fills its bounding box, and if the box spans all
 * columns. */
#include "io/h5/virtual.h"

#include <stdlib.h>

#include "io/h5/dataset.h"

/* Rows *first .. *last of a selection of p columns; 0: it is not a contiguous range of whole
 * rows. */
static int run_find(hid_t space, gidx p, gidx *first, gidx *last)
{
  hsize_t from[2], to[2], dims[2];
  if (H5Sget_simple_extent_ndims(space) != 2) return 0;
  if (H5Sget_simple_extent_dims(space, dims, NULL) < 0 || dims[1] != (hsize_t)p) return 0;
  if (H5Sget_select_bounds(space, from, to) < 0) return 0;
  *first = (gidx)from[0];
  *last = (gidx)to[0];
  double points = (double)(to[0] - from[0] + 1) * (double)p;
  return from[1] == 0 && to[1] + 1 == (hsize_t)p && to[0] < 1ull << 60 &&
         (double)H5Sget_select_npoints(space) == points;
}

/* *name <- the name of source i that get() returns, of its file or of its dataset. */
static int name_read(ssize_t (*get)(hid_t, size_t, char *, size_t), hid_t list, gidx i,
                     const struct h5_file *f, char **name)
{
  ssize_t length = get(list, (size_t)i, NULL, 0);
  TRY_H5(length, ERR_INPUT, "cannot read the sources of a virtual dataset of '%s'", f->path);
  *name = calloc(1, (size_t)length + 1);
  CHECK(*name, ERR_MEMORY, "cannot allocate %zd bytes", length);
  TRY_H5(get(list, (size_t)i, *name, (size_t)length + 1), ERR_INPUT,
         "cannot read the sources of a virtual dataset of '%s'", f->path);
  return OK;
}

static int source_read(const struct h5_file *f, const char *object, hid_t list, gidx i,
                       struct h5_sources *s)
{
  struct h5_source *source = &s->list[i];
  gidx last, from_last;
  TRY(name_read(H5Pget_virtual_filename, list, i, f, &source->file));
  TRY(name_read(H5Pget_virtual_dsetname, list, i, f, &source->object));
  hid_t to = H5Pget_virtual_vspace(list, (size_t)i),
        from = H5Pget_virtual_srcspace(list, (size_t)i);
  int is_run = to >= 0 && from >= 0 && run_find(to, s->shape[1], &source->first, &last);
  source->is_whole = is_run && H5Sget_select_type(from) == H5S_SEL_ALL; /* all of a source, whose
                                                                         * shape is not known yet */
  if (is_run && !source->is_whole)
    is_run = run_find(from, s->shape[1], &source->from, &from_last) &&
             last - source->first == from_last - source->from;
  if (to >= 0) H5Sclose(to);
  if (from >= 0) H5Sclose(from);
  CHECK(is_run, ERR_INPUT,
        "source %lld of the virtual '%s' of '%s', '%s', is not a run of whole rows of a matrix: "
        "name the files themselves in a list, as --rows @LIST",
        (long long)i, object, f->path, source->file);
  source->count = last - source->first + 1;
  return OK;
}

static int source_order(const void *a, const void *b)
{
  gidx x = ((const struct h5_source *)a)->first, y = ((const struct h5_source *)b)->first;
  return x < y ? -1 : x > y;
}

/* Check that the sources follow each other from the first row to the last. */
static int cover_check(const struct h5_file *f, const char *object, const struct h5_sources *s)
{
  gidx at = 0;
  for (gidx i = 0; i <= s->count; i++) {
    gidx next = i < s->count ? s->list[i].first : s->shape[0];
    CHECK(next == at, ERR_INPUT, "row %lld of the virtual '%s' of '%s' comes from %s source",
          (long long)(next < at ? next : at), object, f->path, next < at ? "more than one" : "no");
    if (i < s->count) at += s->list[i].count;
  }
  return OK;
}

/* Take the shape from the first mapping.  HDF5 may open the sources if it is asked for the shape of
 * the dataset itself. */
static int shape_read(const struct h5_file *f, const char *object, hid_t dataset, hid_t list,
                      struct h5_sources *s)
{
  hid_t space = H5Pget_virtual_vspace(list, 0), type = H5Dget_type(dataset);
  int rank = 0, swap, status = OK;
  s->type = type < 0 ? TYPE_OTHER : h5_type_of(type, &swap);
  if (space >= 0) status = h5_space_shape(space, object, LENGTH(s->shape), &rank, s->shape);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  TRY(status);
  CHECK(rank == 2, ERR_INPUT, "the virtual '%s' of '%s' has %d dimensions, rows have 2", object,
        f->path, rank);
  input_file_array(f->input, object, s->type, rank, s->shape);
  return OK;
}

static int sources_read(const struct h5_file *f, const char *object, hid_t dataset, hid_t list,
                        struct h5_sources *s)
{
  size_t count;
  if (H5Pget_layout(list) != H5D_VIRTUAL) return OK;
  TRY_H5(H5Pget_virtual_count(list, &count), ERR_INPUT, "cannot read '%s' of '%s'", object,
         f->path);
  CHECK(count > 0, ERR_INPUT,
        "the virtual '%s' of '%s' has no sources: name the files themselves, --rows @LIST", object,
        f->path);
  TRY(shape_read(f, object, dataset, list, s));
  s->list = calloc(count, sizeof *s->list);
  CHECK(s->list, ERR_MEMORY, "cannot allocate %zu sources", count);
  s->count = (gidx)count;
  for (gidx i = 0; i < s->count; i++) TRY(source_read(f, object, list, i, s));
  qsort(s->list, count, sizeof *s->list, source_order);
  return cover_check(f, object, s);
}

int h5_sources_read(const struct h5_file *f, const char *object, struct h5_sources *s)
{
  *s = (struct h5_sources){0};
  TRY(h5_begin());
  hid_t thing, list = -1;
  TRY_H5(thing = H5Oopen(f->id, object, h5_links()), ERR_INPUT, "cannot open '%s' of '%s'", object,
         f->path);
  int is_dataset = H5Iget_type(thing) == H5I_DATASET, status = OK;
  if (is_dataset) list = H5Dget_create_plist(thing);
  if (is_dataset && list < 0)
    status = h5_fail(ERR_INPUT, __FILE__, __LINE__, "cannot read '%s' of '%s'", object, f->path);
  if (list >= 0) status = sources_read(f, object, thing, list, s);
  if (list >= 0) H5Pclose(list);
  H5Oclose(thing);
  return status;
}

void h5_sources_free(struct h5_sources *s)
{
  for (gidx i = 0; i < s->count; i++) {
    free(s->list[i].file);
    free(s->list[i].object);
  }
  free(s->list);
  *s = (struct h5_sources){0};
}
