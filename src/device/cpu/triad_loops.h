/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of training of one instruction set, as a table.
 *
 * Floor: device.
 *
 * A panel is the weights of `width` outputs, stored [input][width].  Lanes are outputs, and no
 * chain crosses lanes. */
#ifndef DEVICE_CPU_TRIAD_LOOPS_H
#define DEVICE_CPU_TRIAD_LOOPS_H

#include "model/adam.h"

enum { TRIAD_MAX_WIDTH = 64 }; /* width of the widest panel */

struct triad_loops {
  idx rows, width; /* of a tile */
  /* y[rows][width], rows `stride` apart <- chains over depth, from start[width], of x times the
   * panel; input i of row r is x[r * row + i * depth_stride]; `rows` is as in a tile, or 1 */
  void (*tile)(const float *x, gidx row, gidx depth_stride, idx rows, const float *panel, idx depth,
               const float *start, float *y, gidx stride);
  /* out[width] <- chains from +0 over n entries of value[e] times row index[e] of the matrix */
  void (*sum)(const idx *index, const float *value, gidx n, const float *matrix, idx width,
              float *out);
  /* out[n] <- inner products of row[width] and the rows index[n] of the matrix */
  void (*dots)(const float *row, const idx *index, gidx n, const float *matrix, idx width,
               float *out);
  /* out[i * step] <- the sum of squares of row i of rows[n][stride], a chain in f64 over width */
  void (*squares)(const float *rows, gidx stride, idx n, idx width, real *out, idx step);
  void (*adam)(const struct adam_state *s, const struct adam_rates *rates);
};

#endif
