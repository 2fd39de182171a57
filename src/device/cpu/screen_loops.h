/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of the certified filter of one instruction set, as a table.
 *
 * Floor: device.
 *
 * A panel of the filter is `lanes` consecutive slots (route_loops.h), stored
 * [d][quads][lanes][4]: the integers of four columns are adjacent.  `offset` is added to them where
 * the instructions need nonnegative integers.  A group is `rows` rows, stored
 * [4 quads / columns][rows][columns].  `columns` is 4, or 64 for AMX, where a group has the form of
 * tiles.  Both are padded with zero columns and zero atoms. */
#ifndef DEVICE_CPU_SCREEN_LOOPS_H
#define DEVICE_CPU_SCREEN_LOOPS_H

#include <stdint.h>

#include "model/screen.h"

/* How a size is made from a dot product I of integers.  For d = 1 the size is |I|, or max(I, 0) for
 * nonnegative codes.  For frames it is the root of the sum of I^2 over the vectors, which are added
 * by FIRST, NEXT, .., LAST. */
enum screen_step { SCREEN_ONLY, SCREEN_POSITIVE, SCREEN_FIRST, SCREEN_NEXT, SCREEN_LAST };

/* Bounds of the exact scores of one row from sizes (C.6).  If the size at a slot is n integer
 * units, the exact score is in [down * n * t - e, up * n * t + e], e = flat + steep * t, t =
 * scale[slot]. */
struct screen_scales {
  const float *scale;
  float down, up, flat, steep;
};

struct screen_loops {
  const char *name;
  idx rows, lanes;    /* at most 32 each, since a word has one bit for each */
  idx columns;        /* adjacent columns of a row in a group; a multiple of 4 */
  int levels, offset; /* of the integers of atoms; rows have 127 levels */
  /* screen_quantize() of a row of finite numbers, 127 levels; q is zero-padded to a multiple of 8;
   * returns the sum of q */
  int32_t (*quantize)(const float *row, idx p, int8_t *q, struct quantized *out);
  /* every thread calls enter() before its first sizes(), and leave() after its last one */
  void (*enter)(void), (*leave)(void);
  /* out[rows][lanes] <- sizes, or sums of their squares so far; start[rows] cancels the offset;
   * quads: a multiple of columns / 4 */
  void (*sizes)(const uint8_t *panel, const int8_t *group, const int32_t *start, idx quads,
                enum screen_step step, float *out);
  /* hits[rows] <- one bit per lane: is the size >= slope[row] inverse[lane] - reach[row]?  Returns
   * one bit for each row that has a hit */
  uint32_t (*pass)(const float *sizes, const float *inverse, const float *slope, const float *reach,
                   uint32_t *hits);
  /* lower, upper[count] <- bounds of the exact scores of candidates, from their sizes */
  void (*bounds)(const struct screen_scales *by, const float *size, const idx *slot, idx count,
                 float *lower, float *upper);
  /* Returns x >= from such that at least top_k of value[count] are >= x, unless x = from, and fewer
   * than top_k are >= x (1 + 2^-10).  All values are >= 0.  Zeros are written after them, up to a
   * multiple of LIST_STEP */
  float (*quantile)(float *value, idx count, idx top_k, float from);
  /* out[SCREEN_RESCORE_WIDTH] <- exact scores of a row and SCREEN_RESCORE_WIDTH vectors (N.1) */
  void (*chains)(const float *row, const float *const *vector, idx p, float *out);
};
enum { SCREEN_RESCORE_WIDTH = 16, SCREEN_ROW_LEVELS = 127 };

#endif
