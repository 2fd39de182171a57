/* SPDX-License-Identifier: BSD-3-Clause
 * Loops of the certified filter for AMX: 32 x 32 sums in four tiles of 16 x 16, both operands
 * signed, so that no offset is needed.
 *
 * A tile of rows is 16 rows of 64 columns, as they stand in the group; a tile of atoms 16 quads of
 * 16 lanes, half of each of the panel's lines. */
#include <immintrin.h>
#include <stdint.h>

typedef float lanes __attribute__((vector_size(4 * 16), may_alias));
typedef int32_t ilanes __attribute__((vector_size(4 * 16), may_alias));

enum { LANES = 16, ROWS = 32, COLUMNS = 64, LEVELS = 127, OFFSET = 0 };
#define FILTER_TABLE filter_amx
#define FILTER_NAME "avx512 amx"

static inline lanes root(lanes x)
{
  return (lanes)_mm512_sqrt_ps((__m512)x);
}

static inline uint32_t lane_bits(ilanes mask)
{
  return _mm512_movepi32_mask((__m512i)mask);
}

#include "device/filter_body.h"

enum { TILE = 16 }; /* rows, quads or lanes */

/* What LDTILECFG reads.  Static, since gcc's intrinsic tells the compiler of eight bytes alone. */
static const struct {
  uint8_t palette, start_row, zeros[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} shapes = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

/* The shapes belong to the thread. */
static void enter(void)
{
  _tile_loadconfig(&shapes);
}

/* So that the system need not save the tiles any more. */
static void leave(void)
{
  _tile_release();
}

/* Tiles 0 .. 3 are the sums, 4 and 5 the rows, 6 and 7 the atoms: each is used twice, and a sum
 * waits for three others before it is added to again. */
static void sizes(const uint8_t *panel, const int8_t *group, const int32_t *start, idx quads,
                  enum filter_step step, float *out)
{
  ilanes sum[ROWS][VECTORS];
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (idx c = 0; c < quads; c += TILE, panel += 4 * TILE * WIDTH, group += COLUMNS * ROWS) {
    _tile_loadd(4, group, COLUMNS);
    _tile_loadd(5, group + TILE * COLUMNS, COLUMNS);
    _tile_loadd(6, panel, 4 * WIDTH);
    _tile_loadd(7, panel + 4 * LANES, 4 * WIDTH);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_stored(0, &sum[0][0], sizeof sum[0]);
  _tile_stored(1, &sum[0][1], sizeof sum[0]);
  _tile_stored(2, &sum[TILE][0], sizeof sum[0]);
  _tile_stored(3, &sum[TILE][1], sizeof sum[0]);
  for (int r = 0; r < ROWS; r++)
    for (int v = 0; v < VECTORS; v++)
      size_store(sum[r][v] + start[r], step, out + r * WIDTH + v * LANES);
}
