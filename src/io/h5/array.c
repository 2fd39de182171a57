/* SPDX-License-Identifier: BSD-3-Clause
 * Arrays being read: converted in blocks of bounded size. */
#include "io/h5/array_write.h"
#include "io/h5/chunks.h"
#include "io/h5/dataset.h"
#include "io/h5/driver.h"
#include "io/h5/filters.h"
#include "io/h5/leaves.h"
#include "io/h5/unwritten.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/num.h"
#include "base/team.h"

gidx h5_entry_values(const struct h5_array *a)
{
  gidx values = 1;
  for (int i = 1; i < a->rank; i++) values *= a->shape[i];
  return values;
}

/* Fill in shape and type of an array that was opened.  A 16-bit integer with the attribute
 * dtype = "bfloat16" holds the bits of such floats. */
static int describe(const struct h5_file *f, struct h5_array *a)
{
  hid_t space = H5Dget_space(a->id), type = H5Dget_type(a->id);
  int status =
      space < 0 || type < 0
          ? h5_fail(ERR_INPUT, __FILE__, __LINE__, "cannot read '%s' of '%s'", a->object, f->path)
          : h5_space_shape(space, a->object, LENGTH(a->shape), &a->rank, a->shape);
  a->type = status == OK ? h5_number_type(type, &a->swap) : TYPE_OTHER;
  int is_short = a->type == TYPE_I32 && H5Tget_size(type) == 2;
  hid_t native = h5_type_native(a->type);
  int is_half = a->type == TYPE_F16 || a->type == TYPE_BF16;
  a->is_native = is_half ? !a->swap : native >= 0 && H5Tequal(type, native) > 0;
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  TRY(status);
  if (!is_short) return OK;
  int is_bf16;
  TRY(h5_attribute_is(f, a->object, "dtype", "bfloat16", &is_bf16));
  if (is_bf16) a->type = TYPE_BF16, a->is_native = !a->swap;
  return OK;
}

/* Find the address of an array that is stored contiguously, as other programs store it by
 * default. */
static void run_find(hid_t dataset, struct h5_array *a)
{
  hid_t creation = H5Dget_create_plist(dataset);
  int is_run = creation >= 0 && H5Pget_layout(creation) == H5D_CONTIGUOUS;
  if (creation >= 0) H5Pclose(creation);
  if (!is_run || !a->is_native || (gidx)H5Dget_storage_size(dataset) != h5_array_bytes(a)) return;
  haddr_t at = H5Dget_offset(dataset);
  if (at == HADDR_UNDEF) return;
  a->disk = h5_chunks_disk(dataset);
  a->place = (gidx)at;
}

/* Open the digest of an array, if it has one.  Chunks must then be stored as Sagitta stores them,
 * and none may be zero if the digest counts no such chunk. */
static int digest_open(const struct h5_file *f, struct h5_array *a)
{
  if (a->rank < 1 || a->rank > LENGTH(a->shape)) return OK;
  TRY(h5_digest_open(f, a->object, a->id, h5_array_bytes(a), &a->digest));
  if (a->chunks) h5_digest_chunks(a->digest, a->chunks);
  return OK;
}

int h5_array_open(const struct h5_file *f, const char *object, struct h5_array *a)
{
  *a = (struct h5_array){.path = f->path, .input = f->input};
  CHECK(strlen(object) < sizeof a->object, ERR_INPUT,
        "the name '%s' is too long: give a shorter one", object);
  strcpy(a->object, object);
  hid_t dataset = -1;
  int status = h5_dataset_open(f, object, &dataset);
  a->id = dataset < 0 ? 0 : dataset;
  if (status == OK) status = describe(f, a);
  if (status == OK) status = h5_chunks_open(dataset, &a->chunks);
  if (status == OK) run_find(dataset, a);
  if (status == OK) input_file_array(f->input, object, a->type, a->rank, a->shape);
  if (status == OK) status = digest_open(f, a);
  if (status == OK && !a->digest) h5_unwritten_warn(a);
  if (status == OK) return OK;
  h5_array_close(a);
  return status_pass(status, __FILE__, __LINE__);
}

/* start[rank], size[rank] <- the block of entries first .. first + count - 1. */
static void block_shape(const struct h5_array *a, gidx first, gidx count, hsize_t *start,
                        hsize_t *size)
{
  for (int i = 0; i < a->rank; i++) {
    start[i] = i ? 0 : (hsize_t)first;
    size[i] = (hsize_t)(i ? a->shape[i] : count);
  }
}

/* Read without rounding: 16-bit floats as raw bits, any other type as itself or wider. */
static int read_plain(const struct h5_array *a, gidx first, gidx count, enum h5_type as, void *out)
{
  hsize_t start[H5_RANK], size[H5_RANK];
  block_shape(a, first, count, start, size);
  TRY(h5_begin());
  hid_t stored;
  TRY_H5(stored = H5Dget_type(a->id), ERR_INPUT, "cannot read '%s' of '%s'", a->object, a->path);
  hid_t type = as == TYPE_F16 || as == TYPE_BF16 ? stored : h5_type_native(as);
  int is_stored = H5Tequal(type, stored) > 0;
  struct h5_chunks *chunks = is_stored ? a->chunks : NULL;
  input_file_read(a->input);
  herr_t done = h5_block_read(a->id, type, chunks, a->rank, start, size, out);
  int status = done >= 0 ? OK : h5_read_fail(a->id, a->object, a->path);
  if (status) status = input_file_failed(a->input, status);
  H5Tclose(stored);
  uint16_t *bits = out;
  gidx values = count * h5_entry_values(a),
       width = h5_entry_values(a) * (gidx)h5_type_bytes(a->type);
  if (status == OK && is_stored)
    status =
        h5_digest_read(a->digest, a->path, a->object, first * width, (size_t)(count * width), out);
  if (status == OK && a->swap && type == stored)
    for (gidx i = 0; i < values; i++) bits[i] = (uint16_t)(bits[i] << 8 | bits[i] >> 8);
  return status;
}

/* A chunk is read and checked as a whole.  If it is large and few of its entries are wanted, HDF5
 * reads it, since HDF5 keeps it in its cache for later reads. */
static int is_apt(const struct h5_chunks *c, gidx count)
{
  enum { SMALL_BYTES = 4 << 20 };
  return c && (c->bytes <= SMALL_BYTES || count >= c->rows);
}

/* Several threads may call it at once if nothing is hashed.  They then read chunks and contiguous
 * values without HDF5, which only one thread may use at a time; HDF5 is used only for entries that
 * cannot be read in this way, and to report an error. */
static int read_shared(const struct h5_array *a, gidx first, gidx count, enum h5_type as, void *out)
{
  gidx done = 0;
  size_t entry = (size_t)h5_entry_values(a) * h5_type_bytes(as);
  int is_stored = a->type == as && a->is_native;
  int passes = is_stored && team_spare() > 1 && !h5_digest_hashes(a->digest);
  if (passes) input_file_read(a->input);
  if (passes && is_apt(a->chunks, count))
    done = h5_chunks_read(a->chunks, a->id, first, count, out);
  haddr_t place = (haddr_t)(a->place + first * (gidx)entry);
  if (passes && a->disk && h5_driver_read(a->disk, place, (size_t)count * entry, out)) done = count;
  if (done == count) return OK;
  pthread_mutex_lock(&h5_one);
  int status = read_plain(a, first + done, count - done, as, (char *)out + (size_t)done * entry);
  pthread_mutex_unlock(&h5_one);
  return status;
}

void h5_to_f32(enum h5_type from, const void *in, gidx count, float *out)
{
  const double *wide = in;
  if (from == TYPE_F16)
    f16_to_f32(in, count, out);
  else if (from == TYPE_BF16)
    bf16_to_f32(in, count, out);
  else
    for (gidx i = 0; i < count; i++) out[i] = (float)wide[i];
}

/* out <- 64-bit integers as 32-bit integers.  at: the index of the first one in the array.
 * ERR_INPUT: one does not fit. */
static int narrow(const struct h5_array *a, const int64_t *wide, gidx at, gidx count, int32_t *out)
{
  for (gidx i = 0; i < count; i++) {
    CHECK(wide[i] >= INT32_MIN && wide[i] <= INT32_MAX, ERR_INPUT,
          "value %lld of '%s' of '%s' is %lld: values from %d to %d are possible",
          (long long)(at + i), a->object, a->path, (long long)wide[i], INT32_MIN, INT32_MAX);
    out[i] = (int32_t)wide[i];
  }
  return OK;
}

/* Read and round to f32, or narrow to i32, through a buffer of about a megabyte. */
static int read_converted(const struct h5_array *a, gidx first, gidx count, enum h5_type as,
                          void *out)
{
  gidx values = h5_entry_values(a), bytes = values * (gidx)h5_type_bytes(a->type);
  gidx rows = bytes < BLOCK_BYTES && bytes > 0 ? BLOCK_BYTES / bytes : 1;
  rows = imin(rows, count);
  void *buffer = malloc((size_t)(rows * bytes) + 1);
  CHECK(buffer, ERR_MEMORY, "cannot allocate %lld bytes", (long long)(rows * bytes));
  int status = OK;
  for (gidx done = 0; done < count && status == OK; done += rows) {
    gidx n = imin(rows, count - done);
    status = read_shared(a, first + done, n, a->type, buffer);
    if (status == OK && as == TYPE_I32)
      status = narrow(a, buffer, (first + done) * values, n * values, (idx *)out + done * values);
    else if (status == OK)
      h5_to_f32(a->type, buffer, n * values, (float *)out + done * values);
  }
  free(buffer);
  return status;
}

/* Can an array of one type be read as another? */
static int converts(enum h5_type from, enum h5_type as)
{
  if (from == as) return from != TYPE_OTHER;
  if (as == TYPE_F32) return from == TYPE_F64 || from == TYPE_F16 || from == TYPE_BF16;
  return (as == TYPE_F64 && from == TYPE_F32) || (as == TYPE_I64 && from == TYPE_I32) ||
         (as == TYPE_I32 && from == TYPE_I64);
}

int h5_array_read(const struct h5_array *a, gidx first, gidx count, enum h5_type as, void *out)
{
  CHECK(a->rank >= 1 && a->rank <= LENGTH(a->shape), ERR_INPUT,
        "'%s' of '%s' has %d dimensions" ANEW, a->object, a->path, a->rank);
  CHECK(first >= 0 && count >= 0 && first <= a->shape[0] - count, ERR_INTERNAL,
        "entries %lld + %lld of '%s' are beyond its end", (long long)first, (long long)count,
        a->object);
  CHECK(converts(a->type, as), ERR_INPUT, "'%s' of '%s' has a type that cannot be used here" ANEW,
        a->object, a->path);
  if (count == 0 || h5_entry_values(a) == 0) return OK;
  int is_shorter = (as == TYPE_F32 && a->type != TYPE_F32) || (as == TYPE_I32 && a->type != as);
  if (is_shorter) return read_converted(a, first, count, as, out);
  return read_shared(a, first, count, as, out);
}

gidx h5_array_bytes(const struct h5_array *a)
{
  return a->rank < 1 || a->rank > LENGTH(a->shape)
             ? 0
             : a->shape[0] * h5_entry_values(a) * (gidx)h5_type_bytes(a->type);
}

gidx h5_array_unit(const struct h5_array *a)
{
  return a->chunks ? a->chunks->rows : 0;
}

gidx h5_array_chunk(const struct h5_array *a)
{
  hsize_t chunk[H5_RANK];
  hid_t creation = H5Dget_create_plist(a->id);
  int known = creation >= 0 && H5Pget_layout(creation) == H5D_CHUNKED &&
              H5Pget_chunk(creation, H5_RANK, chunk) == a->rank;
  if (creation >= 0) H5Pclose(creation);
  return known ? (gidx)chunk[0] : 0;
}

void h5_array_stream(struct h5_array *a)
{
  h5_digest_stop(a->digest);
}

int h5_array_hash(const struct h5_array *a, gidx first, gidx count, const void *values)
{
  gidx width = h5_entry_values(a) * (gidx)h5_type_bytes(a->type);
  TRY(h5_digest_read(a->digest, a->path, a->object, first * width, (size_t)(count * width),
                     values));
  return OK;
}

int h5_array_is_hashed(const struct h5_array *a)
{
  return a->digest && a->digest->next == a->digest->end;
}

int h5_array_is_whole(const struct h5_array *a)
{
  return h5_leaves_agree(a->digest, a->chunks, a->id);
}

int h5_array_leaves(const struct h5_file *f, const struct h5_array *a, unsigned char **leaves)
{
  *leaves = NULL;
  if (!a->digest || !a->digest->is_tree) return OK;
  return h5_leaves_read(f, a->object, a->digest, leaves);
}

/* Open or close an array while other threads read and write entries. */
static int open_beside(const struct h5_file *f, const char *object, struct h5_array *a)
{
  pthread_mutex_lock(&h5_one);
  int status = h5_array_open(f, object, a);
  pthread_mutex_unlock(&h5_one);
  return status;
}

static int close_beside(struct h5_array *a)
{
  pthread_mutex_lock(&h5_one);
  int status = h5_array_close(a);
  pthread_mutex_unlock(&h5_one);
  return status;
}

int h5_open_beside(struct h5_file *f, const char *path, const char *object, struct h5_array *a)
{
  pthread_mutex_lock(&h5_one);
  int status = h5_open(f, path);
  if (!status) status = h5_array_open(f, object, a);
  pthread_mutex_unlock(&h5_one);
  return status;
}

int h5_close_beside(struct h5_file *f, struct h5_array *a)
{
  pthread_mutex_lock(&h5_one);
  int status = h5_array_close(a), closed = h5_close(f);
  pthread_mutex_unlock(&h5_one);
  return status ? status : closed;
}

/* Read all entries in order, after which the hash is compared. */
static int read_in_order(const struct h5_array *a)
{
  size_t entry = (size_t)h5_entry_values(a) * h5_type_bytes(a->type);
  gidx rows = imax(1, h5_array_unit(a));
  void *buffer = malloc((size_t)rows * entry + 1);
  CHECK(buffer, ERR_MEMORY, "cannot allocate %lld bytes", (long long)rows * (gidx)entry);
  int status = OK;
  for (gidx first = 0; first < a->shape[0] && !status; first += rows)
    status = h5_array_read(a, first, imin(rows, a->shape[0] - first), a->type, buffer);
  free(buffer);
  return status;
}

int h5_array_confirm(const struct h5_file *f, const char *object)
{
  struct h5_array a;
  TRY(open_beside(f, object, &a));
  int is_known = !h5_digest_hashes(a.digest) || h5_array_is_whole(&a);
  TRY(close_beside(&a));
  if (is_known) return OK;
  TRY(open_beside(f, object, &a)); /* reading it again gives the error */
  int status = read_in_order(&a), closed = close_beside(&a);
  return status ? status : closed;
}

int h5_array_close(struct h5_array *a)
{
  int status = h5_array_end(a), is_whole = !a->pending || a->next == a->shape[0];
  hid_t id = a->id;
  free(a->pending);
  free(a->chunks);
  free(a->placed);
  h5_digest_free(&a->digest);
  a->id = 0;
  a->pending = NULL;
  a->chunks = NULL;
  a->placed = NULL;
  if (id && H5Dclose(id) < 0 && status == OK)
    status = h5_fail(ERR_IO, __FILE__, __LINE__, "cannot close '%s' of '%s'", a->object, a->path);
  TRY(status);
  CHECK(is_whole, ERR_INTERNAL, "'%s' of '%s' ends at entry %lld of %lld", a->object, a->path,
        (long long)a->next, (long long)a->shape[0]);
  return OK;
}
