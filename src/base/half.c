/* SPDX-License-Identifier: BSD-3-Clause
 * Exponent and fraction of a binary16 are placed in an f32 and scaled by 2^112, which also
 * normalises subnormals; the largest exponent (infinity, NaN) is corrected afterwards.  There is no
 * branch, so the loop vectorises. */
#include "base/half.h"

#include <string.h>

static float float_of(uint32_t bits)
{
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

void f16_to_f32(const uint16_t *bits, gidx count, float *out)
{
  for (gidx i = 0; i < count; i++) {
    uint32_t h = bits[i], rest = h & 0x7fff;
    uint32_t special = rest >= 0x7c00 ? 0x7f800000u : 0;
    float magnitude = float_of(rest << 13) * 0x1p112f;
    uint32_t wide;
    memcpy(&wide, &magnitude, sizeof wide);
    out[i] = float_of(wide | special | (h & 0x8000) << 16);
  }
}

void bf16_to_f32(const uint16_t *bits, gidx count, float *out)
{
  for (gidx i = 0; i < count; i++) out[i] = float_of((uint32_t)bits[i] << 16);
}

uint16_t f16_bits(float value)
{
  float scaled = value * 0x1p-112f; /* its exponent field equals the field of the binary16 */
  uint32_t bits, wide;
  memcpy(&bits, &value, sizeof bits);
  memcpy(&wide, &scaled, sizeof wide);
  uint32_t rest = bits & 0x7fffffff;
  uint32_t half = rest > 0x7f800000    ? 0x7e00
                  : rest == 0x7f800000 ? 0x7c00
                                       : (wide & 0x7fffffff) >> 13;
  return (uint16_t)(half | (bits >> 16 & 0x8000));
}

uint16_t bf16_bits(float value)
{
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}
