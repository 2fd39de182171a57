/* SPDX-License-Identifier: BSD-3-Clause
 * screen_sizes() for an instruction that adds to each 32-bit lane the products of its four bytes.
 *
 * Floor: device.  A unit includes this after screen_body.h and after it has defined
 *   screen_dot4(sum, atoms, row)  sum + the four products of each lane. */

static void screen_enter(void)
{
}

static void screen_leave(void)
{
}

static NOINLINE void screen_sizes(const uint8_t *panel, const int8_t *group, const int32_t *start,
                                  idx quads, enum screen_step step, float *out)
{
  i32v sum[SCREEN_GROUP][SCREEN_VECTORS];
#pragma GCC unroll 16
  for (int r = 0; r < SCREEN_GROUP; r++) sum[r][0] = sum[r][1] = start[r] - (i32v){0};
  for (idx c = 0; c < quads; c++, panel += 4 * SCREEN_WIDTH, group += 4 * SCREEN_GROUP) {
    i32v d0 = *(const i32v *)panel, d1 = *(const i32v *)(panel + 4 * F32_LANES);
#pragma GCC unroll 16
    for (int r = 0; r < SCREEN_GROUP; r++) {
      int32_t four;
      memcpy(&four, group + 4 * r, sizeof four);
      i32v x = four - (i32v){0};
      sum[r][0] = screen_dot4(sum[r][0], d0, x);
      sum[r][1] = screen_dot4(sum[r][1], d1, x);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < SCREEN_GROUP; r++) {
    screen_size_store(sum[r][0], step, out + r * SCREEN_WIDTH);
    screen_size_store(sum[r][1], step, out + r * SCREEN_WIDTH + F32_LANES);
  }
}
