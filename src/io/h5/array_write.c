/* SPDX-License-Identifier: BSD-3-Clause
 * Arrays being written.  Each chunk is stored once, when all of its entries are known, so the bytes
 * of the file do not depend on the blocks in which entries are written.  HDF5 allocates the chunks
 * in order, or their addresses are given (slabs.h); spare threads hash them and write them at these
 * addresses. */
#include "io/h5/array_write.h"
#include "io/h5/chunks.h"
#include "io/h5/dataset.h"
#include "io/h5/digest.h"
#include "io/h5/placed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/team.h"

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

/* A copy of HDF5's type in the file; the caller closes it. */
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

/* *creation, *access <- the properties with which Sagitta creates and opens its datasets.  No times
 * are stored.  The chunk cache is empty, since only whole chunks are written. */
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
  a->disk = h5_chunks_disk(dataset);
  TRY_H5(a->disk ? 0 : -1, ERR_IO, "cannot write '%s' of '%s'", a->object, f->path);
  return a->type == TYPE_BF16 ? h5_attribute_text(f, a->object, "dtype", "bfloat16") : OK;
}

/* Entries per chunk.  The number of chunks is the least with chunks of at most a megabyte; entries
 * are divided evenly among them, so the last chunk, which is padded, is nearly full. */
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
  if (!f->disk) TRY(h5_groups_create(f, object, 0));
  a->pending = malloc((size_t)row * (size_t)a->chunk_rows + H5_SUM_BYTES);
  CHECK(a->pending, ERR_MEMORY, "cannot allocate %.0f bytes", row * (double)a->chunk_rows);
  TRY(h5_digest_begin(&a->digest));
  a->disk = f->disk;
  return f->disk ? OK : dataset_create(f, a);
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

/* Are there NaNs among float32 values?  Four values are tested at a time: the bits of infinity
 * minus the bits of a value without its sign are negative for a NaN. */
static int has_nan_f32(const unsigned char *values, gidx count)
{
  typedef int32_t lanes __attribute__((vector_size(16)));
  static const int32_t size = 0x7fffffff, infinite = 0x7f800000;
  lanes found = {0};
  gidx i = 0;
  for (; i + 4 <= count; i += 4) {
    lanes v;
    memcpy(&v, values + 4 * i, sizeof v);
    found |= infinite - (v & size);
  }
  for (int32_t v; i < count; i++) {
    memcpy(&v, values + 4 * i, sizeof v);
    found[0] |= infinite - (v & size);
  }
  return (found[0] | found[1] | found[2] | found[3]) < 0;
}

/* Are there NaNs among values of a float type? */
static int has_nan(enum h5_type type, const void *values, gidx count)
{
  const uint64_t *d = values;
  const uint16_t *h = values, infinite = type == TYPE_F16 ? 0x7c00 : 0x7f80;
  int found = type == TYPE_F32 && has_nan_f32(values, count);
  for (gidx i = 0; type == TYPE_F64 && i < count; i++)
    found |= (d[i] & 0x7fffffffffffffff) > 0x7ff0000000000000;
  for (gidx i = 0; (type == TYPE_F16 || type == TYPE_BF16) && i < count; i++)
    found |= (h[i] & 0x7fff) > infinite;
  return found;
}

/* Give the dataset the number of entries that were written. */
static int extent_set(struct h5_array *a)
{
  hsize_t dims[H5_RANK];
  a->shape[0] = a->next;
  for (int i = 0; i < a->rank; i++) dims[i] = (hsize_t)a->shape[i];
  TRY_H5(H5Dset_extent(a->id, dims), ERR_IO, "cannot give '%s' of '%s' its length", a->object,
         a->path);
  return OK;
}

/* Fewer bytes than this are not divided among threads. */
enum { ALONE_BYTES = 1 << 18 };

static size_t entry_bytes(const struct h5_array *a)
{
  return (size_t)h5_entry_values(a) * h5_type_bytes(a->type);
}

static size_t chunk_bytes(const struct h5_array *a)
{
  return (size_t)a->chunk_rows * entry_bytes(a);
}

/* A chunk on its way to the disk. */
struct piece {
  const struct h5_array *array;
  const unsigned char *bytes;
  haddr_t at;
  unsigned char *leaf; /* place for its hash; NULL: it gets none */
  size_t used;         /* bytes of it that are values, without padding */
  uint32_t sum;        /* its checksum */
  int error;           /* error of the system; 0: none */
  int status;          /* status of hashing */
  double seconds;      /* of the first piece of a task: seconds that hashing all pieces of the task
                        * took */
};

/* The next n chunks of each of some arrays.  In the file, the first chunks of all arrays come
 * first, then the second chunks of all arrays, and so on. */
struct flight {
  struct h5_array *const *list;
  const unsigned char *const *bytes; /* [count] the chunks of each array, one after another */
  int count;
  gidx n;
  gidx entries;         /* entries of a chunk, without padding */
  struct piece *pieces; /* [n][count]; owned */
  gidx each;            /* pieces that one thread has at a time */
};

/* Run tasks that handle `bytes` bytes in all, on several threads if there are ALONE_BYTES or
 * more. */
static void tasks_run(size_t bytes, gidx count, void (*task)(void *self, gidx i), void *self)
{
  if (bytes >= ALONE_BYTES)
    spare_run(count, task, self);
  else
    for (gidx i = 0; i < count; i++) task(self, i);
}

/* Hash n pieces.  Those that are as long as the first one are hashed together. */
static void pieces_hash(struct piece *p, gidx n)
{
  const unsigned char *bytes[H5_TOGETHER];
  unsigned char *leaves[H5_TOGETHER];
  double begun = log_seconds();
  int count = 0, status = OK;
  for (gidx i = 0; i < n && !status; i++) {
    if (!p[i].leaf) continue;
    if (p[i].used != p[0].used) {
      status = sha256_leaf(p[i].bytes, p[i].used, p[i].leaf);
      continue;
    }
    bytes[count] = p[i].bytes;
    leaves[count++] = p[i].leaf;
  }
  if (!status) status = sha256_leaves(bytes, count, p[0].used, leaves);
  if (status) status_clear(); /* the message of this thread: flight_end() reports the failure */
  for (gidx i = 0; i < n; i++) p[i].status = status;
  p[0].seconds = log_seconds() - begun;
}

/* A task: hash and write the next f->each pieces. */
static void pieces_run(void *self, gidx task)
{
  const struct flight *f = self;
  struct piece *first = f->pieces + task * f->each;
  pieces_hash(first, f->each);
  for (struct piece *p = first; p < first + f->each; p++)
    p->error = h5_chunk_write(p->array->disk, p->at, p->bytes, chunk_bytes(p->array), &p->sum);
}

/* *leaves <- the place for the hashes of the next n chunks of an array; unchanged if it has no
 * hash. */
static int leaves_find(struct h5_array *a, gidx first, gidx n, unsigned char **leaves)
{
  if (a->placed) *leaves = h5_placed_leaf(a, first);
  return a->digest && !a->placed ? h5_digest_reserve(a->digest, n, leaves) : OK;
}

static int flight_open(struct flight *f, gidx first)
{
  unsigned char *leaves[H5_TOGETHER] = {NULL};
  f->pieces = malloc((size_t)(f->n * f->count) * sizeof *f->pieces);
  CHECK(f->pieces, ERR_MEMORY, "cannot allocate %lld bytes",
        (long long)f->n * f->count * (gidx)sizeof *f->pieces);
  for (int i = 0; i < f->count; i++) TRY(leaves_find(f->list[i], first, f->n, &leaves[i]));
  for (gidx p = 0; p < f->n * f->count; p++) {
    const struct h5_array *a = f->list[p % f->count];
    const unsigned char *bytes = f->bytes[p % f->count];
    unsigned char *leaf = leaves[p % f->count];
    gidx i = p / f->count;
    f->pieces[p] = (struct piece){.array = a,
                                  .bytes = bytes + (size_t)i * chunk_bytes(a),
                                  .leaf = leaf ? leaf + i * SHA256_BYTES : NULL,
                                  .used = (size_t)f->entries * entry_bytes(a)};
  }
  return OK;
}

/* The address that piece i is to have, if the chunks begin at entry `first`; HADDR_UNDEF: any. */
static haddr_t wanted_at(const struct flight *f, gidx first, gidx i)
{
  const struct h5_array *a = f->pieces[i].array;
  gidx chunk = first / a->chunk_rows + i / f->count;
  return a->slabs ? (haddr_t)h5_slabs_at(a->slabs, a->slab_array, chunk) : HADDR_UNDEF;
}

/* Let HDF5 allocate the chunks of a flight, which begin at entry `first`. */
static int chunks_allocate(struct flight *f, gidx first)
{
  TRY(h5_begin());
  for (int i = 0; i < f->count; i++)
    if (f->list[i]->grows) TRY(extent_set(f->list[i]));
  for (gidx i = 0; i < f->n * f->count; i++) {
    struct piece *p = &f->pieces[i];
    const struct h5_array *a = p->array;
    gidx chunk = first / a->chunk_rows + i / f->count;
    haddr_t wanted = wanted_at(f, first, i);
    TRY_H5(
        h5_chunk_allocate(a->id, chunk * a->chunk_rows, p->bytes, chunk_bytes(a), wanted, &p->at),
        ERR_IO, "cannot write '%s' of '%s'", a->object, a->path);
  }
  return OK;
}

/* The time of hashing: the sum of the threads' seconds divided by their number. */
static void hashing_count(const struct flight *f)
{
  struct phase *phase = f->list[0]->hashing;
  gidx threads = imin(imax(team_spare(), 1), f->n * f->count);
  if (!phase) return;
  phase->calls++;
  for (gidx p = 0; p < f->n * f->count; p++) {
    phase->seconds += f->pieces[p].seconds / (double)threads;
    phase->work += (double)f->pieces[p].used;
  }
}

/* Check the results of the threads, and give the hashes to the arrays. */
static int flight_end(const struct flight *f)
{
  for (gidx p = 0; p < f->n * f->count; p++) {
    const struct piece *piece = &f->pieces[p];
    const struct h5_array *a = piece->array;
    CHECK(!piece->status, piece->status, "cannot hash '%s' of '%s'", a->object, a->path);
    if (piece->error) {
      h5_cause("%s", strerror(piece->error));
      return h5_fail(ERR_IO, __FILE__, __LINE__, "cannot write '%s' of '%s'", a->object, a->path);
    }
    if (a->placed)
      h5_placed_note(a->placed, piece->leaf, piece->sum);
    else if (a->digest)
      a->digest->zero_chunks += piece->sum == 0;
  }
  for (int i = 0; i < f->count; i++)
    if (f->list[i]->digest && !f->list[i]->placed) TRY(h5_digest_add(f->list[i]->digest, f->n));
  hashing_count(f);
  return OK;
}

static int flight_locate(struct flight *f, gidx first)
{
  int status = OK;
  if (f->list[0]->placed) {
    for (gidx i = 0; i < f->n * f->count; i++) f->pieces[i].at = wanted_at(f, first, i);
    return OK;
  }
  pthread_mutex_lock(&h5_one);
  status = chunks_allocate(f, first);
  pthread_mutex_unlock(&h5_one);
  return status;
}

/* Allocate and write the chunks of an open flight, which begin at entry `first`. */
static int flight_write(struct flight *f, gidx first)
{
  TRY(flight_locate(f, first));
  f->each = f->n >= team_spare() ? f->count : 1; /* f->n tasks if that is enough for all threads; if
                                                  * not, each piece is a task */
  tasks_run((size_t)f->n * chunk_bytes(f->list[0]), f->n * f->count / f->each, pieces_run, f);
  return flight_end(f);
}

/* Hash and write the chunks of a flight, which begin at entry `first`. */
static int chunks_write(struct flight *f, gidx first)
{
  int status = flight_open(f, first);
  if (!status) status = flight_write(f, first);
  free(f->pieces);
  return status;
}

/* Write the pending chunks; the last one of an array is filled up with zeros. */
static int flush(struct h5_array *const *list, int count)
{
  const unsigned char *bytes[H5_TOGETHER];
  gidx entries = list[0]->n_pending;
  struct flight f = {list, bytes, count, 1, entries, NULL, 1};
  if (entries == 0) return OK;
  for (int i = 0; i < count; i++) {
    struct h5_array *a = list[i];
    size_t used = (size_t)entries * entry_bytes(a);
    bytes[i] = a->pending;
    a->n_pending = 0;
    nan_unify(a->type, a->pending, entries * h5_entry_values(a));
    memset(a->pending + used, 0, chunk_bytes(a) - used);
  }
  return chunks_write(&f, list[0]->next - entries);
}

/* Entries that are being written to some arrays. */
struct part {
  struct h5_array *const *list;
  const unsigned char *bytes[H5_TOGETHER];
  int count;
  gidx n;
};

/* The search for NaNs in a part.  Each task tests `some` entries of one array. */
struct scan {
  const struct part *part;
  gidx some;
  _Atomic int found;
};

static void scan_run(void *self, gidx i)
{
  struct scan *s = self;
  const struct part *p = s->part;
  const struct h5_array *a = p->list[i % p->count];
  gidx first = i / p->count * s->some, n = imin(s->some, p->n - first);
  const unsigned char *at = p->bytes[i % p->count] + (size_t)first * entry_bytes(a);
  if (has_nan(a->type, at, n * h5_entry_values(a))) s->found = 1;
}

static int part_has_nan(const struct part *p)
{
  struct scan scan = {.part = p, .some = p->list[0]->chunk_rows};
  gidx count = ceil_div(p->n, scan.some) * p->count;
  tasks_run((size_t)p->n * entry_bytes(p->list[0]), count, scan_run, &scan);
  return scan.found;
}

/* Add n entries of a part, from entry `done` on, to the pending chunks, and write these when they
 * are full. */
static int pending_add(struct part *p, gidx done, gidx n)
{
  for (int i = 0; i < p->count; i++) {
    struct h5_array *a = p->list[i];
    size_t entry = entry_bytes(a);
    memcpy(a->pending + (size_t)a->n_pending * entry, p->bytes[i] + (size_t)done * entry,
           (size_t)n * entry);
    a->n_pending += n;
    a->next += n;
  }
  return p->list[0]->n_pending == p->list[0]->chunk_rows ? flush(p->list, p->count) : OK;
}

/* Write whole chunks of a part directly from the caller's memory, beginning at entry `done`. */
static int part_chunks_write(struct part *p, gidx done, gidx chunks)
{
  const unsigned char *bytes[H5_TOGETHER];
  for (int i = 0; i < p->count; i++)
    bytes[i] = p->bytes[i] + (size_t)done * entry_bytes(p->list[i]);
  struct flight f = {p->list, bytes, p->count, chunks, p->list[0]->chunk_rows, NULL, 1};
  TRY(chunks_write(&f, p->list[0]->next));
  for (int i = 0; i < p->count; i++) p->list[i]->next += chunks * p->list[i]->chunk_rows;
  return OK;
}

/* Write a part.  Whole chunks without NaNs are written directly from the caller's memory. */
static int part_write(struct part *p)
{
  const struct h5_array *a = p->list[0];
  int is_plain = p->n >= a->chunk_rows && !a->grows && !part_has_nan(p);
  gidx some;
  for (gidx done = 0; done < p->n; done += some) {
    gidx chunks = (p->n - done) / a->chunk_rows;
    int in_place = a->n_pending == 0 && chunks > 0 && is_plain;
    some = in_place ? chunks * a->chunk_rows : imin(a->chunk_rows - a->n_pending, p->n - done);
    TRY(in_place ? part_chunks_write(p, done, chunks) : pending_add(p, done, some));
  }
  return OK;
}

/* Can the next n entries be written to an array, together with those of another? */
static int next_check(const struct h5_array *a, const struct h5_array *other, gidx first, gidx n)
{
  int fits = a->grows || n <= a->shape[0] - first;
  CHECK(a->pending && first == a->next && n >= 0 && fits, ERR_INTERNAL,
        "entries %lld + %lld of '%s' are written, but %lld is next of %lld", (long long)first,
        (long long)n, a->object, (long long)a->next, (long long)a->shape[0]);
  CHECK(a->chunk_rows == other->chunk_rows && a->n_pending == other->n_pending &&
            a->grows == other->grows,
        ERR_INTERNAL, "'%s' and '%s' are not written together", a->object, other->object);
  return OK;
}

int h5_arrays_write(struct h5_array *const *list, int count, gidx first, gidx n,
                    const void *const *values)
{
  enum { MAX_CHUNKS = 64 }; /* of a part */
  const struct h5_array *a = list[0];
  struct part p = {.list = list, .count = count};
  CHECK(count <= H5_TOGETHER, ERR_INTERNAL, "%d arrays are written together", count);
  for (int i = 0; i < count; i++) TRY(next_check(list[i], a, first, n));
  if (h5_entry_values(a) == 0) {
    for (int i = 0; i < count; i++) list[i]->next += n;
    return OK;
  }
  for (gidx done = 0; done < n; done += p.n) {
    p.n = imin(n - done, MAX_CHUNKS * a->chunk_rows - a->n_pending);
    for (int i = 0; i < count; i++)
      p.bytes[i] = (const unsigned char *)values[i] + (size_t)done * entry_bytes(list[i]);
    TRY(part_write(&p));
  }
  return OK;
}

int h5_array_write(struct h5_array *a, gidx first, gidx count, const void *in)
{
  return h5_arrays_write(&a, 1, first, count, &in);
}

int h5_array_truncate(struct h5_array *a)
{
  if (a->grows || a->next == a->shape[0]) return OK;
  TRY(h5_begin());
  TRY(flush(&a, 1));
  return extent_set(a);
}

int h5_array_flush(struct h5_array *a)
{
  return flush(&a, 1);
}

int h5_array_end(struct h5_array *a)
{
  if (!a->pending || !a->id) return OK;
  TRY(flush(&a, 1));
  int is_sealed = a->digest && a->next == a->shape[0];
  return is_sealed ? h5_digest_end(a->digest, a->path, a->object, a->id) : OK;
}
