/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of the certified filter, for any vector width: rows as small integers, the test against
 * a row's threshold, exact chains of what passes it.
 *
 * Floor: device.  Included once by each filter_<variant>.c, which defines
 *   FILTER_TABLE, FILTER_NAME      the table and its name,
 *   LANES, ROWS, COLUMNS           32-bit lanes a vector; rows a group, its columns that stand
 *                                  together for a row,
 *   LEVELS, OFFSET                 of the atoms' integers,
 *   root(x), lane_bits(mask)       square roots; one bit a lane,
 * and behind this sizes(), enter() and leave() of the table: filter_dot4.h, or its own.
 *
 * Sums of integers are exact, so only the chains have an order, and their lanes are atoms. */
#include <immintrin.h>
#include <string.h>

#include "device/cpu.h"

enum { VECTORS = 2, WIDTH = VECTORS * LANES };

#define NOINLINE __attribute__((noinline))

static void enter(void), leave(void);
static void sizes(const uint8_t *panel, const int8_t *group, const int32_t *start, idx quads,
                  enum filter_step step, float *out);

static inline lanes splat(float x)
{
  return x - (lanes){0};
}

/* Eight numbers from v on; zeros from `end` on. */
static inline __m256 eight_load(const float *v, const float *end)
{
  float part[8] = {0};
  if (end - v >= 8) return _mm256_loadu_ps(v);
  for (int i = 0; v + i < end; i++) part[i] = v[i];
  return _mm256_loadu_ps(part);
}

static inline double four_sum(__m256d x)
{
  return (x[0] + x[1]) + (x[2] + x[3]);
}

static float largest(const float *v, idx n)
{
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  __m256 most = _mm256_setzero_ps();
  float out = 0;
  for (idx c = 0; c < n; c += 8)
    most = _mm256_max_ps(most, _mm256_and_ps(mask, eight_load(v + c, v + n)));
  for (int i = 0; i < 8; i++) out = most[i] > out ? most[i] : out;
  return out;
}

static NOINLINE int32_t quantize(const float *row, idx p, int8_t *q, struct quantized *out)
{
  float scale = filter_scale(largest(row, p), FILTER_ROW_LEVELS);
  __m256 by = _mm256_set1_ps(scale);
  __m256d wide = _mm256_set1_pd(scale), norm = _mm256_setzero_pd(), less = norm, error = norm;
  __m256i sum = _mm256_setzero_si256();
  for (idx c = 0; c < p; c += 8) {
    __m256 x = eight_load(row + c, row + p);
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
  *out = filter_quantized(scale, four_sum(norm), four_sum(less), four_sum(error));
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  four = _mm_hadd_epi32(four, four);
  return _mm_cvtsi128_si32(_mm_hadd_epi32(four, four));
}

static inline void size_store(ilanes sum, enum filter_step step, float *to)
{
  lanes x = __builtin_convertvector(sum, lanes);
  if (step == FILTER_ONLY) {
    *(lanes *)to = (lanes)((ilanes)x & 0x7fffffff);
    return;
  }
  lanes square = x * x;
  if (step != FILTER_FIRST) square += *(const lanes *)to;
  *(lanes *)to = step == FILTER_LAST ? root(square) : square;
}

/* Multiply and add are apart here: the contraction to fma would be as good, and is not promised. */
static NOINLINE uint32_t pass(const float *values, const float *inverse, const float *slope,
                              const float *reach, uint32_t *hits)
{
  uint32_t any = 0;
  lanes i0 = *(const lanes *)inverse, i1 = *(const lanes *)(inverse + LANES);
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++) {
    const lanes *at = (const lanes *)(values + r * WIDTH);
    lanes by = splat(slope[r]), less = splat(reach[r]);
    uint32_t low = lane_bits(at[0] >= by * i0 - less), high = lane_bits(at[1] >= by * i1 - less);
    hits[r] = low | high << LANES;
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

/* The quantile is found to one part in 2^10, which is enough. */
enum { QUANTILE_STEP = 1 << 13 };

/* Numbers with bits >= least >= 1, so that zeros do not count. */
static idx count_from(const float *value, idx count, int32_t least)
{
  ilanes sum = {0};
  idx total = 0;
  for (idx j = 0; j < count; j += LANES) sum -= *(const ilanes *)(value + j) >= least;
  for (int i = 0; i < LANES; i++) total += sum[i];
  return total;
}

static NOINLINE void bounds(const struct filter_scales *by, const float *size, const idx *slot,
                            idx count, float *lower, float *upper)
{
  for (idx j = 0; j < count; j++) lower[j] = by->scale[slot[j]];
  for (idx j = 0; j < count; j += LANES) {
    lanes t = *(const lanes *)(lower + j), about = *(const lanes *)(size + j) * t;
    lanes error = splat(by->flat) + splat(by->steep) * t;
    lanes low = splat(by->down) * about - error;
    *(lanes *)(lower + j) = (lanes)((ilanes)low & (low > splat(0)));
    *(lanes *)(upper + j) = splat(by->up) * about + error;
  }
}

/* By bisection: for floats >= 0 the bits order as the numbers do. */
static NOINLINE float quantile(float *value, idx count, idx take, float from)
{
  for (idx j = count; j % LIST_STEP; j++) value[j] = 0;
  ilanes largest = {0};
  for (idx j = 0; j < count; j += LANES) {
    ilanes own = *(const ilanes *)(value + j), more = own > largest;
    largest = (own & more) | (largest & ~more);
  }
  int32_t low = bits_of(from), high = low;
  for (int i = 0; i < LANES; i++) high = largest[i] > high ? largest[i] : high;
  for (high++; high - low > QUANTILE_STEP;) {
    int32_t middle = low + (high - low) / 2;
    if (count_from(value, count, middle) >= take)
      low = middle;
    else
      high = middle;
  }
  float out;
  memcpy(&out, &low, sizeof out);
  return out;
}

/* Columns of eight vectors <- eight columns of each. */
static inline __attribute__((always_inline)) void transpose(const float *const *vector, idx c,
                                                            __m256 column[8])
{
  __m256 pair[8], four[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) { /* vectors i and i + 4 side by side, by halves of their columns */
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

/* Two vectors of chains, because each waits for its own sums. */
static NOINLINE void chains(const float *row, const float *const *vector, idx p, float *out)
{
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  idx c = 0;
  for (; c + 8 <= p; c += 8)
    for (int h = 0; h < 2; h++) {
      __m256 column[8];
      transpose(vector + 8 * h, c, column);
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

const struct filter_loops FILTER_TABLE = {
    .name = FILTER_NAME,
    .rows = ROWS,
    .lanes = WIDTH,
    .columns = COLUMNS,
    .levels = LEVELS,
    .offset = OFFSET,
    .quantize = quantize,
    .enter = enter,
    .leave = leave,
    .sizes = sizes,
    .pass = pass,
    .bounds = bounds,
    .quantile = quantile,
    .chains = chains,
};
