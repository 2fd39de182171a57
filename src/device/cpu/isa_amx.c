/* SPDX-License-Identifier: BSD-3-Clause
 * The certified filter for AMX: 32 x 32 sums in four tiles of 16 x 16.  Both operands are signed,
 * so no offset is needed.
 *
 * A tile of rows is 16 rows of 64 columns, as stored in the group.  A tile of atoms is 16 quads of
 * 16 lanes, half of the lanes of the panel. */
#include "device/cpu/isa.h"
#include "device/cpu/vectors_512.h"

enum { SCREEN_GROUP = 32, SCREEN_COLUMNS = 64, SCREEN_LEVELS = 127, SCREEN_OFFSET = 0 };
#define SCREEN_NAME "avx512 amx"

#include "device/cpu/screen_body.h"

enum { SCREEN_TILE = 16 }; /* rows, quads or lanes */

/* The operand of LDTILECFG.  Static, since gcc's intrinsic declares only eight bytes as read. */
static const struct {
  uint8_t palette, start_row, zeros[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} screen_tile_shapes = {
    1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

/* Every thread has tile shapes of its own. */
static void screen_enter(void)
{
  _tile_loadconfig(&screen_tile_shapes);
}

/* After this, the operating system no longer saves the tiles of this thread. */
static void screen_leave(void)
{
  _tile_release();
}

/* Tiles 0 .. 3 are the sums, 4 and 5 the rows, 6 and 7 the atoms.  Each operand is used twice.
 * Between two additions to one sum, the three other sums are added to. */
static void screen_sizes(const uint8_t *panel, const int8_t *group, const int32_t *start, idx quads,
                         enum screen_step step, float *out)
{
  i32v sum[SCREEN_GROUP][SCREEN_VECTORS];
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (idx c = 0; c < quads; c += SCREEN_TILE, panel += 4 * SCREEN_TILE * SCREEN_WIDTH,
           group += SCREEN_COLUMNS * SCREEN_GROUP) {
    _tile_loadd(4, group, SCREEN_COLUMNS);
    _tile_loadd(5, group + SCREEN_TILE * SCREEN_COLUMNS, SCREEN_COLUMNS);
    _tile_loadd(6, panel, 4 * SCREEN_WIDTH);
    _tile_loadd(7, panel + 4 * F32_LANES, 4 * SCREEN_WIDTH);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_stored(0, &sum[0][0], sizeof sum[0]);
  _tile_stored(1, &sum[0][1], sizeof sum[0]);
  _tile_stored(2, &sum[SCREEN_TILE][0], sizeof sum[0]);
  _tile_stored(3, &sum[SCREEN_TILE][1], sizeof sum[0]);
  for (int r = 0; r < SCREEN_GROUP; r++)
    for (int v = 0; v < SCREEN_VECTORS; v++)
      screen_size_store(sum[r][v] + start[r], step, out + r * SCREEN_WIDTH + v * F32_LANES);
}

const struct isa isa_amx = {.needs = CPU_AVX512 | CPU_VNNI | CPU_AMX, .screen = &screen_table};
