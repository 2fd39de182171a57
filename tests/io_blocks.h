/* SPDX-License-Identifier: BSD-3-Clause
 * Reads a dataset in blocks, and counts the chunks that are not read through HDF5. */
#ifndef TESTS_IO_BLOCKS_H
#define TESTS_IO_BLOCKS_H

#include "io/h5/chunks.h"
#include "io/h5/dataset.h"
#include "io_files.h"
#include "tap.h"

enum { ROWS = 1000, COLUMNS = 7, CHUNK = 64 };

/* Read a dataset of blocks.h5 in blocks, and compare it with its values.  Returns how many of its
 * chunks were not read through HDF5; -1: an error or another value. */
static inline gidx blocks_taken(const char *object, enum h5_type type, gidx items, gidx block,
                                const void *values)
{
  struct h5_file f;
  struct h5_array a = {0};
  size_t row = h5_type_bytes(type) * (size_t)items;
  gidx n = 0, taken = -1;
  int wrong = h5_open(&f, "blocks.h5") || h5_array_open(&f, object, &a);
  unsigned char *got = malloc((size_t)block * row + 1);
  for (gidx first = 0; !wrong && first < a.shape[0]; first += n) {
    n = block < a.shape[0] - first ? block : a.shape[0] - first;
    got[(size_t)n * row] = 77;
    wrong = h5_array_read(&a, first, n, type, got) || got[(size_t)n * row] != 77 ||
            memcmp(got, (const char *)values + (size_t)first * row, (size_t)n * row) != 0;
  }
  if (!wrong) taken = a.chunks ? a.chunks->n_direct : 0;
  free(got);
  h5_array_close(&a);
  h5_close(&f);
  return taken;
}

#endif
