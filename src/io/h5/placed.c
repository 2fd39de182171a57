/* SPDX-License-Identifier: BSD-3-Clause
 * That HDF5 learns of chunks at the end costs nothing: where they are follows from shapes, and what
 * it keeps of them lies before the first. */
#include "io/h5/placed.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
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

int h5_placed_close(struct h5_file *f)
{
  if (!f->disk) return OK;
  int error = h5_driver_sync(f->disk), closed = h5_driver_close(f->disk);
  f->disk = NULL;
  if (!error) error = closed;
  CHECK(!error, ERR_IO, "cannot write '%s': %s", f->path, strerror(error));
  return OK;
}

int h5_placed_begin(struct h5_array *a, gidx first)
{
  gidx begin = first / a->chunk_rows, chunks = ceil_div(a->shape[0], a->chunk_rows) - begin;
  size_t bytes = (size_t)chunks * SHA256_BYTES;
  CHECK(a->slabs && first % a->chunk_rows == 0 && a->n_pending == 0 && chunks >= 0, ERR_INTERNAL,
        "chunks of '%s' from entry %lld on have no place", a->object, (long long)first);
  a->placed = calloc(1, sizeof *a->placed + bytes);
  CHECK(a->placed, ERR_MEMORY, "cannot allocate %lld hashes", (long long)chunks);
  a->placed->first = begin;
  a->placed->chunks = chunks;
  a->next = first;
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
  return a->placed->leaves[first / a->chunk_rows - a->placed->first];
}

/* Let HDF5 know where the chunks are, by the array's pending chunk: nothing is written. */
static int chunks_index(struct h5_array *a, gidx count)
{
  size_t bytes = (size_t)(a->chunk_rows * h5_entry_values(a)) * h5_type_bytes(a->type);
  TRY(h5_begin());
  for (gidx i = a->placed->first; i < a->placed->first + count; i++) {
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
  a->digest->zero_chunks += a->placed->zeros;
  return h5_digest_add(a->digest, count);
}

int h5_placed_end(struct h5_array *a, gidx end)
{
  gidx count = ceil_div(end, a->chunk_rows) - a->placed->first;
  CHECK(a->placed->written == count, ERR_INTERNAL, "%lld of %lld chunks of '%s' were written",
        (long long)a->placed->written, (long long)count, a->object);
  if (a->id) TRY(chunks_index(a, count));
  if (a->id) TRY(leaves_take(a, count));
  a->next = a->id ? end : a->shape[0];
  free(a->placed);
  a->placed = NULL;
  return OK;
}
