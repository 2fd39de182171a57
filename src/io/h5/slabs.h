/* SPDX-License-Identifier: BSD-3-Clause
 * The addresses of a result's chunks in its file.  They follow from the shapes alone, so that every
 * rank or job that knows the shapes can write and read any chunk.
 *
 * Floor: io.
 *
 * Array a has e_a bytes per row and N rows.  A sum block is 4,096 rows; no chunk spans two of them.
 * A slab is all chunks of one sum block: array after array, each chunk followed by its checksum of
 * 4 bytes.  A segment is 2^j slabs, a node of the tree of sums (N.0).  It begins at a multiple of
 * 64 KiB, so that writers of different segments never share a page of memory.
 *
 *     c_a     = max(1, min(4096, 2^floor(log2(2^20 / e_a))))    rows of a chunk
 *     k_a     = 4096 / c_a                                      chunks of a sum block
 *     slab    = sum_a k_a (c_a e_a + 4)
 *     J       = the smallest integer >= 0 with 2^J slab >= 128 MiB
 *     j       = min(J, max(0, floor(log2(floor(ceil(N / 4096) / 2048)))))
 *     segment = 2^j slab, rounded up to 65,536
 *     at(a,i) = base + floor(b / 2^j) segment + (b mod 2^j) slab
 *               + sum_{a' < a} k_a' (c_a' e_a' + 4) + (i mod k_a) (c_a e_a + 4)
 *     b       = floor(i / k_a), the sum block
 *
 * base, where the first segment begins, is a multiple of 65,536.  Other data of the file are placed
 * before it if they fit. */
#ifndef IO_H5_SLABS_H
#define IO_H5_SLABS_H

#include "base/sums.h"

enum { SLAB_ARRAYS = 5 };
struct h5_slabs {
  gidx chunk_rows[SLAB_ARRAYS]; /* c_a */
  gidx stored[SLAB_ARRAYS];     /* bytes of a chunk in the file, checksum included */
  gidx offset[SLAB_ARRAYS];     /* of an array's first chunk in a slab */
  gidx slab, segment, base;     /* bytes; base: where the first segment is */
  gidx end;                     /* an address after the last chunk */
  int level;                    /* j */
};
/* bytes[SLAB_ARRAYS]: bytes per row of each array, 0 for an array that does not exist; bytes[0] is
 * not 0.  At least `room` bytes before the first segment are left for all other data.
 * ERR_INTERNAL: a row is larger than HDF5's largest chunk. */
int h5_slabs_plan(struct h5_slabs *s, gidx rows, const gidx *bytes, gidx room);
/* The address of chunk i of array a. */
gidx h5_slabs_at(const struct h5_slabs *s, int a, gidx i);

/* For a file that was just created: data without a given address are placed before the first
 * segment if they fit, and after the last one if they do not. */
struct h5_file;
int h5_slabs_reserve(const struct h5_file *f, const struct h5_slabs *s);

#endif
