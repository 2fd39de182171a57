/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the sizes that the filter computes from integers, and the pairs of a row and a frame whose
 * sizes pass its thresholds (hits), are those of plain loops, for the loops of every instruction
 * set that is present. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device_how.h"

/* Rows of the largest group, and frames of the largest panel; the length of the longest padded
 * operand; vectors of a frame. */
enum { SIDE = 32, LONG = 4 * 112, FRAME = 3 };
enum fill { ANY, LARGEST, ALIKE, OPPOSITE, FILLS };

static struct {
  int8_t row[SIDE][LONG], atom[FRAME][SIDE][LONG];
  _Alignas(64) int8_t group[SIDE * LONG];
  _Alignas(64) uint8_t panel[SIDE * LONG];
  _Alignas(64) float sizes[SIDE * SIDE], inverse[SIDE];
} t;

static int8_t integer(enum fill fill, int levels, uint64_t stream, uint64_t i)
{
  switch (fill) {
  case ANY:
    return (int8_t)((int)random_below(5, stream, i, (uint64_t)(2 * levels + 1)) - levels);
  case LARGEST:
    return (int8_t)(random_below(5, stream, i, 2) ? levels : -levels);
  default:
    return (int8_t)(fill == OPPOSITE && stream ? -levels : levels);
  }
}

/* Fill the operands.  Columns from `columns` on are zeros, as the filter pads them. */
static void operands_fill(const struct screen_loops *loops, idx columns, enum fill fill)
{
  memset(&t, 0, sizeof t);
  for (idx i = 0; i < SIDE; i++)
    for (idx c = 0; c < columns; c++) {
      uint64_t at = (uint64_t)(i * columns + c);
      t.row[i][c] = integer(fill, SCREEN_ROW_LEVELS, 0, at);
      for (int m = 0; m < FRAME; m++)
        t.atom[m][i][c] = integer(fill, loops->levels, 1 + (uint64_t)m, at);
    }
}

/* t.sizes <- the sizes for the group and vector m of the frames. */
static void sizes_make(const struct screen_loops *loops, idx quads, int m, enum screen_step step)
{
  int32_t start[SIDE] = {0};
  idx wide = loops->columns;
  for (idx c = 0; c < 4 * quads; c++) {
    for (idx l = 0; l < loops->lanes; l++)
      t.panel[(c / 4 * loops->lanes + l) * 4 + c % 4] = (uint8_t)(t.atom[m][l][c] + loops->offset);
    for (idx r = 0; r < loops->rows; r++) {
      t.group[(c / wide * loops->rows + r) * wide + c % wide] = t.row[r][c];
      start[r] -= loops->offset * t.row[r][c];
    }
  }
  loops->sizes(t.panel, t.group, start, quads, step, t.sizes);
}

static float product(idx r, int m, idx l)
{
  int32_t sum = 0;
  for (idx c = 0; c < LONG; c++) sum += t.row[r][c] * t.atom[m][l][c];
  return (float)sum;
}

/* Are the sizes those of plain loops?  d: 1 or FRAME. */
static int sizes_right(const struct screen_loops *loops, int d)
{
  int right = 1;
  for (idx r = 0; r < loops->rows; r++)
    for (idx l = 0; l < loops->lanes; l++) {
      float wanted = 0;
      for (int m = 0; m < d; m++) {
        float z = product(r, m, l);
        wanted += z * z;
      }
      wanted = d == 1 ? fabsf(product(r, 0, l)) : sqrtf(wanted);
      right &= t.sizes[r * loops->lanes + l] == wanted;
    }
  return right;
}

/* Are the hits right, with thresholds about as large as t.sizes?  Rows of the set `dropped` have no
 * hits. */
static int pass_right(const struct screen_loops *loops, uint32_t dropped)
{
  float slope[SIDE], reach[SIDE];
  uint32_t hits[SIDE], any = 0;
  int right = 1;
  for (idx i = 0; i < SIDE; i++) {
    t.inverse[i] = (float)(1 + random_below(6, 0, (uint64_t)i, 100)) / 64;
    slope[i] = dropped >> i & 1 ? INFINITY : t.sizes[i % loops->rows * loops->lanes];
    reach[i] = (float)random_below(6, 1, (uint64_t)i, 100);
  }
  uint32_t found = loops->pass(t.sizes, t.inverse, slope, reach, hits);
  for (idx r = 0; r < loops->rows; r++) {
    uint32_t wanted = 0;
    for (idx l = 0; l < loops->lanes; l++) {
      float min = slope[r] * t.inverse[l] - reach[r];
      wanted |= (uint32_t)(t.sizes[r * loops->lanes + l] >= min) << l;
    }
    right &= hits[r] == wanted;
    any |= (uint32_t)(wanted != 0) << r;
  }
  return right && found == any;
}

static void check_loops(const struct screen_loops *loops)
{
  static const idx all[] = {1, 15, 16, 17, 97};
  int right = 1, frames = 1, pass = 1;
  loops->enter();
  for (int i = 0; i < LENGTH(all); i++)
    for (int fill = 0; fill < FILLS; fill++) {
      idx whole = loops->columns / 4, quads = (all[i] + whole - 1) / whole * whole;
      operands_fill(loops, 4 * all[i] - i % 4, (enum fill)fill);
      sizes_make(loops, quads, 0, SCREEN_ONLY);
      right &= sizes_right(loops, 1);
      for (uint32_t r = 0; r < SIDE; r++) pass &= pass_right(loops, UINT32_C(0x88888888) ^ 1u << r);
      for (int m = 0; m < FRAME; m++)
        sizes_make(loops, quads, m,
                   m == 0          ? SCREEN_FIRST
                   : m < FRAME - 1 ? SCREEN_NEXT
                                   : SCREEN_LAST);
      frames &= sizes_right(loops, FRAME);
    }
  loops->leave();
  claim_begin(
      "%s: sizes of vectors and frames are right, and so are the atoms that pass a threshold",
      loops->name);
  ok(right, "sizes of vectors");
  ok(frames, "sizes of frames");
  ok(pass, "what passes a threshold");
  claim_end();
}

int main(void)
{
  const struct isa *unit;
  int count = 0;
  for (int i = 0; (unit = isa_present(i)); i++) {
    if (!unit->screen) continue;
    check_loops(unit->screen);
    count++;
  }
  if (!count) skip("there is no certified filter for this processor");
  return done_testing();
}
