/* SPDX-License-Identifier: BSD-3-Clause
 * One row of an arrow system in shared memory, by one thread: factor and forward substitution (N.7,
 * N.8), its step (N.11), its pivots (N.13).
 *
 * The including file may define ARROW_HELD > 0: threads then hold the factors of their rows in
 * registers, and H has no space in a row.  It may define ARROW_ALONE as 1: a block then has a whole
 * system, and rows::shift and rows::pad are constants.
 *
 * -D ARROW_D, ARROW_K */
#ifndef ARROW_ROW_H
#define ARROW_ROW_H

#include "arrow_types.h"
#include "async_copy.h"
#include "pair.h"
#include "root.h"

#ifndef ARROW_HELD
#define ARROW_HELD 0
#endif
#ifndef ARROW_ALONE
#define ARROW_ALONE 0
#endif

enum {
  FRAME = ARROW_D,
  BORDER = ARROW_K,
  HELD = ARROW_HELD,
  ROW = arrow_row_reals(FRAME, BORDER, HELD),
  TRIANGLE = FRAME * (FRAME + 1) / 2,
  U_AT = FRAME * BORDER, /* offset of u in a row */
  L_AT = U_AT + FRAME,   /* offset of L */
  COLUMNS = BORDER + 1,  /* columns of Y, and u */
  IS_TINY = arrow_is_tiny(FRAME, BORDER, ARROW_ALONE),
  PIVOTS = arrow_pivots(FRAME, BORDER, ARROW_ALONE), /* pivots of a row that do not follow its L */
  AT_ONCE = IS_TINY      ? 5
            : HELD       ? (BORDER <= ARROW_FEW ? 6 : 8)
            : FRAME <= 2 ? 4
            : FRAME <= 4 ? 2
                         : 1 /* columns done together, to hide latency */
};

/* The rows in shared memory: a round of `1 << shift` rows, `pad` reals, the next round, ... */
struct rows {
  double *at, *pivots;
  int shift, pad;
};

static __device__ inline double *row_at(const struct rows *r, int q)
{
  return r->at + q * ROW + (q >> r->shift) * r->pad;
}

/* Pivot j of row q. */
static __device__ inline double *pivot_at(const struct rows *r, int q, int j)
{
  return j < PIVOTS ? r->pivots + (q * PIVOTS + j) : row_at(r, q) + (L_AT + TRIANGLE + j - PIVOTS);
}

/* Index of entry (i, j), i >= j, of a packed factor. */
static __device__ inline int packed(int i, int j)
{
  return j * (2 * FRAME - j - 1) / 2 + i;
}

static __device__ inline int is_good(double pivot)
{
  return pivot > 0 && pivot <= LARGEST;
}

static __device__ inline int is_finite(double x)
{
  return fabs(x) <= LARGEST;
}

/* The number, in the system, of row q of block `part`.  The block has every (32 >> shift)th
 * lane. */
static __device__ inline int row_number(int q, int part, int shift)
{
  int lane = q & ((1 << shift) - 1), parts = ARROW_LANES >> shift;
  return (q >> shift) * ARROW_LANES + lane * parts + part;
}

static __device__ inline void piece_order(double *to, const double *from)
{
  if (FRAME % 2)
    async_copy8(to, from);
  else
    async_copy16(to, from);
}

/* Begin to copy `size` numbers of each of `count` rows to offset `place` of the rows in shared
 * memory.  In `from`, the numbers of rows follow each other.  all: row q is row q of `from`;
 * otherwise it is row_number(first + q). */
static __device__ inline void part_order(const struct rows *to, const double *from, int size,
                                         int place, int first, int count, int part, int all)
{
  const int wide = FRAME % 2 ? 1 : 2, pieces = size / wide, team = ARROW_TEAM;
  const int width = pieces ? pieces : 1, step = team / width;
  int thread = threadIdx.x % ARROW_TEAM;
  if (IS_TINY && pieces > 0 && team % width == 0 && step % ARROW_LANES == 0) {
    /* As below.  But a thread goes from row to row by whole rounds, so the addresses `here` and
     * `there` grow by constants. */
    int q = thread / width, at = thread % width * wide;
    const double *here = from + (q * size + at);
    double *there = row_at(to, q) + (place + at);
#pragma unroll 4
    for (; q < count; q += step, here += step * size, there += row_at(to, step) - to->at)
      piece_order(there, here);
  } else if (pieces > 0 && team % width == 0) { /* a thread copies the same piece of every row */
    int q = thread / width, at = thread % width * wide;
    const double *here = from + (q * size + at);
    double *there = to->at + (place + at);
#pragma unroll 4
    for (; q < count; q += step, here += step * size) {
      if (!all) here = from + (row_number(first + q, part, to->shift) * size + at);
      piece_order(there + (row_at(to, q) - to->at), here);
    }
  } else if (pieces > 0) {
#pragma unroll 4
    for (int e = thread; e < count * pieces; e += team) {
      int q = (int)((unsigned)e / width), at = (e - q * pieces) * wide;
      int row = all ? q : row_number(first + q, part, to->shift);
      piece_order(row_at(to, q) + (place + at), from + (row * size + at));
    }
  }
}

/* Begin to copy rows first .. first + count - 1 of a part to shared memory.  They are counted from
 * row `base` of the system. */
static __device__ inline void rows_order(const struct rows *to, const double *in, long long n,
                                         long long base, int first, int count, int part)
{
  const double *b = in + base * (FRAME * BORDER), *h = in + n * (FRAME * BORDER);
  const double *g = h + n * (FRAME * FRAME) + base * FRAME;
  h += base * (FRAME * FRAME);
  if (to->shift == 5 && first == 0) {
    part_order(to, b, FRAME * BORDER, 0, first, count, part, 1);
    if (!HELD) part_order(to, h, FRAME * FRAME, L_AT, first, count, part, 1);
    part_order(to, g, FRAME, U_AT, first, count, part, 1);
  } else {
    part_order(to, b, FRAME * BORDER, 0, first, count, part, 0);
    if (!HELD) part_order(to, h, FRAME * FRAME, L_AT, first, count, part, 0);
    part_order(to, g, FRAME, U_AT, first, count, part, 0);
  }
}

/* When system `index` begins, prefetch a later system to the second-level cache (9.0 and newer). */
static __device__ inline void later_prefetch(const struct arrow_args *a, int index)
{
#if __CUDA_ARCH__ >= 900
  if (a->ahead == 0 || a->ahead >= a->count - index) return;
  const struct arrow_atom *later = a->atoms + index + a->ahead;
  int reals = later->n * (FRAME * FRAME + FRAME * BORDER + FRAME) + BORDER * BORDER + BORDER;
  int bytes = (reals + 1) / 2 * 16; /* rounded up: systems are padded to LOT_LINE */
  if (bytes > 0)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(a->in + later->in), "r"(bytes));
#else
  (void)a;
  (void)index;
#endif
}

/* Tells the compiler to move the other branch out of the way. */
#define LIKELY(condition) __builtin_expect(!!(condition), 1)

/* to[count] <- from[count]; for even d 16 bytes at a time. */
static __device__ inline void reals_read(double *to, const double *from, int count)
{
#pragma unroll
  for (int i = 0; i < count; i += FRAME % 2 ? 1 : 2) {
    if (FRAME % 2) {
      to[i] = from[i];
    } else {
      double2 x = *(const double2 *)(from + i);
      to[i] = x.x;
      to[i + 1] = x.y;
    }
  }
}
static __device__ inline void reals_write(double *to, const double *from, int count)
{
#pragma unroll
  for (int i = 0; i < count; i += FRAME % 2 ? 1 : 2) {
    if (FRAME % 2)
      to[i] = from[i];
    else
      *(double2 *)(to + i) = make_double2(from[i], from[i + 1]);
  }
}

enum { MAX_ROWS = 2 }; /* rows that a thread does together, to hide latency */

/* The factor of a row, with what divisions by its diagonal need (root.h). */
struct row_factor {
  double l[TRIANGLE];
  struct divisor diagonal[FRAME];
};

/* Factor H + ridge I of each row, without branches; H of row r is at at[r].  Gives factors and
 * pivots.  Returns 0 if a number is not usual (root.h); then the results are invalid. */
static __device__ inline int rows_decompose(double *const *at, int rows, double ridge,
                                            struct row_factor *f, double (*pivots)[FRAME])
{
  int plain = 1;
#pragma unroll
  for (int r = 0; r < rows; r++) {
    double h[FRAME * FRAME];
#pragma unroll
    for (int e = 0; HELD && e < FRAME * FRAME; e++) h[e] = at[r][e];
    if (!HELD) reals_read(h, at[r], FRAME * FRAME);
#pragma unroll
    for (int j = 0; j < FRAME; j++)
#pragma unroll
      for (int i = j; i < FRAME; i++)
        f[r].l[packed(i, j)] = i == j ? h[j * FRAME + i] + ridge : h[j * FRAME + i];
  }
#pragma unroll
  for (int j = 0; j < FRAME; j++)
#pragma unroll
    for (int r = 0; r < rows; r++) {
      double *l = f[r].l;
#pragma unroll
      for (int p = 0; p < j; p++)
#pragma unroll
        for (int i = j; i < FRAME; i++)
          l[packed(i, j)] = fma(-l[packed(j, p)], l[packed(i, p)], l[packed(i, j)]);
      double pivot = pivots[r][j] = l[packed(j, j)];
      struct root root = root_of(pivot);
      plain &= root.is_usual & is_above(pivot);
      f[r].diagonal[j] = divisor_of(root.l);
#pragma unroll
      for (int i = j + 1; i < FRAME; i++) {
        plain &= is_usual(l[packed(i, j)]);
        l[packed(i, j)] = root_quotient(l[packed(i, j)], &root);
      }
      l[packed(j, j)] = root.l;
    }
  return plain;
}

/* Write pivot j of a row: its first pivots are at `first`, its factor at `l`. */
static __device__ inline void pivot_write(double *first, double *l, int j, double pivot)
{
  if (j < PIVOTS)
    first[j] = pivot;
  else
    l[TRIANGLE + j - PIVOTS] = pivot;
}

/* Factor a row in place of H, by plain operations; writes its pivots unless NULL.  Returns flags:
 * ROW_BAD if a pivot is bad, ROW_USUAL if all are usual. */
enum { ROW_BAD = 1, ROW_USUAL = 2 };
static __device__ __noinline__ int row_divide(double *h, double *pivots, double ridge)
{
  double l[TRIANGLE];
  int found = ROW_USUAL;
#pragma unroll
  for (int j = 0; j < FRAME; j++)
#pragma unroll
    for (int i = j; i < FRAME; i++)
      l[packed(i, j)] = i == j ? h[j * FRAME + i] + ridge : h[j * FRAME + i];
#pragma unroll
  for (int j = 0; j < FRAME; j++) {
#pragma unroll
    for (int p = 0; p < j; p++)
#pragma unroll
      for (int i = j; i < FRAME; i++)
        l[packed(i, j)] = fma(-l[packed(j, p)], l[packed(i, p)], l[packed(i, j)]);
    double pivot = l[packed(j, j)], root = sqrt(pivot);
    if (pivots) pivot_write(pivots, h, j, pivot);
    if (!is_good(pivot)) found |= ROW_BAD;
    if (!is_usual(pivot)) found &= ~ROW_USUAL;
#pragma unroll
    for (int i = j + 1; i < FRAME; i++) l[packed(i, j)] = l[packed(i, j)] / root;
    l[packed(j, j)] = root;
  }
#pragma unroll
  for (int i = 0; i < TRIANGLE; i++) h[i] = l[i];
  return found;
}

/* A copy in memory of a factor that is held in registers, for functions that are not inlined. */
struct factor_copy {
  double l[FRAME * FRAME];
};
static __device__ inline double *factor_at(struct factor_copy *copy, double *at)
{
#pragma unroll
  for (int i = 0; HELD && i < FRAME * FRAME; i++) copy->l[i] = at[i];
  return HELD ? copy->l : at;
}

/* x[count][FRAME] <- L^-1 x by divisions, for numbers that are zero or near the limits of the
 * range. */
static __device__ __noinline__ void forward_divide(double *x, const double *l, int count)
{
#pragma unroll 1
  for (int c = 0; c < count; c++, x += FRAME)
#pragma unroll
    for (int i = 0; i < FRAME; i++) {
#pragma unroll
      for (int p = 0; p < i; p++) x[i] = fma(-l[packed(i, p)], x[p], x[i]);
      x[i] = x[i] / l[packed(i, i)];
    }
}

/* In each row, columns first .. first + count - 1 <- L^-1 times these columns.  usual: 1 if all
 * factors are usual (root.h). */
static __device__ inline void columns_forward(double *const *row, double *const *at, int rows,
                                              int first, int count, const struct row_factor *f,
                                              int usual)
{
  double y[MAX_ROWS][AT_ONCE * FRAME];
  struct ranks ranks = {};
#pragma unroll
  for (int r = 0; r < rows; r++) reals_read(y[r], row[r] + first * FRAME, count * FRAME);
#pragma unroll
  for (int i = 0; i < FRAME; i++)
#pragma unroll
    for (int c = 0; c < rows * count; c++) {
      double *own = y[c / count] + c % count * FRAME;
      const struct row_factor *of = &f[c / count];
#pragma unroll
      for (int p = 0; p < i; p++) own[i] = fma(-of->l[packed(i, p)], own[p], own[i]);
      ranks_number(&ranks, own[i]);
      own[i] = quotient(own[i], &of->diagonal[i]);
    }
  if (LIKELY(usual & ranks_usual(&ranks))) {
#pragma unroll
    for (int r = 0; r < rows; r++) reals_write(row[r] + first * FRAME, y[r], count * FRAME);
  } else {
#pragma unroll
    for (int r = 0; r < rows; r++) {
      struct factor_copy copy;
      if (r == 0 || row[r] != row[0])
        forward_divide(row[r] + first * FRAME, factor_at(&copy, at[r]), count);
    }
  }
}

/* Whiten rows: B, g <- Y, u; H of row r, at at[r], <- L; pivots[r] <- the pivots of row r, unless
 * `pivots` is NULL.  Two rows may be the same one.  Returns whether a pivot is bad. */
static __device__ inline int rows_whiten(double *const *row, double *const *at,
                                         double *const *pivots, int rows, double ridge)
{
  struct row_factor f[MAX_ROWS];
  double found[MAX_ROWS][FRAME];
  int bad = 0, usual = 1;
  if (LIKELY(rows_decompose(at, rows, ridge, f, found))) {
#pragma unroll
    for (int r = 0; r < rows; r++) {
#pragma unroll
      for (int i = 0; i < TRIANGLE; i++) at[r][i] = f[r].l[i];
#pragma unroll
      for (int j = 0; j < FRAME && pivots; j++) pivot_write(pivots[r], at[r], j, found[r][j]);
    }
  } else {
#pragma unroll
    for (int r = 0; r < rows; r++) {
      if (HELD || r == 0 || row[r] != row[0]) {
        struct factor_copy copy;
        double *l = factor_at(&copy, at[r]);
        int what = row_divide(l, pivots ? pivots[r] : NULL, ridge);
        bad |= what & ROW_BAD;
        usual &= what / ROW_USUAL;
#pragma unroll
        for (int i = 0; HELD && i < TRIANGLE; i++) at[r][i] = l[i];
      }
#pragma unroll
      for (int i = 0; i < TRIANGLE; i++) f[r].l[i] = at[r][i];
#pragma unroll
      for (int j = 0; j < FRAME; j++) f[r].diagonal[j] = divisor_of(f[r].l[packed(j, j)]);
    }
  }
  const int width = (AT_ONCE + rows - 1) / rows; /* columns of each row at a time */
#pragma unroll 1
  for (int j = 0; j < COLUMNS / width; j++)
    columns_forward(row, at, rows, j * width, width, f, usual);
  if (COLUMNS % width)
    columns_forward(row, at, rows, COLUMNS / width * width, COLUMNS % width, f, usual);
  return bad;
}

/* out[FRAME] <- the step of a whitened row by plain operations: L^-T (u + Y step of the border),
 * negated.  Returns whether all of it is finite. */
static __device__ __noinline__ int row_back(const double *row, const double *l,
                                            const double *border, double *out)
{
  double v[FRAME];
  int finite = 1;
#pragma unroll
  for (int m = 0; m < FRAME; m++) v[m] = row[U_AT + m];
#pragma unroll 1
  for (int j = 0; j < BORDER; j++)
#pragma unroll
    for (int m = 0; m < FRAME; m++) v[m] = fma(row[j * FRAME + m], border[j], v[m]);
#pragma unroll
  for (int i = FRAME - 1; i >= 0; i--) {
#pragma unroll
    for (int p = FRAME - 1; p > i; p--) v[i] = fma(-l[packed(p, i)], v[p], v[i]);
    v[i] = v[i] / l[packed(i, i)];
  }
#pragma unroll
  for (int m = 0; m < FRAME; m++) {
    finite &= is_finite(v[m]);
    out[m] = -v[m];
  }
  return finite;
}

/* out[r][FRAME] <- the steps of whitened rows; the factor of row r is at at[r].  Two rows may be
 * the same one.  Returns whether all are finite. */
static __device__ inline int rows_step(double *const *row, double *const *at, int rows,
                                       const double *border, double *const *out)
{
  double v[MAX_ROWS][FRAME], y[FRAME];
  struct row_factor f[MAX_ROWS];
  struct ranks ranks = {};
  int plain, finite = 1;
#pragma unroll
  for (int r = 0; r < rows; r++) {
    reals_read(v[r], row[r] + U_AT, FRAME);
#pragma unroll
    for (int i = 0; i < TRIANGLE; i++) f[r].l[i] = at[r][i];
#pragma unroll
    for (int i = 0; i < FRAME; i++) {
      f[r].diagonal[i] = divisor_of(f[r].l[packed(i, i)]);
      ranks_number(&ranks, f[r].diagonal[i].l);
    }
  }
#pragma unroll 8
  for (int j = 0; j < BORDER; j++)
#pragma unroll
    for (int r = 0; r < rows; r++) {
      reals_read(y, row[r] + j * FRAME, FRAME);
#pragma unroll
      for (int m = 0; m < FRAME; m++) v[r][m] = fma(y[m], border[j], v[r][m]);
    }
#pragma unroll
  for (int i = FRAME - 1; i >= 0; i--)
#pragma unroll
    for (int r = 0; r < rows; r++) {
#pragma unroll
      for (int p = FRAME - 1; p > i; p--) v[r][i] = fma(-f[r].l[packed(p, i)], v[r][p], v[r][i]);
      ranks_number(&ranks, v[r][i]);
      v[r][i] = quotient(v[r][i], &f[r].diagonal[i]);
    }
  plain = ranks_usual(&ranks);
#pragma unroll
  for (int r = 0; r < rows; r++) {
    if (LIKELY(plain)) { /* this implies that it is finite */
#pragma unroll
      for (int m = 0; m < FRAME; m++) v[r][m] = -v[r][m];
      reals_write(out[r], v[r], FRAME);
    } else {
      struct factor_copy copy;
      finite &= row_back(row[r], factor_at(&copy, at[r]), border, out[r]);
    }
  }
  return finite;
}

/* Multiply the pivots of the rows q, q + step, .. < count into a determinant pair. */
static __device__ inline void pair_rows(struct pair *a, const struct rows *rows, int q, int count,
                                        int step)
{
  enum { ROWS = 4 };
  double several[ROWS * FRAME];
#pragma unroll 1
  for (; q + (ROWS - 1) * step < count; q += ROWS * step) {
#pragma unroll
    for (int r = 0; r < ROWS * FRAME; r++)
      several[r] = *pivot_at(rows, q + r / FRAME * step, r % FRAME);
    if (pair_pivots(a, several, ROWS * FRAME)) continue;
#pragma unroll 1
    for (int r = 0; r < ROWS * FRAME; r++)
      pair_pivot(a, *pivot_at(rows, q + r / FRAME * step, r % FRAME));
  }
#pragma unroll 1
  for (; q < count; q += step)
#pragma unroll
    for (int m = 0; m < FRAME; m++) pair_pivot(a, *pivot_at(rows, q, m));
  pair_normalise(a);
}

#endif
