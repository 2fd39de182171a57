/* SPDX-License-Identifier: BSD-3-Clause
 * Where the chunks of a result are in its file, by its shapes alone, so that whoever knows these
 * may write or read any of them.
 *
 * Floor: io.
 *
 * Array a has e_a bytes a row, N rows in all.  No chunk spans two sum blocks of 4,096 rows; the
 * chunks of a sum block lie side by side, array after array, each with the 4 bytes of its checksum:
 * a slab.  A segment is 2^j slabs, a node of the tree of sums (N.0), and begins at a multiple of 64
 * KiB, so that no page of memory has two writers where they write segments.
 *
 *     c_a     = max(1, min(4096, 2^floor(log2(2^20 / e_a))))    rows of a chunk
 *     k_a     = 4096 / c_a                                      chunks of a sum block
 *     slab    = sum_a k_a (c_a e_a + 4)
 *     J         least with 2^J slab >= 128 MiB
 *     j       = min(J, max(0, floor(log2(floor(ceil(N / 4096) / 2048)))))
 *     segment = 2^j slab, rounded up to 65,536
 *     at(a,i) = base + floor(b / 2^j) segment + (b mod 2^j) slab
 *               + sum_{a' < a} k_a' (c_a' e_a' + 4) + (i mod k_a) (c_a e_a + 4)
 *     b         sum block floor(i / k_a)
 *
 * base is a multiple of 65,536 with room for all else. */
#ifndef IO_H5_SLABS_H
#define IO_H5_SLABS_H

#include "base/sums.h"

enum { SLAB_ARRAYS = 5 };
struct h5_slabs {
  gidx chunk_rows[SLAB_ARRAYS]; /* c_a */
  gidx stored[SLAB_ARRAYS];     /* bytes of a chunk in the file, checksum included */
  gidx offset[SLAB_ARRAYS];     /* of an array's first chunk in a slab */
  gidx slab, segment, base;     /* bytes; base: where the first segment is */
  gidx end;                     /* behind all chunks */
  int level;
};
/* bytes[SLAB_ARRAYS]: of a row of each, the first's not 0, of one that is not there 0; before the
 * first segment there are at least `room` bytes, for all else.
 * ERR_INTERNAL: a row is larger than HDF5's largest chunk. */
int h5_slabs_plan(struct h5_slabs *s, gidx rows, const gidx *bytes, gidx room);
/* Where chunk i of array a is. */
gidx h5_slabs_at(const struct h5_slabs *s, int a, gidx i);

/* Of a file that was just created: all that has no address in it comes before the first segment,
 * as far as it fits, else behind the last. */
struct h5_file;
int h5_slabs_reserve(const struct h5_file *f, const struct h5_slabs *s);

#endif
