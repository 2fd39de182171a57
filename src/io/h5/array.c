/* SPDX-License-Identifier: BSD-3-Clause
 * Arrays in blocks.  Writing fills whole chunks in memory, so that each is stored once and the
 * bytes of the file do not depend on the blocks.  Reading converts in blocks of bounded size. */
#include "io/h5/chunks.h"
#include "io/h5/dataset.h"
#include "io/h5/seal.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/num.h"
#include "base/team.h"

/* Values of an entry of the first dimension. */
static gidx row_values(const struct h5_array *a)
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
  a->type = status == OK ? h5_type_of(type, &a->swap) : TYPE_OTHER;
  int is_short = a->type == TYPE_I32 && H5Tget_size(type) == 2;
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  TRY(status);
  if (!is_short) return OK;
  int is_bf16;
  TRY(h5_attribute_is(f, a->object, "dtype", "bfloat16", &is_bf16));
  if (is_bf16) a->type = TYPE_BF16;
  return OK;
}

/* Every chunk of a sealed array is as it was written, and zero only where the seal knows of one. */
static int seal_open(const struct h5_file *f, struct h5_array *a)
{
  if (a->rank < 1 || a->rank > LENGTH(a->shape)) return OK;
  TRY(h5_seal_open(f, a->object, h5_array_bytes(a), &a->seal));
  if (a->chunks) h5_seal_chunks(a->seal, a->chunks);
  return OK;
}

int h5_array_open(const struct h5_file *f, const char *object, struct h5_array *a)
{
  *a = (struct h5_array){.path = f->path, .input = f->input};
  CHECK(strlen(object) < sizeof a->object, ERR_INPUT, "the name '%s' is too long", object);
  strcpy(a->object, object);
  hid_t dataset = -1;
  int status = h5_dataset_open(f, object, &dataset);
  a->id = dataset < 0 ? 0 : dataset;
  if (status == OK) status = describe(f, a);
  if (status == OK) status = h5_chunks_open(dataset, &a->chunks);
  if (status == OK) input_file_array(f->input, object, a->type, a->rank, a->shape);
  if (status == OK) status = seal_open(f, a);
  if (status == OK) return OK;
  h5_array_close(a);
  return status_pass(status, __FILE__, __LINE__);
}

int h5_array_create(const struct h5_file *f, const char *object, enum h5_type type, int rank,
                    const gidx *shape, struct h5_array *a)
{
  return h5_array_create_chunked(f, object, type, rank, shape, 0, a);
}

/* HDF5 1.10 has no name for binary16; this is the one that h5py makes. */
static hid_t half_type(void)
{
  hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  if (type >= 0 && H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(type, 2) >= 0 &&
      H5Tset_ebias(type, 15) >= 0)
    return type;
  if (type >= 0) H5Tclose(type);
  return -1;
}

/* HDF5's type in the file, a copy to close. */
static hid_t stored_type(enum h5_type type)
{
  switch (type) {
  case TYPE_I32:
    return H5Tcopy(H5T_STD_I32LE);
  case TYPE_I64:
    return H5Tcopy(H5T_STD_I64LE);
  case TYPE_F32:
    return H5Tcopy(H5T_IEEE_F32LE);
  case TYPE_F64:
    return H5Tcopy(H5T_IEEE_F64LE);
  case TYPE_F16:
    return half_type();
  case TYPE_BF16:
    return H5Tcopy(H5T_STD_U16LE);
  default:
    return -1;
  }
}

/* *creation, *access <- how a dataset of ours is stored and opened.  It keeps no times.  Its chunk
 * cache holds nothing, since only whole chunks are written. */
static int creation_lists(const struct h5_array *a, hid_t *creation, hid_t *access)
{
  hsize_t chunk[H5_RANK];
  for (int i = 0; i < a->rank; i++) chunk[i] = a->shape[i] > 0 ? (hsize_t)a->shape[i] : 1;
  chunk[0] = (hsize_t)a->chunk_rows;
  TRY_H5(*creation = H5Pcreate(H5P_DATASET_CREATE), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(*access = h5_access(H5P_DATASET_ACCESS), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(H5Pset_chunk(*creation, a->rank, chunk), ERR_INTERNAL, "cannot chunk '%s'", a->object);
  TRY_H5(H5Pset_fletcher32(*creation), ERR_INTERNAL, "no checksums in this HDF5");
  TRY_H5(H5Pset_obj_track_times(*creation, 0), ERR_INTERNAL, "cannot set up HDF5");
  TRY_H5(H5Pset_chunk_cache(*access, 1, 0, 1.0), ERR_INTERNAL, "cannot set up HDF5");
  return OK;
}

static int dataset_create(const struct h5_file *f, struct h5_array *a)
{
  hsize_t dims[H5_RANK], most[H5_RANK];
  for (int i = 0; i < a->rank; i++) dims[i] = most[i] = (hsize_t)a->shape[i];
  if (a->grows) most[0] = H5S_UNLIMITED;
  hid_t creation = -1, access = -1, space = H5Screate_simple(a->rank, dims, most), dataset = -1;
  hid_t type = stored_type(a->type);
  int status = creation_lists(a, &creation, &access);
  if (status == OK)
    dataset = H5Dcreate2(f->id, a->object, type, space, H5P_DEFAULT, creation, access);
  if (type >= 0) H5Tclose(type);
  if (creation >= 0) H5Pclose(creation);
  if (access >= 0) H5Pclose(access);
  if (space >= 0) H5Sclose(space);
  TRY(status);
  TRY_H5(dataset, ERR_IO, "cannot create '%s' of '%s'", a->object, f->path);
  a->id = dataset;
  return a->type == TYPE_BF16 ? h5_attribute_text(f, a->object, "dtype", "bfloat16") : OK;
}

/* Entries of a chunk of at most a megabyte; there are as many chunks as of full ones, all of
 * one size, so that the last one, which is filled up, is nearly full too. */
static gidx chunk_rows_even(gidx entries, double entry_bytes)
{
  gidx most = entry_bytes > 0 && entry_bytes < BLOCK_BYTES ? (gidx)(BLOCK_BYTES / entry_bytes) : 1;
  gidx chunks = imax((entries + most - 1) / most, 1);
  return (entries + chunks - 1) / chunks;
}

int h5_array_create_chunked(const struct h5_file *f, const char *object, enum h5_type type,
                            int rank, const gidx *shape, gidx rows_per_chunk, struct h5_array *a)
{
  *a = (struct h5_array){.path = f->path, .type = type, .rank = rank};
  CHECK(strlen(object) < sizeof a->object && rank >= 1 && rank <= LENGTH(a->shape) &&
            type != TYPE_OTHER,
        ERR_INTERNAL, "cannot create '%s' of rank %d", object, rank);
  strcpy(a->object, object);
  memcpy(a->shape, shape, (size_t)rank * sizeof shape[0]);
  a->grows = shape[0] == H5_GROWS;
  if (a->grows) a->shape[0] = 0;
  double row = (double)h5_type_bytes(type);
  for (int i = 1; i < rank; i++) row *= (double)shape[i];
  gidx rows = a->grows             ? rows_per_chunk
              : rows_per_chunk > 0 ? imin(rows_per_chunk, shape[0])
                                   : chunk_rows_even(shape[0], row);
  a->chunk_rows = imax(rows, 1);
  CHECK(row * (double)a->chunk_rows < 0xffffffffu, ERR_INTERNAL, "a row of '%s' has %.3g bytes",
        object, row);
  TRY(h5_groups_create(f, object, 0));
  a->pending = malloc((size_t)row * (size_t)a->chunk_rows + H5_SUM_BYTES);
  CHECK(a->pending, ERR_MEMORY, "cannot allocate %.0f bytes", row * (double)a->chunk_rows);
  TRY(h5_seal_begin(&a->seal));
  return dataset_create(f, a);
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
  int status = done >= 0 ? OK
                         : h5_fail(ERR_INPUT, __FILE__, __LINE__, "cannot read '%s' of '%s'",
                                   a->object, a->path);
  if (status) status = input_file_failed(a->input, status);
  H5Tclose(stored);
  uint16_t *bits = out;
  gidx values = count * row_values(a), width = row_values(a) * (gidx)h5_type_bytes(a->type);
  if (status == OK && is_stored)
    status = h5_seal_read(a->seal, a->path, a->object, first * width, (size_t)(count * width), out);
  if (status == OK && a->swap && type == stored)
    for (gidx i = 0; i < values; i++) bits[i] = (uint16_t)(bits[i] << 8 | bits[i] >> 8);
  return status;
}

/* Any threads may call it at once, where nothing is hashed.  If there are several, they read chunks
 * past HDF5, which has one user at a time. */
static int read_shared(const struct h5_array *a, gidx first, gidx count, enum h5_type as, void *out)
{
  gidx done = 0;
  size_t entry = (size_t)row_values(a) * h5_type_bytes(as);
  int is_float = as == TYPE_F32 || as == TYPE_F64 || as == TYPE_F16 || as == TYPE_BF16;
  int is_stored = is_float && a->type == as && !a->swap;
  if (a->chunks && is_stored && team_spare() > 1 && !h5_seal_hashes(a->seal)) {
    input_file_read(a->input);
    done = h5_chunks_read(a->chunks, a->id, first, count, out);
  }
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

/* Read and round to f32, through a buffer of about a megabyte. */
static int read_converted(const struct h5_array *a, gidx first, gidx count, float *out)
{
  gidx values = row_values(a), bytes = values * (gidx)h5_type_bytes(a->type);
  gidx rows = bytes < BLOCK_BYTES && bytes > 0 ? BLOCK_BYTES / bytes : 1;
  rows = imin(rows, count);
  void *buffer = malloc((size_t)(rows * bytes) + 1);
  CHECK(buffer, ERR_MEMORY, "cannot allocate %lld bytes", (long long)(rows * bytes));
  int status = OK;
  for (gidx done = 0; done < count && status == OK; done += rows) {
    gidx n = imin(rows, count - done);
    status = read_shared(a, first + done, n, a->type, buffer);
    if (status == OK) h5_to_f32(a->type, buffer, n * values, out + done * values);
  }
  free(buffer);
  return status;
}

/* Can an array of one type be read as another? */
static int converts(enum h5_type from, enum h5_type as)
{
  if (from == as) return from != TYPE_OTHER;
  if (as == TYPE_F32) return from == TYPE_F64 || from == TYPE_F16 || from == TYPE_BF16;
  return (as == TYPE_F64 && from == TYPE_F32) || (as == TYPE_I64 && from == TYPE_I32);
}

int h5_array_read(const struct h5_array *a, gidx first, gidx count, enum h5_type as, void *out)
{
  CHECK(a->rank >= 1 && a->rank <= LENGTH(a->shape), ERR_INPUT, "'%s' of '%s' has %d dimensions",
        a->object, a->path, a->rank);
  CHECK(first >= 0 && count >= 0 && first <= a->shape[0] - count, ERR_INTERNAL,
        "entries %lld + %lld of '%s' are beyond its end", (long long)first, (long long)count,
        a->object);
  CHECK(converts(a->type, as), ERR_INPUT, "'%s' of '%s' has a type that cannot be used here",
        a->object, a->path);
  if (count == 0 || row_values(a) == 0) return OK;
  if (as == TYPE_F32 && a->type != TYPE_F32) return read_converted(a, first, count, out);
  return read_shared(a, first, count, as, out);
}

gidx h5_array_bytes(const struct h5_array *a)
{
  return a->rank < 1 || a->rank > LENGTH(a->shape)
             ? 0
             : a->shape[0] * row_values(a) * (gidx)h5_type_bytes(a->type);
}

gidx h5_array_unit(const struct h5_array *a)
{
  return a->chunks ? a->chunks->rows : 0;
}

void h5_array_stream(struct h5_array *a)
{
  if (a->seal) sha256_free(&a->seal->hash);
}

int h5_array_is_whole(const struct h5_array *a)
{
  if (!a->chunks || !h5_seal_hashes(a->seal)) return 0;
  gidx n = a->shape[0], most = a->chunks->rows, width = (gidx)(a->chunks->bytes / (size_t)most);
  unsigned char *bytes = malloc(a->chunks->bytes);
  int is_whole = bytes != NULL;
  for (gidx first = 0, count; is_whole && first < n; first += count) {
    count = imin(most, n - first);
    is_whole = h5_chunks_read(a->chunks, a->id, first, count, bytes) == count &&
               h5_seal_read(a->seal, a->path, a->object, first * width, (size_t)(count * width),
                            bytes) == OK;
  }
  status_clear();
  free(bytes);
  return is_whole && n > 0 && a->seal->next == a->seal->end;
}

/* Give every NaN the bits that NaNs have in our files. */
static void nan_unify(enum h5_type type, void *values, gidx count)
{
  static const uint32_t narrow = 0x7fc00000u;
  static const uint64_t wide = 0x7ff8000000000000u;
  float *f = values;
  double *d = values;
  uint16_t *h = values, infinite = type == TYPE_F16 ? 0x7c00 : 0x7f80;
  for (gidx i = 0; type == TYPE_F32 && i < count; i++)
    if (isnan(f[i])) memcpy(f + i, &narrow, sizeof narrow);
  for (gidx i = 0; type == TYPE_F64 && i < count; i++)
    if (isnan(d[i])) memcpy(d + i, &wide, sizeof wide);
  for (gidx i = 0; (type == TYPE_F16 || type == TYPE_BF16) && i < count; i++)
    if ((h[i] & 0x7fff) > infinite) h[i] = type == TYPE_F16 ? 0x7e00 : 0x7fc0;
}

/* Add the chunk that was written to the hash, without what it was filled up with. */
static int chunk_hash(struct h5_array *a)
{
  size_t bytes = a->unhashed;
  const unsigned char *sum =
      a->pending + (size_t)(a->chunk_rows * row_values(a)) * h5_type_bytes(a->type);
  if (!bytes) return OK;
  a->unhashed = 0;
  if (a->hashing) phase_begin(a->hashing);
  TRY(h5_seal_write(a->seal, a->pending, bytes, sum));
  if (a->hashing) phase_end(a->hashing, (double)bytes);
  return OK;
}

struct hashing {
  struct h5_array *const *list;
  atomic_int status;
};

static void array_hash(void *self, gidx i)
{
  struct hashing *h = self;
  struct h5_array *a = h->list[i];
  struct phase *phase = a->hashing; /* of all: one thread counts */
  a->hashing = NULL;
  int status = chunk_hash(a);
  a->hashing = phase;
  if (status) h->status = status;
  status_clear();
}

int h5_arrays_hash(struct h5_array *const *list, int count)
{
  struct hashing h = {list, OK};
  struct phase *phase = list[0]->hashing;
  double bytes = 0;
  for (int i = 0; i < count; i++) bytes += (double)list[i]->unhashed;
  if (bytes == 0) return OK;
  if (phase) phase_begin(phase);
  team_run(team_spare(), count, array_hash, &h);
  if (phase) phase_end(phase, bytes);
  CHECK(!h.status, h.status, "cannot hash what was written to '%s'", list[0]->path);
  return OK;
}

/* Give the dataset as many entries as were written. */
static int extent_set(struct h5_array *a)
{
  hsize_t dims[H5_RANK];
  a->shape[0] = a->next;
  for (int i = 0; i < a->rank; i++) dims[i] = (hsize_t)a->shape[i];
  TRY_H5(H5Dset_extent(a->id, dims), ERR_IO, "cannot give '%s' of '%s' its length", a->object,
         a->path);
  return OK;
}

/* Write the pending chunk; the last one of an array is filled up with zeros. */
static int flush(struct h5_array *a)
{
  gidx count = a->n_pending, values = row_values(a);
  size_t value = h5_type_bytes(a->type), rest = (size_t)((a->chunk_rows - count) * values) * value;
  if (count == 0) return OK;
  a->n_pending = 0;
  nan_unify(a->type, a->pending, count * values);
  memset(a->pending + (size_t)(count * values) * value, 0, rest);
  size_t bytes = (size_t)(a->chunk_rows * values) * value;
  TRY(h5_begin());
  if (a->grows) TRY(extent_set(a));
  TRY_H5(h5_chunk_write(a->id, a->next - count, a->pending, bytes), ERR_IO,
         "cannot write '%s' of '%s'", a->object, a->path);
  a->unhashed = bytes - rest;
  return a->hashes_later ? OK : chunk_hash(a);
}

int h5_array_write(struct h5_array *a, gidx first, gidx count, const void *in)
{
  int fits = a->grows || count <= a->shape[0] - first;
  CHECK(a->pending && first == a->next && count >= 0 && fits, ERR_INTERNAL,
        "entries %lld + %lld of '%s' are written, but %lld is next of %lld", (long long)first,
        (long long)count, a->object, (long long)a->next, (long long)a->shape[0]);
  size_t row = (size_t)row_values(a) * h5_type_bytes(a->type);
  if (row == 0) {
    a->next += count;
    return OK;
  }
  for (gidx done = 0; done < count;) {
    gidx n = imin(a->chunk_rows - a->n_pending, count - done);
    TRY(chunk_hash(a)); /* of the chunk before, which is still there */
    memcpy(a->pending + (size_t)a->n_pending * row, (const char *)in + (size_t)done * row,
           (size_t)n * row);
    done += n;
    a->n_pending += n;
    a->next += n;
    if (a->n_pending == a->chunk_rows) TRY(flush(a));
  }
  return OK;
}

int h5_array_truncate(struct h5_array *a)
{
  if (a->grows || a->next == a->shape[0]) return OK;
  TRY(h5_begin());
  TRY(chunk_hash(a));
  a->hashes_later = 0;
  TRY(flush(a));
  return extent_set(a);
}

int h5_array_close(struct h5_array *a)
{
  int status = a->pending ? chunk_hash(a) : OK;
  a->hashes_later = 0;
  if (a->pending && a->id && !status) status = flush(a);
  int is_whole = !a->pending || a->next == a->shape[0];
  hid_t id = a->id;
  if (a->pending && id && is_whole && status == OK)
    status = h5_seal_end(a->seal, a->path, a->object, id);
  free(a->pending);
  free(a->chunks);
  h5_seal_free(&a->seal);
  a->id = 0;
  a->pending = NULL;
  a->chunks = NULL;
  if (id && H5Dclose(id) < 0 && status == OK)
    status = h5_fail(ERR_IO, __FILE__, __LINE__, "cannot close '%s' of '%s'", a->object, a->path);
  TRY(status);
  CHECK(is_whole, ERR_INTERNAL, "'%s' of '%s' ends at entry %lld of %lld", a->object, a->path,
        (long long)a->next, (long long)a->shape[0]);
  return OK;
}
