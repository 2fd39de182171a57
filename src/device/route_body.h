/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of routing, for any vector width: exact scores (N.1) and selection by (N.2).
 *
 * Floor: device.  Included once by each route_<variant>.c, which defines
 *   ROUTE_TABLE, ROUTE_NAME  the table and its name,
 *   LANES, ROWS              floats a vector, rows a group,
 *   lane_bits()              one bit a lane of a comparison's result.
 *
 * Vectors run across atoms and rows, never along a chain, so the width does not change a bit. */
#include <math.h>
#include <string.h>

#include "device/cpu.h"

enum { VECTORS = 2, WIDTH = VECTORS * LANES, ALL_LANES = (1 << LANES) - 1 };

#define NOINLINE __attribute__((noinline))

/* Two things that the compilers are told by empty assembler statements (34 % more speed on Zen 4):
 * a broadcast goes to one of the first 16 registers, because in the newer encoding that the others
 * need it takes an arithmetic unit; and two products come before their two sums, because strictly
 * alternating they queue up for one half of the units. */
#define FIRST_REGISTERS(x) __asm__("" : "+x"(x))
#define BOTH_READY(x, y) __asm__("" : "+v"(x), "+v"(y))

static inline lanes splat(float x)
{
  return x - (lanes){0};
}

/* The accumulators of ROWS x 2 vectors of chains stay in registers over all columns. */
static NOINLINE void scores(const float *panel, const float *group, idx p, float *out)
{
  lanes sum[ROWS][VECTORS] = {0};
  for (idx c = 0; c < p; c++, panel += WIDTH, group += ROWS) {
    lanes d0 = *(const lanes *)panel, d1 = *(const lanes *)(panel + LANES);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
      lanes x = splat(group[r]);
      FIRST_REGISTERS(x);
      lanes product0 = x * d0, product1 = x * d1;
      BOTH_READY(product0, product1);
      sum[r][0] += product0;
      sum[r][1] += product1;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; r++) {
    *(lanes *)(out + r * WIDTH) = sum[r][0];
    *(lanes *)(out + r * WIDTH + LANES) = sum[r][1];
  }
}

static void square(const float *score, int first, float *gates)
{
  for (int i = 0; i < ROWS * VECTORS; i++) {
    lanes z = ((const lanes *)score)[i];
    lanes gate = z * z;
    if (!first) gate = ((lanes *)gates)[i] + gate;
    ((lanes *)gates)[i] = gate;
  }
}

static inline ilanes magnitude(const void *value)
{
  return *(const ilanes *)value & 0x7fffffff;
}

static inline idx lane_sum(ilanes v)
{
  idx sum = 0;
  for (int i = 0; i < LANES; i++) sum += v[i];
  return sum;
}

/* Entries whose magnitude has bits >= least; least >= 1, so that padding does not count. */
static idx count_from(const struct row_list *list, int32_t least)
{
  ilanes sum = {0};
  for (idx j = 0; j < list->count; j += LANES) sum -= magnitude(list->value + j) >= least;
  return lane_sum(sum);
}

static idx count_ties(const struct row_list *list, int32_t bits, idx last)
{
  ilanes sum = {0};
  for (idx j = 0; j < list->count; j += LANES)
    sum -= (magnitude(list->value + j) == bits) & (*(const ilanes *)(list->atom + j) <= last);
  return lane_sum(sum);
}

static int32_t list_largest(const struct row_list *list)
{
  ilanes largest = {0};
  for (idx j = 0; j < list->count; j += LANES) {
    ilanes other = magnitude(list->value + j), more = other > largest;
    largest = (other & more) | (largest & ~more);
  }
  int32_t out = 0;
  for (int i = 0; i < LANES; i++) out = largest[i] > out ? largest[i] : out;
  return out;
}

/* Bits of the take-th largest magnitude, by bisection: for finite floats the bits order as the
 * numbers do.  All entries are at or above the last cut's. */
static int32_t list_quantile(const struct row_list *list, idx take)
{
  int32_t low = list->floor, high = list_largest(list) + 1;
  while (high - low > 1) {
    int32_t middle = low + (high - low) / 2;
    if (count_from(list, middle) >= take) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/* The largest atom that is kept among those of magnitude `bits`, when `room` of them fit. */
static idx ties_last(const struct row_list *list, int32_t bits, idx room)
{
  idx low = -1, high = INT32_MAX - 1;
  if (count_ties(list, bits, high) <= room) return high;
  while (high - low > 1) {
    idx middle = low + (high - low) / 2;
    if (count_ties(list, bits, middle) >= room) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return high;
}

/* Keep the best take entries. */
static NOINLINE void list_cut(const struct list_order *order, struct row_list *list)
{
  int32_t bits = list_quantile(list, order->take);
  idx last = ties_last(list, bits, order->take - count_from(list, bits + 1));
  idx kept = 0;
  for (idx j = 0; j < list->count; j++) {
    int32_t own;
    memcpy(&own, list->value + j, sizeof own);
    own &= 0x7fffffff;
    list->value[kept] = list->value[j];
    list->atom[kept] = list->atom[j];
    kept += (own > bits) | ((own == bits) & (list->atom[kept] <= last));
  }
  for (idx j = kept; j < list->count; j++) {
    list->value[j] = 0;
    list->atom[j] = INT32_MAX;
  }
  list->count = kept;
  list->floor = bits;
  bits += order->ascending;
  memcpy(&list->least, &bits, sizeof bits);
}

static int is_excluded(const struct list_order *order, const struct row_list *list, idx atom)
{
  int found = 0;
  for (idx j = 0; j < order->excluded; j++) found |= list->excluded[j] == atom;
  return found;
}

static NOINLINE void list_add(const struct list_order *order, struct row_list *list,
                              const float *values, const idx *atom_of, uint64_t hits)
{
  for (; hits; hits &= hits - 1) {
    int lane = __builtin_ctzll(hits);
    float value = values[lane];
    idx atom = atom_of[lane];
    if (fabsf(value) < list->least) continue; /* a cut since the comparison */
    if (!isfinite(value)) {
      if (list->bad < 0 || atom < list->bad) list->bad = atom;
      continue;
    }
    if (is_excluded(order, list, atom)) continue;
    list->value[list->count] = value;
    list->atom[list->count] = atom;
    if (++list->count == order->capacity) list_cut(order, list);
  }
}

/* One bit a lane: is the magnitude below least?  NaN is not. */
static inline uint64_t lanes_below(const float *values, float least)
{
  uint64_t low = lane_bits((lanes)magnitude(values) < splat(least));
  uint64_t high = lane_bits((lanes)magnitude(values + LANES) < splat(least));
  return low | high << LANES;
}

/* Not inlined into the loop over panels: with it there the compilers spill accumulators.  Rows are
 * first tested without branches, because which rows go on cannot be predicted. */
static NOINLINE void select_rows(const struct list_order *order, const float *values, idx valid,
                                 const idx *atom_of, struct row_list *lists, idx n)
{
  uint32_t rows = 0;
#pragma GCC unroll 16
  for (idx r = 0; r < ROWS; r++) {
    const float *row = values + r * WIDTH;
    lanes least = splat(lists[r].least);
    ilanes both = ((lanes)magnitude(row) < least) & ((lanes)magnitude(row + LANES) < least);
    rows |= (uint32_t)(lane_bits(both) != ALL_LANES) << r;
  }
  uint64_t all = (UINT64_C(2) << (valid - 1)) - 1;
  for (rows &= (UINT32_C(1) << n) - 1; rows; rows &= rows - 1) {
    int r = __builtin_ctz(rows);
    const float *row = values + r * WIDTH;
    uint64_t hits = ~lanes_below(row, lists[r].least) & all;
    if (hits) list_add(order, lists + r, row, atom_of, hits);
  }
}

static void finish(const struct list_order *order, struct row_list *list, struct entry *out)
{
  if (list->count > order->take) list_cut(order, list);
  for (idx i = 0; i < list->count; i++) {
    ilanes own = (magnitude(list->value + i / LANES * LANES)), before = {0};
    int32_t size = own[i % LANES], atom = list->atom[i];
    for (idx j = 0; j < list->count; j += LANES) {
      ilanes bits = magnitude(list->value + j), other = *(const ilanes *)(list->atom + j);
      before -= (bits > size) | ((bits == size) & (other < atom));
    }
    out[lane_sum(before)] = (struct entry){list->value[i], atom};
  }
  for (idx i = list->count; i < order->take; i++) out[i] = ENTRY_NONE;
}

/* Chains enough to fill the units, operands in registers.  The empty assembler statement makes the
 * operand unknown again, so that no product can be reused, hoisted or dropped. */
enum { SPIN_CHAINS = 10, SPIN_UNROLL = 8 };
static NOINLINE void spin(gidx turns)
{
  lanes sum[SPIN_CHAINS] = {0}, x = splat(1), d0 = splat(0.5f), d1 = splat(-0.5f);
  for (gidx t = 0; t < turns * SPIN_UNROLL; t++) {
#pragma GCC unroll 12
    for (int i = 0; i < SPIN_CHAINS; i += 2) {
      FIRST_REGISTERS(x);
      lanes product0 = x * d0, product1 = x * d1;
      BOTH_READY(product0, product1);
      sum[i] += product0;
      sum[i + 1] += product1;
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < SPIN_CHAINS; i++) __asm__ volatile("" : : "v"(sum[i]));
}

const struct route_loops ROUTE_TABLE = {
    .name = ROUTE_NAME,
    .rows = ROWS,
    .lanes = WIDTH,
    .scores = scores,
    .square = square,
    .select = select_rows,
    .finish = finish,
    .spin = spin,
    .spin_terms = (gidx)SPIN_CHAINS * SPIN_UNROLL * LANES,
};
