/* SPDX-License-Identifier: BSD-3-Clause
 * The certified filter on the CPU: its hot loops as a table, its panels, and routing with it.
 *
 * Floor: device.
 *
 * A filter panel is lanes consecutive slots, stored [d][quads][lanes][4]: the integers of four
 * columns side by side, plus `offset` so that none is negative where instructions want that.  A
 * filter group is rows rows, stored [4 quads / columns][rows][columns]: `columns` is 4, or 64 for
 * tiles, whose rows they are.  Both are padded with zeros (columns) and with atoms of zeros. */
#ifndef DEVICE_CPU_FILTER_H
#define DEVICE_CPU_FILTER_H

#include <stdint.h>

#include "base/memory.h"
#include "model/filter.h"

struct device;
struct cpu_state;
struct route_job;

/* What a dot product of integers becomes: |I| for d = 1; else the root of the sum of squares. */
enum filter_step { FILTER_ONLY, FILTER_FIRST, FILTER_NEXT, FILTER_LAST };

/* A size in integers, n, of a slot stands for one between down n t - (flat + steep t) and
 * up n t + (flat + steep t), t = scale[slot] (C.6). */
struct filter_scales {
  const float *scale;
  float down, up, flat, steep;
};

struct filter_loops {
  const char *name;
  idx rows, lanes;    /* at most 32, bits of a word */
  idx columns;        /* of a row that stand together in a group; a multiple of 4 */
  int levels, offset; /* of the atoms' integers; rows have 127 levels */
  /* filter_quantize() of a row of finite numbers, 127 levels; q has zeros up to a multiple of 8;
   * returns the sum of q */
  int32_t (*quantize)(const float *row, idx p, int8_t *q, struct quantized *out);
  /* a thread calls these before its first and after its last sizes() */
  void (*enter)(void), (*leave)(void);
  /* out[rows][lanes] <- sizes, or their squares so far; start[rows] takes the offset back; quads: a
   * multiple of columns / 4 */
  void (*sizes)(const uint8_t *panel, const int8_t *group, const int32_t *start, idx quads,
                enum filter_step step, float *out);
  /* hits[rows] <- one bit a lane: is the size >= slope[row] inverse[lane] - reach[row]? returns the
   * rows with any */
  uint32_t (*pass)(const float *sizes, const float *inverse, const float *slope, const float *reach,
                   uint32_t *hits);
  /* lower, upper[count] <- bounds of the sizes of candidates */
  void (*bounds)(const struct filter_scales *by, const float *size, const idx *slot, idx count,
                 float *lower, float *upper);
  /* a number that `take` of value[count], all >= 0, reach, and hardly more than that; at least
   * `from`; writes zeros behind them up to a multiple of LIST_STEP */
  float (*quantile)(float *value, idx count, idx take, float from);
  /* out[FILTER_CHAINS] <- exact scores of a row and FILTER_CHAINS vectors (N.1) */
  void (*chains)(const float *row, const float *const *vector, idx p, float *out);
};
enum { FILTER_CHAINS = 16, FILTER_ROW_LEVELS = 127 };
extern const struct filter_loops filter_avx2, filter_avx512vl, filter_avx512, filter_amx;

/* The share of the dictionary as the filter needs it; within cpu_state's arena. */
struct filter_state {
  const struct filter_loops *loops; /* NULL: none for this processor */
  int is_on, is_automatic;          /* automatic: off again where it does not pay */
  idx quads;                        /* p / 4, rounded up to whole `columns` */
  uint8_t *panels;                  /* [ceil(atoms_most / lanes)][d][quads][lanes][4] */
  float *scale, *inverse;           /* [..][lanes] of each slot; inverse: about 1 / scale */
  const float **frame;              /* [atoms_most] borrowed f32 frames */
  real norm_most;                   /* of any frame */
  real error_most;                  /* of any frame, in its own scale */
};

int filter_take(struct filter_state *f, struct arena *arena, idx d, idx p, idx atoms_most);

/* Slots first .. first + count - 1 <- frames[count][d][p]. */
int filter_put(struct cpu_state *s, idx first, idx count, const float *frames);

/* As cpu_route_exact(), by way of the filter. */
int filter_route(struct device *dev, struct route_job *job);

#endif
