/* SPDX-License-Identifier: BSD-3-Clause
 * A larger result has larger segments.  But a segment doubles only while it has fewer than 128 MiB,
 * and only if at least 2,048 segments remain.  In a small result a segment is one slab. */
#include "io/h5/slabs.h"

#include "base/num.h"
#include "io/h5/chunks.h"
#include "io/h5/driver.h"

enum { CHUNK_BYTES = 1 << 20, PAGE = 1 << 16, SEGMENTS = 2048 };
static const gidx segment_bytes = 128 << 20;

/* The largest power of two up to n, at least 1, as its exponent. */
static int log2_below(gidx n)
{
  int level = 0;
  while (n >> level > 1) level++;
  return level;
}

int h5_slabs_plan(struct h5_slabs *s, gidx rows, const gidx *bytes, gidx room)
{
  gidx blocks = ceil_div(rows, ROW_BLOCK);
  int most = 0;
  *s = (struct h5_slabs){.base = round_up(room, PAGE)};
  for (int a = 0; a < SLAB_ARRAYS; a++) {
    if (!bytes[a]) continue;
    gidx chunk = (gidx)1 << log2_below(CHUNK_BYTES / bytes[a]);
    CHECK(bytes[a] < UINT32_MAX, ERR_INTERNAL, "a row has %lld bytes", (long long)bytes[a]);
    s->chunk_rows[a] = imin(ROW_BLOCK, chunk);
    s->stored[a] = s->chunk_rows[a] * bytes[a] + H5_SUM_BYTES;
    s->offset[a] = s->slab;
    s->slab += ROW_BLOCK / s->chunk_rows[a] * s->stored[a];
  }
  while (s->slab << most < segment_bytes) most++;
  s->level = (int)imin(most, log2_below(blocks / SEGMENTS));
  s->segment = round_up(s->slab << s->level, PAGE);
  s->end = h5_slabs_at(s, 0, (blocks + 1) * (ROW_BLOCK / s->chunk_rows[0]));
  return OK;
}

gidx h5_slabs_at(const struct h5_slabs *s, int a, gidx i)
{
  gidx chunks = ROW_BLOCK / s->chunk_rows[a], block = i / chunks;
  return s->base + (block >> s->level) * s->segment +
         (block & (((gidx)1 << s->level) - 1)) * s->slab + s->offset[a] + i % chunks * s->stored[a];
}

int h5_slabs_reserve(const struct h5_file *f, const struct h5_slabs *s)
{
  void *handle = NULL;
  TRY_H5(H5Fget_vfd_handle(f->id, H5P_DEFAULT, &handle), ERR_INTERNAL,
         "HDF5 does not tell its descriptor of '%s'", f->path);
  h5_driver_reserve(handle, (haddr_t)s->base, (haddr_t)s->end);
  return OK;
}
