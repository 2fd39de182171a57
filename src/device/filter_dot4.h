/* SPDX-License-Identifier: BSD-3-Clause
 * Sizes by an instruction that adds to each 32-bit lane the products of its four bytes.
 *
 * Floor: device.  Included behind filter_body.h by each filter_<variant>.c that defines
 *   dot4(sum, atoms, row)  sum + the four products of each lane. */

static void enter(void)
{
}

static void leave(void)
{
}

static NOINLINE void sizes(const uint8_t *panel, const int8_t *group, const int32_t *start,
                           idx quads, enum filter_step step, float *out)
{
  ilanes sum[ROWS][VECTORS];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++) sum[r][0] = sum[r][1] = start[r] - (ilanes){0};
  for (idx c = 0; c < quads; c++, panel += 4 * WIDTH, group += 4 * ROWS) {
    ilanes d0 = *(const ilanes *)panel, d1 = *(const ilanes *)(panel + 4 * LANES);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
      int32_t four;
      memcpy(&four, group + 4 * r, sizeof four);
      ilanes x = four - (ilanes){0};
      sum[r][0] = dot4(sum[r][0], d0, x);
      sum[r][1] = dot4(sum[r][1], d1, x);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++) {
    size_store(sum[r][0], step, out + r * WIDTH);
    size_store(sum[r][1], step, out + r * WIDTH + LANES);
  }
}
