/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of training of one instruction set, as a table.
 *
 * Floor: device.
 *
 * A panel has `width` outputs abreast, those of an input one after another; a chain never runs
 * along a vector. */
#ifndef DEVICE_CPU_TRIAD_LOOPS_H
#define DEVICE_CPU_TRIAD_LOOPS_H

#include "model/adam.h"

enum { TRIAD_MAX_WIDTH = 64 }; /* of the widest panel */

struct triad_loops {
  idx rows, width; /* of a tile */
  /* y[rows][width], at its stride <- chains over depth from start[width] of x by the panel: row r's
   * input i is x[r * row + i * depth_stride]; `rows` or 1 */
  void (*tile)(const float *x, gidx row, gidx depth_stride, idx rows, const float *panel, idx depth,
               const float *start, float *y, gidx stride);
  /* out[width] <- the chain over n entries of value times a row of the matrix, from +0 */
  void (*sum)(const idx *index, const float *value, gidx n, const float *matrix, idx width,
              float *out);
  /* out[n] <- chains over width of row by the matrix's rows index[n] */
  void (*dots)(const float *row, const idx *index, gidx n, const float *matrix, idx width,
               float *out);
  /* out[i * step] <- the chain over width of the squares of row i of rows[n][stride], in f64 */
  void (*squares)(const float *rows, gidx stride, idx n, idx width, real *out, idx step);
  void (*adam)(const struct adam_state *s, const struct adam_rates *rates);
};

#endif
