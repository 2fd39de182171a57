/* SPDX-License-Identifier: BSD-3-Clause
 * Registering the chunks with HDF5 at the end is cheap: their addresses follow from the shapes, and
 * HDF5's index of them lies before the first chunk. */
#include "io/h5/placed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/sha256_tree.h"
#include "io/h5/array_write.h"
#include "io/h5/chunks.h"
#include "io/h5/dataset.h"
#include "io/h5/digest.h"
#include "io/h5/driver.h"

int h5_placed_open(struct h5_file *f, const char *path)
{
  *f = (struct h5_file){.path = path, .disk = h5_driver_open(path)};
  return f->disk != NULL;
}

int h5_placed_is_named(const struct h5_file *f)
{
  return h5_driver_is_named(f->disk);
}

int h5_placed_close(struct h5_file *f)
{
  if (!f->disk) return OK;
  int error = h5_driver_close(f->disk);
  f->disk = NULL;
  CHECK(!error, ERR_IO, "cannot close '%s': %s", f->path, strerror(error));
  return OK;
}

int h5_placed_begin(struct h5_array *a)
{
  gidx chunks = ceil_div(a->shape[0], a->chunk_rows);
  size_t bytes = (size_t)chunks * SHA256_BYTES, sums = (size_t)chunks * sizeof(uint32_t);
  CHECK(a->slabs && a->next == 0, ERR_INTERNAL, "chunks of '%s' have no place, or are written",
        a->object);
  a->placed = calloc(1, sizeof *a->placed + bytes + sums);
  CHECK(a->placed, ERR_MEMORY, "cannot allocate %lld hashes", (long long)chunks);
  a->placed->chunks = chunks;
  a->placed->sums = (uint32_t *)(void *)a->placed->leaves[chunks];
  return OK;
}

int h5_placed_seek(struct h5_array *a, gidx entry)
{
  CHECK(entry == a->next || (a->n_pending == 0 && entry % a->chunk_rows == 0), ERR_INTERNAL,
        "entries from %lld of '%s' are within a chunk", (long long)entry, a->object);
  a->next = entry;
  return OK;
}

unsigned char *h5_placed_leaf(const struct h5_array *a, gidx first)
{
  return a->placed->leaves[first / a->chunk_rows];
}

void h5_placed_note(struct h5_placed *p, const unsigned char *leaf, uint32_t sum)
{
  p->written++;
  p->zeros += sum == 0;
  p->sums[(leaf - p->leaves[0]) / SHA256_BYTES] = sum;
}

/* A leaf of zeros means that the chunk was not written, since no hash is 0. */
int h5_placed_has(const struct h5_array *a, gidx first)
{
  static const unsigned char none[SHA256_BYTES];
  return memcmp(h5_placed_leaf(a, first), none, sizeof none) != 0;
}

/* Where sum block b begins. */
static haddr_t block_at(const struct h5_array *a, gidx b)
{
  return (haddr_t)h5_slabs_at(a->slabs, 0, b * (ROW_BLOCK / a->slabs->chunk_rows[0]));
}

static int placed_wrote(const struct h5_array *a, int error)
{
  CHECK(!error, ERR_IO, "cannot write '%s' of '%s': %s", a->object, a->path, strerror(error));
  return OK;
}

int h5_placed_push(const struct h5_array *a, gidx first, gidx end)
{
  haddr_t at = block_at(a, first);
  return placed_wrote(a, first < end ? h5_driver_push(a->disk, at, block_at(a, end) - at) : 0);
}

int h5_placed_sync(const struct h5_array *a)
{
  return placed_wrote(a, h5_driver_sync(a->disk));
}

/* Read chunk[bytes] and its checksum from the file. */
static int chunk_read(const struct h5_array *a, gidx i, size_t bytes, unsigned char *chunk)
{
  haddr_t at = (haddr_t)h5_slabs_at(a->slabs, a->slab_array, i);
  uint32_t sum, wanted = a->placed->sums[i];
  errno = 0;
  CHECK(h5_driver_read(a->disk, at, bytes + H5_SUM_BYTES, chunk), ERR_IO,
        "cannot read '%s' of '%s' again: %s", a->object, a->path,
        errno ? strerror(errno) : "it has been cut");
  memcpy(&sum, chunk + bytes, sizeof sum);
  CHECK(sum == wanted && h5_fletcher32(chunk, bytes) == wanted, ERR_IO,
        "chunk %lld of '%s' of '%s' is not what was written", (long long)i, a->object, a->path);
  return OK;
}

int h5_placed_read(const struct h5_array *a, gidx first, gidx count, void *out)
{
  size_t bytes = (size_t)(a->chunk_rows * h5_entry_values(a)) * h5_type_bytes(a->type);
  unsigned char *chunk = out;
  for (gidx done = 0; done < count; done += a->chunk_rows, chunk += bytes)
    TRY(chunk_read(a, (first + done) / a->chunk_rows, bytes, chunk));
  return OK;
}

static int leaf_check(const struct h5_array *a, gidx i, size_t bytes, unsigned char *chunk)
{
  unsigned char leaf[SHA256_BYTES];
  haddr_t at = (haddr_t)h5_slabs_at(a->slabs, a->slab_array, i);
  errno = 0;
  CHECK(h5_driver_read(a->disk, at, bytes, chunk), errno ? ERR_IO : ERR_INPUT,
        "cannot read '%s' of '%s': %s", a->object, a->path,
        errno ? strerror(errno) : "it has been cut");
  TRY(sha256_leaf(chunk, bytes, leaf));
  CHECK(memcmp(leaf, a->placed->leaves[i], sizeof leaf) == 0, ERR_INPUT,
        "chunk %lld of '%s' of '%s' is not what was recorded", (long long)i, a->object, a->path);
  return OK;
}

int h5_placed_confirm(const struct h5_array *a, gidx i)
{
  gidx entries = imin(a->chunk_rows, a->shape[0] - i * a->chunk_rows); /* hashes cover no padding */
  size_t bytes = (size_t)(entries * h5_entry_values(a)) * h5_type_bytes(a->type);
  unsigned char *chunk = malloc(bytes);
  CHECK(chunk, ERR_MEMORY, "cannot allocate %lld bytes for a chunk", (long long)bytes);
  int status = leaf_check(a, i, bytes, chunk);
  free(chunk);
  return status;
}

/* Register the addresses of the chunks with HDF5.  The array's pending chunk stands for their data;
 * nothing is written. */
static int chunks_index(struct h5_array *a, gidx count)
{
  size_t bytes = (size_t)(a->chunk_rows * h5_entry_values(a)) * h5_type_bytes(a->type);
  TRY(h5_begin());
  for (gidx i = 0; i < count; i++) {
    haddr_t wanted = (haddr_t)h5_slabs_at(a->slabs, a->slab_array, i), at;
    TRY_H5(h5_chunk_allocate(a->id, i * a->chunk_rows, a->pending, bytes, wanted, &at), ERR_IO,
           "cannot write '%s' of '%s'", a->object, a->path);
    CHECK(at == wanted, ERR_INTERNAL, "chunk %lld of '%s' has another place", (long long)i,
          a->object);
  }
  return OK;
}

static int leaves_take(struct h5_array *a, gidx count)
{
  unsigned char *leaves;
  TRY(h5_digest_reserve(a->digest, count, &leaves));
  memcpy(leaves, a->placed->leaves, (size_t)count * SHA256_BYTES);
  a->digest->zero_chunks += a->placed->all_zeros;
  return h5_digest_add(a->digest, count);
}

int h5_placed_end(struct h5_array *a, gidx end)
{
  gidx count = ceil_div(end, a->chunk_rows);
  CHECK(a->placed->all_written == count, ERR_INTERNAL, "%lld of %lld chunks of '%s' were written",
        (long long)a->placed->all_written, (long long)count, a->object);
  if (a->id) TRY(chunks_index(a, count));
  if (a->id) TRY(leaves_take(a, count));
  a->next = a->id ? end : a->shape[0];
  free(a->placed);
  a->placed = NULL;
  return OK;
}
