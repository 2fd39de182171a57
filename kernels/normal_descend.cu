/* SPDX-License-Identifier: BSD-3-Clause
 * normal_descend: passes of block coordinate descent (N.20) over some blocks of atoms; also writes
 * their diagonal of the Gram matrix.
 *
 * grid    ceil(columns / DESCEND_COLUMNS), at least 1.  Columns are independent: a block does all
 *         of these atoms, in all passes, for its own columns, and does not wait for other blocks
 * block   (WARP, 2 DESCEND_WARPS).  The first half of the warps computes: outside of the block of
 *         atoms a warp has 16 atoms x DESCEND_COLUMNS, inside it two columns.  The second half
 *         copies the next stages
 * shared  descend_shared_bytes(): stages, a block of atoms
 * sums    a chain of fma for each atom and column: first over the atoms outside of its block of
 *         DESCEND_ATOMS, ascending, then over the atoms inside, ascending, with the values that
 *         they have at that time: earlier atoms have moved already in this pass
 *
 * -D MMA (tensor.h), STAGES: descend_stages()
 * In the sums over atoms outside, the term of a missing atom is (-0) (+0): it changes no sum. */
#include "async_copy.h"
#include "forms.h"
#include "tensor.h"

enum {
  COPYING = WARP * DESCEND_WARPS, /* threads that copy; the same number of threads compute */
  STEPS = DESCEND_DEPTH / STEP,
  TILES = DESCEND_ATOMS / DESCEND_DEPTH, /* tiles of a block of atoms */
  GROUP = WARP / 2                       /* lanes for a column inside */
};

struct stage {
  double gram[DESCEND_ATOMS][DESCEND_GRAM_PITCH];
  double atoms[DESCEND_DEPTH][DESCEND_ATOM_PITCH];
};

struct shared {
  struct stage stage[STAGES];
  double square[DESCEND_ATOMS][DESCEND_SQUARE_PITCH]; /* of the Gram matrix */
  double atoms[DESCEND_ATOMS][DESCEND_ATOM_PITCH];    /* of the block, with their current values */
  double sums[DESCEND_ATOMS][DESCEND_ATOM_PITCH];     /* over the atoms outside */
};

/* A block of atoms, and the columns of this block of threads. */
struct block {
  int first, n;        /* its atoms */
  int column, columns; /* fewer than DESCEND_COLUMNS at the end of the matrix */
  int tiles;           /* tiles of DESCEND_DEPTH atoms outside */
};

static __device__ inline int is_copying(void)
{
  return threadIdx.y >= DESCEND_WARPS;
}

/* The number of this thread among the threads that copy, or that compute. */
static __device__ inline int thread_of(void)
{
  return threadIdx.y % DESCEND_WARPS * WARP + threadIdx.x;
}

/* Begin to copy two reals.  Only the first `there` of them exist; the others become 0.  `from` must
 * be a valid address in all cases.  wide: `from` is aligned to 16 bytes. */
static __device__ inline void pair_order(double *to, const double *from, int there, int wide)
{
  int first = there > 0 ? 8 : 0, second = there > 1 ? 8 : 0;
  if (wide) {
    async_copy16_part(to, from, first + second);
    return;
  }
  async_copy8_part(to, from, first);
  async_copy8_part(to + 1, second ? from + 1 : from, second);
}

/* Begin to copy a tile of `rows` by `columns`, some of which exist. */
static __device__ inline void tile_order(double *to, int pitch, int rows, int columns,
                                         const double *from, int stride, int rows_there,
                                         int columns_there)
{
  int pairs = columns / 2;
#pragma unroll 1
  for (int i = thread_of(); i < rows * pairs; i += COPYING) {
    int r = i / pairs, c = i % pairs * 2, there = r < rows_there ? columns_there - c : 0;
    pair_order(to + r * pitch + c, there > 0 ? from + (long long)r * stride + c : from, there,
               stride % 2 == 0);
  }
}

/* Begin to copy tile t of the tiles outside: its atoms, and its columns of the Gram matrix. */
static __device__ inline void stage_order(const struct normal_descend_args *a,
                                          const struct block *b, struct stage *to, int t)
{
  if (t < b->tiles) {
    int inside = b->first / DESCEND_DEPTH;
    int atom = (t < inside ? t : t + TILES) * DESCEND_DEPTH;
    tile_order(to->gram[0], DESCEND_GRAM_PITCH, DESCEND_ATOMS, DESCEND_DEPTH,
               a->gram + (long long)(b->first - a->first) * a->k + atom, a->k, b->n, a->k - atom);
    tile_order(to->atoms[0], DESCEND_ATOM_PITCH, DESCEND_DEPTH, DESCEND_COLUMNS,
               a->atoms + (long long)atom * a->columns + b->column, a->columns, a->k - atom,
               b->columns);
  }
  async_commit();
}

/* Begin to copy the data of the block itself. */
static __device__ inline void block_order(const struct normal_descend_args *a,
                                          const struct block *b, struct shared *s)
{
  tile_order(s->square[0], DESCEND_SQUARE_PITCH, DESCEND_ATOMS, DESCEND_ATOMS,
             a->gram + (long long)(b->first - a->first) * a->k + b->first, a->k, b->n, b->n);
  tile_order(s->atoms[0], DESCEND_ATOM_PITCH, DESCEND_ATOMS, DESCEND_COLUMNS,
             a->atoms + (long long)b->first * a->columns + b->column, a->columns, b->n, b->columns);
  async_commit();
}

/* This warp's operands of a tile. */
struct operands {
  double left[STEPS][2], right[STEPS];
};

static __device__ inline void operands_load(struct operands *o, const struct stage *from)
{
  int lane = threadIdx.x, row = threadIdx.y * 2 * BLOCK + lane / 4;
#pragma unroll
  for (int i = 0; i < STEPS; i++) {
    int at = i * STEP + lane % 4;
    o->left[i][0] = -from->gram[row][at];
    o->left[i][1] = -from->gram[row + BLOCK][at];
    o->right[i] = from->atoms[at][lane / 4];
  }
}

/* Four calls of pair_add() as one instruction. */
static __device__ inline void four_add(double upper[2], double lower[2], const double left[4][2],
                                       const double right[4])
{
#if MMA
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, "
      "%9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(upper[0]), "+d"(upper[1]), "+d"(lower[0]), "+d"(lower[1])
      : "d"(left[0][0]), "d"(left[0][1]), "d"(left[1][0]), "d"(left[1][1]), "d"(left[2][0]),
        "d"(left[2][1]), "d"(left[3][0]), "d"(left[3][1]), "d"(right[0]), "d"(right[1]),
        "d"(right[2]), "d"(right[3]));
#else
  for (int i = 0; i < 4; i++) pair_add(upper, lower, left[i], right[i]);
#endif
}

/* Load the sums of a lane: two rows BLOCK apart, two columns of each. */
static __device__ inline void sums_begin(const struct normal_descend_args *a, const struct block *b,
                                         double sums[2][2])
{
  int lane = threadIdx.x, row = threadIdx.y * 2 * BLOCK + lane / 4, column = lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      int r = row + i * BLOCK, c = column + j, there = r < b->n && c < b->columns;
      long long at = (long long)(b->first + r) * a->columns + b->column + c;
      sums[i][j] = there ? a->target[at] : 0;
    }
}

static __device__ inline void sums_end(struct shared *s, const double sums[2][2])
{
  int lane = threadIdx.x, row = threadIdx.y * 2 * BLOCK + lane / 4, column = lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 2; j++) s->sums[row + i * BLOCK][column + j] = sums[i][j];
}

/* Copy all tiles to the stages in turn; a stage is refilled as soon as no warp needs it. */
static __device__ inline void outside_copy(const struct normal_descend_args *a,
                                           const struct block *b, struct shared *s)
{
  int slot = 0;
  block_order(a, b, s);
#pragma unroll 1
  for (int t = 0; t < STAGES; t++) stage_order(a, b, &s->stage[t], t);
  ASYNC_WAIT(STAGES - 1);
  __syncthreads();
#pragma unroll 1
  for (int t = 0; t < b->tiles; t++) {
    ASYNC_WAIT(STAGES - 2);
    __syncthreads();
    stage_order(a, b, &s->stage[slot], t + STAGES);
    slot = slot + 1 < STAGES ? slot + 1 : 0;
  }
  ASYNC_WAIT(0);
  __syncthreads();
}

/* Sums over the atoms outside.  The operands of a tile are loaded while the operands of the tile
 * before it are multiplied.  Then the stage of that earlier tile is free. */
static __device__ inline void outside_add(const struct normal_descend_args *a,
                                          const struct block *b, struct shared *s)
{
  struct operands now, next;
  double sums[2][2];
  int slot = 0;
  sums_begin(a, b, sums);
  __syncthreads();
  if (b->tiles) operands_load(&now, &s->stage[0]);
#pragma unroll 2
  for (int t = 0; t < b->tiles; t++) {
    slot = slot + 1 < STAGES ? slot + 1 : 0;
    __syncthreads();
    if (t + 1 < b->tiles) operands_load(&next, &s->stage[slot]);
#pragma unroll
    for (int i = 0; i < STEPS; i += 4) four_add(sums[0], sums[1], now.left + i, now.right + i);
    now = next;
  }
  sums_end(s, sums);
  __syncthreads();
}

/* The new value of an atom.  `sum` includes all atoms outside and the earlier atoms of the block;
 * the later atoms of the block are added here.  An atom without codes does not change. */
static __device__ inline double atom_move(struct shared *s, int n, int atom, int column, double sum)
{
  const double *gram = s->square[atom];
  if (!(gram[atom] > 0)) return s->atoms[atom][column];
#pragma unroll 16
  for (int b = atom + 1; b < n; b++) sum = fma(-gram[b], s->atoms[b][column], sum);
  s->atoms[atom][column] = sum / gram[atom];
  return s->atoms[atom][column];
}

/* Move the atoms of the block one after another.  Lane l of a column has atoms l, l + GROUP and so
 * on.  As soon as an atom has moved, its terms are added to the sums of all atoms after it. */
static __device__ inline void inside_move(struct shared *s, int n)
{
  int lane = threadIdx.x % GROUP, half = threadIdx.x / GROUP, column = threadIdx.y * 2 + half;
  double sums[DESCEND_ATOMS / GROUP];
#pragma unroll
  for (int q = 0; q < DESCEND_ATOMS / GROUP; q++) sums[q] = s->sums[lane + q * GROUP][column];
#pragma unroll
  for (int q = 0; q < DESCEND_ATOMS / GROUP; q++)
#pragma unroll 1
    for (int i = 0; i < GROUP && q * GROUP + i < n; i++) {
      int atom = q * GROUP + i;
      double moved = lane == i ? atom_move(s, n, atom, column, sums[q]) : 0;
      moved = __shfl_sync(FULL_WARP, moved, half * GROUP + i);
#pragma unroll
      for (int r = q; r < DESCEND_ATOMS / GROUP; r++) {
        int later = lane + r * GROUP;
        if (later > atom) sums[r] = fma(-s->square[later][atom], moved, sums[r]);
      }
    }
}

static __device__ inline void block_store(const struct normal_descend_args *a,
                                          const struct block *b, const struct shared *s)
{
  for (int i = thread_of(); i < DESCEND_ATOMS * DESCEND_COLUMNS; i += COPYING) {
    int r = i / DESCEND_COLUMNS, c = i % DESCEND_COLUMNS;
    if (r < b->n && c < b->columns)
      a->atoms[(long long)(b->first + r) * a->columns + b->column + c] = s->atoms[r][c];
  }
}

static __device__ inline void block_move(const struct normal_descend_args *a, int first,
                                         struct shared *s)
{
  struct block b = {first, a->k - first, (int)blockIdx.x * DESCEND_COLUMNS};
  int tiles = (a->k + DESCEND_DEPTH - 1) / DESCEND_DEPTH;
  if (b.n > DESCEND_ATOMS) b.n = DESCEND_ATOMS;
  b.columns = a->columns - b.column;
  b.tiles = tiles - (b.n + DESCEND_DEPTH - 1) / DESCEND_DEPTH;
  if (is_copying())
    outside_copy(a, &b, s);
  else
    outside_add(a, &b, s);
  if (!is_copying()) inside_move(s, b.n);
  __syncthreads();
  if (!is_copying()) block_store(a, &b, s);
  __threadfence(); /* the next copies bypass the L1 cache, so global memory must be up to date */
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(2 * WARP * DESCEND_WARPS, 1)
    normal_descend(const __grid_constant__ struct normal_descend_args a)
{
  extern __shared__ __align__(16) char shared[];
  for (int i = a.first + thread_of(); blockIdx.x == 0 && i < a.end; i += COPYING)
    a.diagonal[i] = a.gram[(long long)(i - a.first) * a.k + i];
#pragma unroll 1
  for (int pass = 0; pass < a.passes; pass++)
#pragma unroll 1
    for (int first = a.first; first < a.end; first += DESCEND_ATOMS)
      block_move(&a, first, (struct shared *)shared);
}
