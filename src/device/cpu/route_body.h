/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of routing, for any vector width: exact scores (N.1) and selection by (N.2).
 *
 * Floor: device.  A unit (isa.h) includes this after vectors.h and after it has defined
 *   ROUTE_NAME   the name of the variant,
 *   ROUTE_GROUP  rows of a group, each with two vectors of sums in registers.
 *
 * Lanes are atoms.  No chain crosses lanes, so the vector width does not change a bit. */
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"

enum {
  ROUTE_VECTORS = 2,
  ROUTE_WIDTH = ROUTE_VECTORS * F32_LANES,
  ROUTE_ALL_LANES = (1 << F32_LANES) - 1
};

/* Empty assembler statements give the compilers two hints (34 % more speed on Zen 4).  First, a
 * broadcast goes to one of the first 16 registers, because the other registers need a newer
 * encoding, with which a broadcast occupies an arithmetic unit.  Second, two products come before
 * their two sums, because alternating products and sums all queue for the same half of the units.
 * Other processors are not slower for it. */
#define FIRST_REGISTERS(x) __asm__("" : "+" FIRST_REGISTER(x))
#define BOTH_READY(x, y) __asm__("" : "+" VECTOR_REGISTER(x), "+" VECTOR_REGISTER(y))

/* The accumulators, ROUTE_GROUP x 2 vectors, stay in registers over all columns. */
static NOINLINE void route_scores(const float *panel, const float *group, idx p, float *out)
{
  f32v sum[ROUTE_GROUP][ROUTE_VECTORS] = {0};
  for (idx c = 0; c < p; c++, panel += ROUTE_WIDTH, group += ROUTE_GROUP) {
    f32v d0 = *(const f32v *)panel, d1 = *(const f32v *)(panel + F32_LANES);
#pragma GCC unroll 16
    for (int r = 0; r < ROUTE_GROUP; r++) {
      f32v x = f32_splat(group[r]);
      FIRST_REGISTERS(x);
      f32v product0 = x * d0, product1 = x * d1;
      BOTH_READY(product0, product1);
      sum[r][0] += product0;
      sum[r][1] += product1;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROUTE_GROUP; r++) {
    *(f32v *)(out + r * ROUTE_WIDTH) = sum[r][0];
    *(f32v *)(out + r * ROUTE_WIDTH + F32_LANES) = sum[r][1];
  }
}

static void route_square(const float *score, int first, float *gates)
{
  for (int i = 0; i < ROUTE_GROUP * ROUTE_VECTORS; i++) {
    f32v z = ((const f32v *)score)[i];
    f32v gate = z * z;
    if (!first) gate = ((f32v *)gates)[i] + gate;
    ((f32v *)gates)[i] = gate;
  }
}

/* A negative finite value becomes +0.  Its magnitude, as bits, is below that of infinity. */
static void route_positives(float *values)
{
  for (int i = 0; i < ROUTE_GROUP * ROUTE_VECTORS; i++) {
    i32v *bits = (i32v *)values + i;
    *bits &= ~((*bits < 0) & ((*bits & 0x7fffffff) < 0x7f800000));
  }
}

static inline i32v list_magnitude(const void *value)
{
  return *(const i32v *)value & 0x7fffffff;
}

/* The number of entries with a magnitude of at least `min`, compared as bits.  min >= 1, so that
 * padding does not count. */
static idx list_count_from(const struct row_list *list, int32_t min)
{
  i32v sum = {0};
  for (idx j = 0; j < list->count; j += F32_LANES) sum -= list_magnitude(list->value + j) >= min;
  return i32_sum(sum);
}

/* The number of entries of magnitude `bits` whose atom is at most `last`. */
static idx list_count_ties(const struct row_list *list, int32_t bits, idx last)
{
  i32v sum = {0};
  for (idx j = 0; j < list->count; j += F32_LANES)
    sum -= (list_magnitude(list->value + j) == bits) & (*(const i32v *)(list->atom + j) <= last);
  return i32_sum(sum);
}

/* Bits of the largest magnitude. */
static int32_t list_largest(const struct row_list *list)
{
  i32v largest = {0};
  for (idx j = 0; j < list->count; j += F32_LANES) {
    i32v other = list_magnitude(list->value + j), more = other > largest;
    largest = (other & more) | (largest & ~more);
  }
  int32_t out = 0;
  for (int i = 0; i < F32_LANES; i++) out = largest[i] > out ? largest[i] : out;
  return out;
}

/* Bits of the top_k-th largest magnitude, by bisection: nonnegative floats are ordered as their
 * bits are.  All entries are at or above the floor that the last pruning left. */
static int32_t list_quantile(const struct row_list *list, idx top_k)
{
  int32_t low = list->floor, high = list_largest(list) + 1;
  while (high - low > 1) {
    int32_t middle = low + (high - low) / 2;
    if (list_count_from(list, middle) >= top_k) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/* The largest atom that is kept among the entries of magnitude `bits`, if `capacity` of them are
 * kept. */
static idx list_ties_last(const struct row_list *list, int32_t bits, idx capacity)
{
  idx low = -1, high = INT32_MAX - 1;
  if (list_count_ties(list, bits, high) <= capacity) return high;
  while (high - low > 1) {
    idx middle = low + (high - low) / 2;
    if (list_count_ties(list, bits, middle) >= capacity) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return high;
}

/* Keep the best top_k entries, without changing their order. */
static NOINLINE void list_prune(const struct list_order *order, struct row_list *list)
{
  int32_t bits = list_quantile(list, order->top_k);
  idx last = list_ties_last(list, bits, order->top_k - list_count_from(list, bits + 1));
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
  memcpy(&list->min, &bits, sizeof bits);
}

static int list_excludes(const struct list_order *order, const struct row_list *list, idx atom)
{
  int found = 0;
  for (idx j = 0; j < order->excluded; j++) found |= list->excluded[j] == atom;
  return found;
}

/* Append the values of the lanes in `hits`.  A value that is not finite is not appended; list->bad
 * keeps its atom if that is the lowest. */
static NOINLINE void list_add(const struct list_order *order, struct row_list *list,
                              const float *values, const idx *atom_of, uint64_t hits)
{
  for (; hits; hits &= hits - 1) {
    int lane = __builtin_ctzll(hits);
    float value = values[lane];
    idx atom = atom_of[lane];
    if (fabsf(value) < list->min) continue; /* the list was pruned after the comparison */
    if (!isfinite(value)) {
      if (list->bad < 0 || atom < list->bad) list->bad = atom;
      continue;
    }
    if (list_excludes(order, list, atom)) continue;
    list->value[list->count] = value;
    list->atom[list->count] = atom;
    if (++list->count == order->capacity) list_prune(order, list);
  }
}

/* One bit per lane: is the magnitude below min?  NaN is not. */
static inline uint64_t route_lanes_below(const float *values, float min)
{
  uint64_t low = mask_bits((f32v)list_magnitude(values) < f32_splat(min));
  uint64_t high = mask_bits((f32v)list_magnitude(values + F32_LANES) < f32_splat(min));
  return low | high << F32_LANES;
}

/* Not inlined into the loop over panels, where it would make the compilers spill accumulators.
 * Rows are first tested without branches, because it is unpredictable which rows have a hit. */
static NOINLINE void route_select(const struct list_order *order, const float *values, idx valid,
                                  const idx *atom_of, struct row_list *lists, idx n)
{
  uint32_t rows = 0;
#pragma GCC unroll 16
  for (idx r = 0; r < ROUTE_GROUP; r++) {
    const float *row = values + r * ROUTE_WIDTH;
    f32v min = f32_splat(lists[r].min);
    i32v both = ((f32v)list_magnitude(row) < min) & ((f32v)list_magnitude(row + F32_LANES) < min);
    rows |= (uint32_t)(mask_bits(both) != ROUTE_ALL_LANES) << r;
  }
  uint64_t all = (UINT64_C(2) << (valid - 1)) - 1;
  for (rows &= (UINT32_C(1) << n) - 1; rows; rows &= rows - 1) {
    int r = __builtin_ctz(rows);
    const float *row = values + r * ROUTE_WIDTH;
    uint64_t hits = ~route_lanes_below(row, lists[r].min) & all;
    if (hits) list_add(order, lists + r, row, atom_of, hits);
  }
}

/* The position of an entry is the number of entries that come before it in the order of (N.2). */
static void route_finish(const struct list_order *order, struct row_list *list, struct entry *out)
{
  if (list->count > order->top_k) list_prune(order, list);
  for (idx i = 0; i < list->count; i++) {
    i32v own = (list_magnitude(list->value + i / F32_LANES * F32_LANES)), before = {0};
    int32_t size = own[i % F32_LANES], atom = list->atom[i];
    for (idx j = 0; j < list->count; j += F32_LANES) {
      i32v bits = list_magnitude(list->value + j), other = *(const i32v *)(list->atom + j);
      before -= (bits > size) | ((bits == size) & (other < atom));
    }
    out[i32_sum(before)] = (struct entry){list->value[i], atom};
  }
  for (idx i = list->count; i < order->top_k; i++) out[i] = ENTRY_NONE;
}

/* Enough chains to fill the arithmetic units, with operands in registers.  The empty assembler
 * statement makes the operand unknown, so that no product can be reused, hoisted or dropped. */
enum { SPIN_CHAINS = 10, SPIN_UNROLL = 8 };
static NOINLINE void route_spin(gidx turns)
{
  f32v sum[SPIN_CHAINS] = {0}, x = f32_splat(1), d0 = f32_splat(0.5f), d1 = f32_splat(-0.5f);
  for (gidx t = 0; t < turns * SPIN_UNROLL; t++) {
#pragma GCC unroll 12
    for (int i = 0; i < SPIN_CHAINS; i += 2) {
      FIRST_REGISTERS(x);
      f32v product0 = x * d0, product1 = x * d1;
      BOTH_READY(product0, product1);
      sum[i] += product0;
      sum[i + 1] += product1;
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < SPIN_CHAINS; i++) __asm__ volatile("" : : VECTOR_REGISTER(sum[i]));
}

static const struct route_loops route_table = {
    .name = ROUTE_NAME,
    .rows = ROUTE_GROUP,
    .lanes = ROUTE_WIDTH,
    .scores = route_scores,
    .square = route_square,
    .positive = route_positives,
    .select = route_select,
    .finish = route_finish,
    .spin = route_spin,
    .spin_terms = (gidx)SPIN_CHAINS * SPIN_UNROLL * F32_LANES,
};
