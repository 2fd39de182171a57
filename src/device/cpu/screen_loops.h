/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of the certified filter of one instruction set, as a table.
 *
 * Floor: device.
 *
 * A panel of the filter is `lanes` consecutive slots, stored [d][quads][lanes][4]: the integers of
 * four columns side by side, plus `offset` so that none is negative where the instructions want
 * that.  A group is `rows` rows, stored [4 quads / columns][rows][columns]: `columns` is 4, or 64
 * for AMX, where they are the rows of a tile.  Both are padded with columns and atoms of zeros. */
#ifndef DEVICE_CPU_SCREEN_LOOPS_H
#define DEVICE_CPU_SCREEN_LOOPS_H

#include <stdint.h>

#include "model/screen.h"

/* What is done with a dot product I of integers.  The size is |I| for d = 1, max(I, 0) where codes
 * are to be nonnegative, else the root of the sum of squares over a frame, which are added FIRST,
 * NEXT, .., LAST. */
enum screen_step { SCREEN_ONLY, SCREEN_POSITIVE, SCREEN_FIRST, SCREEN_NEXT, SCREEN_LAST };

/* What the sizes of one row stand for (C.6): a size of n integer units at a slot lies in
 *     [down * n * t - e, up * n * t + e],  e = flat + steep * t,  t = scale[slot]. */
struct screen_scales {
  const float *scale;
  float down, up, flat, steep;
};

struct screen_loops {
  const char *name;
  idx rows, lanes;    /* at most 32, bits of a word */
  idx columns;        /* of a row that stand together in a group; a multiple of 4 */
  int levels, offset; /* of the atoms' integers; rows have 127 levels */
  /* screen_quantize() of a row of finite numbers, 127 levels; q has zeros up to a multiple of 8;
   * returns the sum of q */
  int32_t (*quantize)(const float *row, idx p, int8_t *q, struct quantized *out);
  /* a thread calls these before its first and after its last sizes() */
  void (*enter)(void), (*leave)(void);
  /* out[rows][lanes] <- sizes, or their squares so far; start[rows] takes the offset back; quads: a
   * multiple of columns / 4 */
  void (*sizes)(const uint8_t *panel, const int8_t *group, const int32_t *start, idx quads,
                enum screen_step step, float *out);
  /* hits[rows] <- one bit a lane: is the size >= slope[row] inverse[lane] - reach[row]? returns the
   * rows with any */
  uint32_t (*pass)(const float *sizes, const float *inverse, const float *slope, const float *reach,
                   uint32_t *hits);
  /* lower, upper[count] <- bounds of the sizes of candidates */
  void (*bounds)(const struct screen_scales *by, const float *size, const idx *slot, idx count,
                 float *lower, float *upper);
  /* returns x >= from: at least top_k of value[count], all >= 0, are >= x unless x = from, and
   * fewer than top_k are >= x (1 + 2^-10); zeros are written behind the values up to a multiple of
   * LIST_STEP */
  float (*quantile)(float *value, idx count, idx top_k, float from);
  /* out[SCREEN_RESCORE_WIDTH] <- exact scores of a row and SCREEN_RESCORE_WIDTH vectors (N.1) */
  void (*chains)(const float *row, const float *const *vector, idx p, float *out);
};
enum { SCREEN_RESCORE_WIDTH = 16, SCREEN_ROW_LEVELS = 127 };

#endif
