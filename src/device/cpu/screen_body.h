/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of the certified filter, for any vector width: rows as small integers, the test against
 * the threshold of a row, and exact scores of the candidates.
 *
 * Floor: device.  A unit (isa.h) includes this after vectors.h and after it has defined
 *   SCREEN_NAME                    the name that logs print,
 *   SCREEN_GROUP, SCREEN_COLUMNS   rows of a group; adjacent columns of a row in it,
 *   SCREEN_LEVELS, SCREEN_OFFSET   of the integers of atoms.
 * After this file the unit defines screen_sizes(), screen_enter() and screen_leave(), or includes
 * screen_dot4.h, which does so.
 *
 * Integers may be added in any order.  The floats of an exact score are added in ascending columns,
 * with one atom per lane, so its bits are the same for any width of vectors. */
#include <immintrin.h>
#include <string.h>

#include "device/cpu/route_loops.h"
#include "device/cpu/screen_loops.h"

enum { SCREEN_VECTORS = 2, SCREEN_WIDTH = SCREEN_VECTORS * F32_LANES };

static void screen_enter(void), screen_leave(void);
static void screen_sizes(const uint8_t *panel, const int8_t *group, const int32_t *start, idx quads,
                         enum screen_step step, float *out);

/* The eight numbers from v on; those at `end` and after it are 0. */
static inline __m256 screen_eight_load(const float *v, const float *end)
{
  float part[8] = {0};
  if (end - v >= 8) return _mm256_loadu_ps(v);
  for (int i = 0; v + i < end; i++) part[i] = v[i];
  return _mm256_loadu_ps(part);
}

static inline double screen_four_sum(__m256d x)
{
  return (x[0] + x[1]) + (x[2] + x[3]);
}

static float screen_largest(const float *v, idx n)
{
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  __m256 max = _mm256_setzero_ps();
  float out = 0;
  for (idx c = 0; c < n; c += 8)
    max = _mm256_max_ps(max, _mm256_and_ps(mask, screen_eight_load(v + c, v + n)));
  for (int i = 0; i < 8; i++) out = max[i] > out ? max[i] : out;
  return out;
}

static NOINLINE int32_t screen_row_quantize(const float *row, idx p, int8_t *q,
                                            struct quantized *out)
{
  float scale = screen_scale(screen_largest(row, p), SCREEN_ROW_LEVELS);
  __m256 by = _mm256_set1_ps(scale);
  __m256d wide = _mm256_set1_pd(scale), norm = _mm256_setzero_pd(), less = norm, error = norm;
  __m256i sum = _mm256_setzero_si256();
  for (idx c = 0; c < p; c += 8) {
    __m256 x = screen_eight_load(row + c, row + p);
    __m256i k = _mm256_cvtps_epi32(_mm256_div_ps(x, by)); /* to nearest, ties to even */
    sum = _mm256_add_epi32(sum, k);
    __m128i half[2] = {_mm256_castsi256_si128(k), _mm256_extracti128_si256(k, 1)};
    _mm_storel_epi64((__m128i *)(q + c),
                     _mm_packs_epi16(_mm_packs_epi32(half[0], half[1]), _mm_setzero_si128()));
    __m128 parts[2] = {_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)};
    for (int h = 0; h < 2; h++) {
      __m256d v = _mm256_cvtps_pd(parts[h]), v_short = wide * _mm256_cvtepi32_pd(half[h]);
      __m256d e = v - v_short;
      norm += v * v;
      less += v_short * v_short;
      error += e * e;
    }
  }
  *out =
      screen_quantized(scale, screen_four_sum(norm), screen_four_sum(less), screen_four_sum(error));
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  four = _mm_hadd_epi32(four, four);
  return _mm_cvtsi128_si32(_mm_hadd_epi32(four, four));
}

static inline void screen_size_store(i32v sum, enum screen_step step, float *to)
{
  f32v x = __builtin_convertvector(sum, f32v);
  if (step == SCREEN_ONLY) {
    *(f32v *)to = (f32v)((i32v)x & 0x7fffffff);
    return;
  }
  if (step == SCREEN_POSITIVE) {
    *(f32v *)to = (f32v)((i32v)x & (x > f32_splat(0)));
    return;
  }
  f32v square = x * x;
  if (step != SCREEN_FIRST) square += *(const f32v *)to;
  *(f32v *)to = step == SCREEN_LAST ? f32_sqrt(square) : square;
}

/* Multiply and add round separately; the slack of slope and reach (screen_rows.c) covers that. */
static NOINLINE uint32_t screen_pass(const float *values, const float *inverse, const float *slope,
                                     const float *reach, uint32_t *hits)
{
  uint32_t any = 0;
  f32v i0 = *(const f32v *)inverse, i1 = *(const f32v *)(inverse + F32_LANES);
#pragma GCC unroll 16
  for (int r = 0; r < SCREEN_GROUP; r++) {
    const f32v *at = (const f32v *)(values + r * SCREEN_WIDTH);
    f32v by = f32_splat(slope[r]), less = f32_splat(reach[r]);
    uint32_t low = mask_bits(at[0] >= by * i0 - less), high = mask_bits(at[1] >= by * i1 - less);
    hits[r] = low | high << F32_LANES;
    any |= (uint32_t)(hits[r] != 0) << r;
  }
  return any;
}

static int32_t bits_of(float x)
{
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* The quantile is found to one part in 2^10, which is enough for a threshold. */
enum { QUANTILE_STEP = 1 << 13 };

/* The number of values whose bits are >= min; min >= 1, so that zeros do not count. */
static idx screen_count_from(const float *value, idx count, int32_t min)
{
  i32v sum = {0};
  for (idx j = 0; j < count; j += F32_LANES) sum -= *(const i32v *)(value + j) >= min;
  return i32_sum(sum);
}

static NOINLINE void screen_bounds(const struct screen_scales *by, const float *size,
                                   const idx *slot, idx count, float *lower, float *upper)
{
  for (idx j = 0; j < count; j++) lower[j] = by->scale[slot[j]];
  for (idx j = 0; j < count; j += F32_LANES) {
    f32v t = *(const f32v *)(lower + j), about = *(const f32v *)(size + j) * t;
    f32v error = f32_splat(by->flat) + f32_splat(by->steep) * t;
    f32v low = f32_splat(by->down) * about - error;
    *(f32v *)(lower + j) = (f32v)((i32v)low & (low > f32_splat(0)));
    *(f32v *)(upper + j) = f32_splat(by->up) * about + error;
  }
}

/* By bisection: floats >= 0 are ordered as their bits are. */
static NOINLINE float screen_quantile(float *value, idx count, idx top_k, float from)
{
  for (idx j = count; j % LIST_STEP; j++) value[j] = 0;
  i32v largest = {0};
  for (idx j = 0; j < count; j += F32_LANES) {
    i32v own = *(const i32v *)(value + j), more = own > largest;
    largest = (own & more) | (largest & ~more);
  }
  int32_t low = bits_of(from), high = low;
  for (int i = 0; i < F32_LANES; i++) high = largest[i] > high ? largest[i] : high;
  for (high++; high - low > QUANTILE_STEP;) {
    int32_t middle = low + (high - low) / 2;
    if (screen_count_from(value, count, middle) >= top_k)
      low = middle;
    else
      high = middle;
  }
  float out;
  memcpy(&out, &low, sizeof out);
  return out;
}

/* column[i] <- column c + i of eight vectors. */
ALWAYS_INLINE void screen_transpose(const float *const *vector, idx c, __m256 column[8])
{
  __m256 pair[8], four[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) { /* vectors i and i + 4 side by side, half of the columns each */
    __m128 low = _mm_loadu_ps(vector[i] + c), high = _mm_loadu_ps(vector[i] + c + 4);
    pair[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(low), _mm_loadu_ps(vector[i + 4] + c), 1);
    pair[i + 4] =
        _mm256_insertf128_ps(_mm256_castps128_ps256(high), _mm_loadu_ps(vector[i + 4] + c + 4), 1);
  }
#pragma GCC unroll 2
  for (int h = 0; h < 8; h += 4) {
    four[h] = _mm256_unpacklo_ps(pair[h], pair[h + 1]);
    four[h + 1] = _mm256_unpackhi_ps(pair[h], pair[h + 1]);
    four[h + 2] = _mm256_unpacklo_ps(pair[h + 2], pair[h + 3]);
    four[h + 3] = _mm256_unpackhi_ps(pair[h + 2], pair[h + 3]);
    column[h] = _mm256_shuffle_ps(four[h], four[h + 2], 0x44);
    column[h + 1] = _mm256_shuffle_ps(four[h], four[h + 2], 0xee);
    column[h + 2] = _mm256_shuffle_ps(four[h + 1], four[h + 3], 0x44);
    column[h + 3] = _mm256_shuffle_ps(four[h + 1], four[h + 3], 0xee);
  }
}

/* Two vectors of chains, since each addition waits for the one before it in its chain. */
static NOINLINE void screen_chains(const float *row, const float *const *vector, idx p, float *out)
{
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  idx c = 0;
  for (; c + 8 <= p; c += 8)
    for (int h = 0; h < 2; h++) {
      __m256 column[8];
      screen_transpose(vector + 8 * h, c, column);
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++)
        sum[h] = _mm256_add_ps(sum[h], _mm256_mul_ps(_mm256_set1_ps(row[c + i]), column[i]));
    }
  for (; c < p; c++)
    for (int h = 0; h < 2; h++) {
      const float *const *v = vector + 8 * h;
      __m256 column = {v[0][c], v[1][c], v[2][c], v[3][c], v[4][c], v[5][c], v[6][c], v[7][c]};
      sum[h] = _mm256_add_ps(sum[h], _mm256_mul_ps(_mm256_set1_ps(row[c]), column));
    }
  _mm256_storeu_ps(out, sum[0]);
  _mm256_storeu_ps(out + 8, sum[1]);
}

static const struct screen_loops screen_table = {
    .name = SCREEN_NAME,
    .rows = SCREEN_GROUP,
    .lanes = SCREEN_WIDTH,
    .columns = SCREEN_COLUMNS,
    .levels = SCREEN_LEVELS,
    .offset = SCREEN_OFFSET,
    .quantize = screen_row_quantize,
    .enter = screen_enter,
    .leave = screen_leave,
    .sizes = screen_sizes,
    .pass = screen_pass,
    .bounds = screen_bounds,
    .quantile = screen_quantile,
    .chains = screen_chains,
};
