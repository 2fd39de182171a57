/* SPDX-License-Identifier: BSD-3-Clause
 * Opening datasets, foreign and hostile ones too, and naming their types.  A dataset is opened
 * twice: its creation properties decide the size of the chunk cache, which is set when it is
 * opened. */
#include "io/h5/dataset.h"

#include <string.h>

enum {
  MAX_CACHE = 256 << 20, /* bytes of the chunk cache, unless one chunk is larger */
  SPARSE_FROM = 1 << 30, /* bytes of a dataset; a smaller one may store nothing but fill values */
  SPARSE_RATIO = 2000,   /* largest ratio of claimed to stored bytes; deflate reaches 1032 at
                          * best */
};

size_t h5_type_bytes(enum h5_type type)
{
  static const size_t bytes[] = {4, 8, 4, 8, 2, 2, 0};
  return bytes[type];
}

hid_t h5_type_native(enum h5_type type)
{
  switch (type) {
  case TYPE_I32:
    return H5T_NATIVE_INT32;
  case TYPE_I64:
    return H5T_NATIVE_INT64;
  case TYPE_F32:
    return H5T_NATIVE_FLOAT;
  case TYPE_F64:
    return H5T_NATIVE_DOUBLE;
  default:
    return -1;
  }
}

/* The two 16-bit formats are recognised by the positions of sign, exponent and mantissa, since each
 * program defines its own type. */
static enum h5_type float16_type(hid_t type)
{
  size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
  if (H5Tget_precision(type) != 16 || H5Tget_norm(type) != H5T_NORM_IMPLIED) return TYPE_OTHER;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0)
    return TYPE_OTHER;
  if (sign != 15 || mantissa != 0 || exponent != mantissa_bits) return TYPE_OTHER;
  size_t bias = H5Tget_ebias(type);
  if (exponent_bits == 5 && mantissa_bits == 10 && bias == 15) return TYPE_F16;
  if (exponent_bits == 8 && mantissa_bits == 7 && bias == 127) return TYPE_BF16;
  return TYPE_OTHER;
}

/* An integer type is named after the smaller of our two types that holds all its values. */
static enum h5_type integer_type(hid_t type, size_t bytes)
{
  int is_signed = H5Tget_sign(type) == H5T_SGN_2;
  if (bytes < 4 || (bytes == 4 && is_signed)) return TYPE_I32;
  if (bytes < 8 || (bytes == 8 && is_signed)) return TYPE_I64;
  return TYPE_OTHER;
}

enum h5_type h5_type_of(hid_t type, int *swap)
{
  size_t bytes = H5Tget_size(type);
  const unsigned short probe = 1;
  int is_little = *(const unsigned char *)&probe;
  *swap = H5Tget_order(type) == (is_little ? H5T_ORDER_BE : H5T_ORDER_LE);
  switch (H5Tget_class(type)) {
  case H5T_INTEGER:
    return integer_type(type, bytes);
  case H5T_FLOAT:
    if (bytes == 2) return float16_type(type);
    if (H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0) return TYPE_F32;
    if (H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0) return TYPE_F64;
    return TYPE_OTHER;
  default:
    return TYPE_OTHER;
  }
}

enum h5_type h5_number_type(hid_t type, int *swap)
{
  enum h5_type own = h5_type_of(type, swap);
  int is_whole = H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == 8;
  return own == TYPE_OTHER && is_whole ? TYPE_I64 : own;
}

int h5_space_shape(hid_t space, const char *object, int capacity, int *rank, gidx *shape)
{
  hsize_t dims[H5S_MAX_RANK];
  TRY_H5(*rank = H5Sget_simple_extent_dims(space, dims, NULL), ERR_INPUT, "'%s' has no shape",
         object);
  if (H5Sget_simple_extent_type(space) == H5S_NULL) *rank = 0;
  double values = 1;
  for (int i = 0; i < *rank; i++) {
    values *= (double)dims[i];
    CHECK(dims[i] < 1ull << 62 && values < 0x1p60, ERR_INPUT, "dimension %d of '%s' is %llu" ANEW,
          i, object, (unsigned long long)dims[i]);
    if (i < capacity) shape[i] = (gidx)dims[i];
  }
  return OK;
}

/* Refuse data in other files, and data that is claimed but not stored, since reading it would take
 * for ever. */
static int storage_check(const struct h5_file *f, const char *object, hid_t dataset, hid_t creation)
{
  H5D_layout_t layout = H5Pget_layout(creation);
  CHECK(layout != H5D_VIRTUAL && H5Pget_external_count(creation) <= 0, ERR_INPUT,
        "'%s' of '%s' keeps its data in other files, which are not followed", object, f->path);
  hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
  hssize_t points = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
  double bytes = type < 0 ? 0 : (double)points * (double)H5Tget_size(type);
  if (type >= 0) H5Tclose(type);
  if (space >= 0) H5Sclose(space);
  TRY_H5(points, ERR_INPUT, "cannot read '%s' of '%s'", object, f->path);
  double stored = (double)H5Dget_storage_size(dataset);
  CHECK(bytes < SPARSE_FROM || bytes <= stored * SPARSE_RATIO, ERR_INPUT,
        "'%s' of '%s' claims %.3g bytes and stores %.3g" ANEW, object, f->path, bytes, stored);
  return OK;
}

/* Make the cache hold all chunks of a row, up to MAX_CACHE bytes, so that reading row by row
 * unpacks each chunk once. */
static int cache_set(hid_t dataset, hid_t creation, hid_t access)
{
  hsize_t chunk[H5S_MAX_RANK], dims[H5S_MAX_RANK];
  hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
  int rank = H5Pget_chunk(creation, H5S_MAX_RANK, chunk);
  int known = space >= 0 && type >= 0 && rank > 0 && H5Sget_simple_extent_ndims(space) == rank &&
              H5Sget_simple_extent_dims(space, dims, NULL) >= 0;
  double bytes = known ? (double)H5Tget_size(type) : 0, chunks = 1;
  for (int i = 0; known && i < rank; i++) {
    bytes *= (double)chunk[i];
    if (i > 0) chunks *= (double)(dims[i] / chunk[i] + 1);
  }
  if (type >= 0) H5Tclose(type);
  if (space >= 0) H5Sclose(space);
  double capacity = bytes * chunks > MAX_CACHE ? MAX_CACHE : bytes * chunks;
  if (capacity < bytes) capacity = bytes;
  size_t slots = chunks < 10000 ? (size_t)chunks * 100 + 421 : 1000003;
  return H5Pset_chunk_cache(access, slots, capacity < 1 << 20 ? 1 << 20 : (size_t)capacity, 1.0);
}

/* Check the storage of a dataset, and open it again with the right cache. */
static int dataset_prepare(const struct h5_file *f, const char *object, hid_t *dataset,
                           hid_t access)
{
  hid_t creation = H5Dget_create_plist(*dataset);
  TRY_H5(creation, ERR_INPUT, "cannot read '%s' of '%s'", object, f->path);
  int status = storage_check(f, object, *dataset, creation);
  int cached = 0;
  if (status == OK && H5Pget_layout(creation) == H5D_CHUNKED)
    cached = cache_set(*dataset, creation, access);
  H5Pclose(creation);
  TRY(status);
  TRY_H5(cached, ERR_INPUT, "cannot read '%s' of '%s'", object, f->path);
  H5Dclose(*dataset);
  TRY_H5(*dataset = H5Dopen2(f->id, object, access), ERR_INPUT, "cannot open '%s' of '%s'", object,
         f->path);
  return OK;
}

int h5_dataset_open(const struct h5_file *f, const char *object, hid_t *dataset)
{
  int there;
  TRY(h5_exists(f, object, &there));
  CHECK(there, ERR_INPUT, "no dataset '%s' in '%s'" ANEW, object, f->path);
  hid_t thing;
  TRY_H5(thing = H5Oopen(f->id, object, h5_links()), ERR_INPUT, "cannot open '%s' of '%s'", object,
         f->path);
  H5I_type_t kind = H5Iget_type(thing);
  H5Oclose(thing);
  CHECK(kind == H5I_DATASET, ERR_INPUT, "'%s' of '%s' is a %s, not a dataset" ANEW, object, f->path,
        kind == H5I_GROUP ? "group" : "type");
  hid_t access = h5_access(H5P_DATASET_ACCESS);
  *dataset = H5Dopen2(f->id, object, access);
  int status = *dataset < 0 ? h5_fail(ERR_INPUT, __FILE__, __LINE__, "cannot open '%s' of '%s'",
                                      object, f->path)
                            : dataset_prepare(f, object, dataset, access);
  H5Pclose(access);
  return status;
}
