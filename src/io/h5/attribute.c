/* SPDX-License-Identifier: BSD-3-Clause
 * Attributes: texts, integers and reals, each written by one function and read by another. */
#include "io/h5/dataset.h"
#include "io/h5/vlen_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/sha256.h"

static int object_open(const struct h5_file *f, const char *object, hid_t *id)
{
  TRY(h5_begin());
  TRY_H5(*id = H5Oopen(f->id, object, h5_links()), ERR_INPUT, "cannot open '%s' of '%s'", object,
         f->path);
  return OK;
}

herr_t h5_attribute_put(hid_t object, const char *name, hid_t stored, hid_t memory, int n,
                        const void *value)
{
  hsize_t size = (hsize_t)(n > 0 ? n : 0);
  hid_t space = n < 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &size, NULL);
  htri_t there = H5Aexists(object, name);
  herr_t done = there > 0 ? H5Adelete(object, name) : there;
  hid_t attribute =
      done < 0 ? -1 : H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
  done = attribute < 0 || H5Awrite(attribute, memory, value) < 0 ? -1 : 0;
  if (attribute >= 0 && H5Aclose(attribute) < 0) done = -1;
  if (space >= 0) H5Sclose(space);
  return done;
}

herr_t h5_attribute_put_hash(hid_t object, const char *name, const char *digits)
{
  hid_t type = H5Tcopy(H5T_C_S1);
  herr_t done = type < 0 ? -1 : H5Tset_size(type, SHA256_HEX - 1);
  if (done >= 0) done = H5Tset_strpad(type, H5T_STR_NULLPAD);
  if (done >= 0) done = h5_attribute_put(object, name, type, type, -1, digits);
  if (type >= 0) H5Tclose(type);
  return done;
}

/* Write or replace an attribute; the group is created when it is missing. */
static int attribute_write(const struct h5_file *f, const char *object, const char *name,
                           hid_t stored, hid_t memory, int n, const void *value)
{
  TRY(h5_groups_create(f, object, 1));
  hid_t id;
  TRY(object_open(f, object, &id));
  herr_t done = h5_attribute_put(id, name, stored, memory, n, value);
  int status = done >= 0
                   ? OK
                   : h5_fail(ERR_IO, __FILE__, __LINE__,
                             "cannot write attribute '%s' of '%s' of '%s'", name, object, f->path);
  H5Oclose(id);
  return status;
}

int h5_attribute_text(const struct h5_file *f, const char *object, const char *name, const char *v)
{
  hid_t type = H5Tcopy(H5T_C_S1);
  int status = OK;
  if (type < 0 || H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)
    status = h5_fail(ERR_INTERNAL, __FILE__, __LINE__, "cannot set up HDF5");
  else
    status = attribute_write(f, object, name, type, type, -1, &v);
  if (type >= 0) H5Tclose(type);
  return status;
}

int h5_attribute_hash(const struct h5_file *f, const char *object, const char *name,
                      const char *digits)
{
  hid_t id;
  TRY(object_open(f, object, &id));
  herr_t done = h5_attribute_put_hash(id, name, digits);
  H5Oclose(id);
  TRY_H5(done, ERR_IO, "cannot write attribute '%s' of '%s' of '%s'", name, object, f->path);
  return OK;
}

int h5_attribute_long(const struct h5_file *f, const char *object, const char *name, gidx v)
{
  return attribute_write(f, object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, -1, &v);
}

int h5_attribute_longs(const struct h5_file *f, const char *object, const char *name, int n,
                       const gidx *v)
{
  return attribute_write(f, object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, n, v);
}

int h5_attribute_real(const struct h5_file *f, const char *object, const char *name, real v)
{
  real value = isnan(v) ? nan_canonical() : v;
  return attribute_write(f, object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, -1, &value);
}

/* An attribute that is open for reading. */
struct attribute {
  hid_t id, type;
  gidx values;
};

static void attribute_close(struct attribute *a)
{
  if (a->type > 0) H5Tclose(a->type);
  if (a->id > 0) H5Aclose(a->id);
}

static int attribute_open(const struct h5_file *f, const char *object, const char *name,
                          struct attribute *a)
{
  hid_t id;
  int there;
  *a = (struct attribute){0};
  TRY(h5_attribute_exists(f, object, name, &there));
  CHECK(there, ERR_INPUT, "no attribute '%s' of '%s' in '%s'" ANEW, name, object, f->path);
  TRY(object_open(f, object, &id));
  a->id = H5Aopen(id, name, H5P_DEFAULT);
  H5Oclose(id);
  hid_t space = a->id >= 0 ? H5Aget_space(a->id) : -1;
  a->type = space < 0 ? -1 : H5Aget_type(a->id);
  a->values = space < 0 ? -1 : (gidx)H5Sget_simple_extent_npoints(space);
  if (space >= 0) H5Sclose(space);
  if (a->type >= 0 && a->values >= 0) return OK;
  attribute_close(a);
  return h5_fail(ERR_INPUT, __FILE__, __LINE__, "cannot read attribute '%s' of '%s' of '%s'", name,
                 object, f->path);
}

int h5_attribute_exists(const struct h5_file *f, const char *object, const char *name, int *there)
{
  hid_t id;
  TRY(h5_exists(f, object, there));
  if (!*there) return OK;
  TRY(object_open(f, object, &id));
  htri_t found = H5Aexists(id, name);
  H5Oclose(id);
  TRY_H5(found, ERR_INPUT, "cannot read the attributes of '%s' of '%s'", object, f->path);
  *there = found > 0;
  return OK;
}

/* out <- n values, widened to real or gidx. */
static int numbers_read(const struct h5_file *f, const char *object, const char *name, int n,
                        int is_real, void *out)
{
  struct attribute a;
  int swap = 0;
  TRY(attribute_open(f, object, name, &a));
  enum h5_type type = h5_number_type(a.type, &swap);
  int suits = is_real ? type == TYPE_F32 || type == TYPE_F64 : type == TYPE_I32 || type == TYPE_I64;
  herr_t got = 0;
  if (suits && a.values == n)
    got = H5Aread(a.id, is_real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, out);
  attribute_close(&a);
  CHECK(suits, ERR_INPUT, "attribute '%s' of '%s' of '%s' is not %s" ANEW, name, object, f->path,
        is_real ? "a real number" : "an integer");
  CHECK(a.values == n, ERR_INPUT, "attribute '%s' of '%s' of '%s' has %lld values, not %d" ANEW,
        name, object, f->path, (long long)a.values, n);
  TRY_H5(got, ERR_INPUT, "cannot read attribute '%s' of '%s' of '%s'", name, object, f->path);
  return OK;
}

int h5_read_long(const struct h5_file *f, const char *object, const char *name, gidx *out)
{
  return numbers_read(f, object, name, 1, 0, out);
}

int h5_read_longs(const struct h5_file *f, const char *object, const char *name, int n, gidx *out)
{
  return numbers_read(f, object, name, n, 0, out);
}

int h5_read_real(const struct h5_file *f, const char *object, const char *name, real *out)
{
  return numbers_read(f, object, name, 1, 1, out);
}

/* h5py stores a truth value as an enumeration of one byte. */
static herr_t number_of(const struct attribute *a, real *out)
{
  H5T_class_t class = H5Tget_class(a->type);
  signed char small = 0;
  if (class != H5T_ENUM) return H5Aread(a->id, H5T_NATIVE_DOUBLE, out);
  herr_t got = H5Aread(a->id, a->type, &small);
  *out = small;
  return got;
}

int h5_read_number(const struct h5_file *f, const char *object, const char *name, real *out)
{
  struct attribute a;
  TRY(attribute_open(f, object, name, &a));
  H5T_class_t class = H5Tget_class(a.type);
  int suits =
      class == H5T_INTEGER || class == H5T_FLOAT || (class == H5T_ENUM && H5Tget_size(a.type) == 1);
  gidx values = a.values;
  herr_t got = suits && values == 1 ? number_of(&a, out) : 0;
  attribute_close(&a);
  CHECK(suits && values == 1, ERR_INPUT, "attribute '%s' of '%s' of '%s' is not one number" ANEW,
        name, object, f->path);
  TRY_H5(got, ERR_INPUT, "cannot read attribute '%s' of '%s' of '%s'", name, object, f->path);
  return OK;
}

/* *text <- the text of an attribute, of fixed or variable length; the caller frees it. */
static int text_read(const struct h5_file *f, const struct attribute *a, char **text)
{
  size_t length = 0;
  if (H5Tis_variable_str(a->type) > 0) {
    struct h5_text descriptor;
    TRY_H5(H5Aread(a->id, h5_text_type(), &descriptor), ERR_INPUT, "cannot read a text of '%s'",
           f->path);
    return h5_text_fetch(f, &descriptor, text, &length);
  }
  length = H5Tget_size(a->type);
  *text = calloc(length + 1, 1);
  CHECK(*text, ERR_MEMORY, "cannot allocate %zu bytes", length + 1);
  TRY_H5(H5Aread(a->id, a->type, *text), ERR_INPUT, "cannot read a text of '%s'", f->path);
  return OK;
}

int h5_read_text_any(const struct h5_file *f, const char *object, const char *name, char **text)
{
  struct attribute a;
  *text = NULL;
  TRY(attribute_open(f, object, name, &a));
  int is_text = H5Tget_class(a.type) == H5T_STRING && a.values == 1;
  int status = is_text ? text_read(f, &a, text) : OK;
  attribute_close(&a);
  TRY(status);
  CHECK(is_text && *text, ERR_INPUT, "attribute '%s' of '%s' of '%s' is not a text" ANEW, name,
        object, f->path);
  return OK;
}

int h5_read_text(const struct h5_file *f, const char *object, const char *name, char *out,
                 int capacity)
{
  char *text;
  TRY(h5_read_text_any(f, object, name, &text));
  int fits = strlen(text) < (size_t)capacity;
  if (fits) strcpy(out, text);
  free(text);
  CHECK(fits, ERR_INPUT, "attribute '%s' of '%s' of '%s' is longer than %d bytes" ANEW, name,
        object, f->path, capacity - 1);
  return OK;
}

int h5_attribute_is(const struct h5_file *f, const char *object, const char *name, const char *text,
                    int *same)
{
  struct attribute a;
  TRY(h5_attribute_exists(f, object, name, same));
  if (!*same) return OK;
  TRY(attribute_open(f, object, name, &a));
  char *found = NULL;
  int is_text = H5Tget_class(a.type) == H5T_STRING && a.values == 1;
  int status = is_text ? text_read(f, &a, &found) : OK;
  attribute_close(&a);
  *same = found && strcmp(found, text) == 0;
  free(found);
  return status;
}
