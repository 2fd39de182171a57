/* SPDX-License-Identifier: BSD-3-Clause
 * attribution: the contributions of positions and heads to the scores of a query's atoms (N.28).
 * A pair is a query and an atom.  For each pair it makes a list of the largest contributions, and
 * the sum of all.
 *
 * grid    tasks: a query and at most ATTRIBUTION_PAIRS of its pairs
 * block   ATTRIBUTION_THREADS; a warp has the pairs warp and warp + ATTRIBUTION_WARPS; a lane has a
 *         position
 * shared  attribution_shared_bytes(HEAD_D, HEAD_DV)
 * sums    inner products are chains over columns, in one thread; the sum of a pair is a chain over
 *         positions for each head, in one lane, and a chain over heads
 * pieces  if this rank has only some of the positions, it continues the lists, and the chains over
 *         positions, of earlier pieces; and the host adds the sums of the heads
 *
 * -D HEAD_D, HEAD_DV, CELLS, CAPPED: see walk.h
 *
 * The weights of ATTRIBUTION_SPAN positions (a span) are made at a time, one per thread; then their
 * values are loaded, 32 positions at a time.  Products of two f32 are exact in f64, so fma rounds
 * as a sum does.  Lists are in global memory.  Their order is total, so the order in which
 * contributions come does not matter. */
#include "attribution_types.h"
#include "walk.h"

enum {
  COLUMNS = attribution_columns(HEAD_DV), /* columns of values at a time */
  PITCH = attribution_pitch(HEAD_DV),
  QUERY_COLUMNS = padded_head(HEAD_D),
  WHOLE = HEAD_D % 4 == 0 /* 1: four columns of a key can be read at once */
};

struct shared {
  double values[WARP][PITCH];
  double atoms[ATTRIBUTION_PAIRS][HEAD_DV];
  double own[ATTRIBUTION_PAIRS][WARP + 1];
  double weight[ATTRIBUTION_SPAN];
  int cell[ATTRIBUTION_SPAN];
  float q[QUERY_COLUMNS];
};

static __device__ inline float cell_value(const void *cells, long long at)
{
  return CELLS == CELLS_F32 ? __ldg((const float *)cells + at)
                            : widen(__ldg((const unsigned short *)cells + at));
}

/* Read four numbers of a cell.  Only the first `there` of them exist; the others become 0. */
static __device__ inline void cell_read4(const void *cells, long long at, int there, float out[4])
{
  if (WHOLE && CELLS == CELLS_F32) {
    float4 four = __ldg((const float4 *)((const float *)cells + at));
    out[0] = four.x, out[1] = four.y, out[2] = four.z, out[3] = four.w;
  } else if (WHOLE) {
    uint2 two = __ldg((const uint2 *)((const unsigned short *)cells + at));
    out[0] = widen(two.x & 0xffff), out[1] = widen(two.x >> 16);
    out[2] = widen(two.y & 0xffff), out[3] = widen(two.y >> 16);
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) out[i] = i < there ? cell_value(cells, at + i) : 0;
  }
}

/* The weight of the position whose key is in a cell. */
static __device__ inline double weight_find(const struct attribution_args *a,
                                            const struct shared *s, long long cell, int kv_head,
                                            float m, double l)
{
  long long at = (cell * a->walk.kv_heads + kv_head) * HEAD_D;
  float u = 0, before = 0;
#pragma unroll 4
  for (int c = 0; c < HEAD_D; c += 4) {
    float k[4];
    if (c == WALK_CHAIN) before = u, u = 0;
    cell_read4(a->walk.k, at + c, HEAD_D - c, k);
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (c + i < HEAD_D) u = __fmaf_rn(s->q[c + i], k[i], u);
  }
  if (HEAD_D > WALK_CHAIN) u = __fadd_rn(before, u);
#if CAPPED
  u = tanh_any(__fmul_rn(u, a->walk.inner));
#endif
  return __ddiv_rn((double)exp2_any(__fmaf_rn(u, a->walk.exponent, -m)), l);
}

/* Does a contribution come before an entry in the order of lists? */
static __device__ inline int comes_before(float value, long long source, float code, long long row)
{
  float x = fabsf(value), y = fabsf(code);
  return row < 0 || x > y || (x == y && source < row);
}

/* All lanes of the warp insert a contribution into a list.  The entries after it move by one place;
 * the last entries move first. */
static __device__ inline void list_add(long long *row, float *code, int top, float value,
                                       long long source)
{
  int lane = threadIdx.x % WARP;
#pragma unroll 1
  for (int base = (top - 1) / WARP * WARP; base >= 0; base -= WARP) {
    int at = base + lane, moves = 0;
    float next = value;
    long long next_row = source;
    if (at < top) moves = comes_before(value, source, code[at], row[at]);
    if (moves && at > 0 && comes_before(value, source, code[at - 1], row[at - 1]))
      next = code[at - 1], next_row = row[at - 1];
    __syncwarp();
    if (moves) code[at] = next, row[at] = next_row;
    __syncwarp();
    if (!__shfl_sync(FULL_WARP, moves, 0)) break; /* no earlier entry moves either */
  }
}

/* Each lane may have a contribution (is = 1).  Insert into the pair's list those that are not 0 and
 * come before its last entry. */
static __device__ inline void list_insert(const struct attribution_args *a, long long pair, int is,
                                          float value, long long source)
{
  long long *row = a->row + pair * a->top;
  float *code = a->code + pair * a->top;
  int may = is && value != 0 && comes_before(value, source, code[a->top - 1], row[a->top - 1]);
  unsigned left = __ballot_sync(FULL_WARP, may);
#pragma unroll 1
  for (; left; left &= left - 1) {
    int lane = __ffs(left) - 1;
    list_add(row, code, a->top, __shfl_sync(FULL_WARP, value, lane),
             __shfl_sync(FULL_WARP, source, lane));
  }
}

/* Load columns of the values of positions first .. first + count - 1 of a span, as f64. */
static __device__ inline void values_load(const struct attribution_args *a, struct shared *s,
                                          int kv_head, int first, int count, int column)
{
#pragma unroll 4
  for (int i = threadIdx.x; i < count * COLUMNS; i += ATTRIBUTION_THREADS) {
    int j = i / COLUMNS, c = column + i % COLUMNS;
    long long cell = s->cell[first + j];
    if (c < HEAD_DV)
      s->values[j][c - column] =
          cell_value(a->walk.v, (cell * a->walk.kv_heads + kv_head) * HEAD_DV + c);
  }
}

/* Add some columns to the inner products of this lane's position with the atoms of this warp's
 * pairs. */
static __device__ inline void products_add(const struct attribution_task *t, const struct shared *s,
                                           int column, double product[ATTRIBUTION_OWN])
{
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  int end = min(HEAD_DV - column, (int)COLUMNS);
  if (warp >= t->pairs) return;
#pragma unroll 8
  for (int c = 0; c < end; c++) {
    double v = s->values[lane][c];
#pragma unroll
    for (int i = 0; i < ATTRIBUTION_OWN; i++)
      product[i] = __fma_rn(v, s->atoms[warp + i * ATTRIBUTION_WARPS][column + c], product[i]);
  }
}

/* Make the contributions of a head at `count` positions.  They begin at position `first` of the
 * span, which is `position` in the whole sequence.  Lane i adds the contributions to pair i of this
 * warp to `part`, which is returned. */
static __device__ inline double pairs_add(const struct attribution_args *a,
                                          const struct attribution_task *t, struct shared *s,
                                          int head, int first, int count, long long position,
                                          const double product[ATTRIBUTION_OWN], double part)
{
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
  for (int i = 0; i < ATTRIBUTION_OWN; i++) {
    int e = warp + i * ATTRIBUTION_WARPS;
    if (e >= t->pairs) break;
    double own = lane < count ? __dmul_rn(s->weight[first + lane], product[i]) : 0;
    s->own[e][lane] = own;
    list_insert(a, t->first + e, lane < count, __double2float_rn(own),
                (position + lane) * a->walk.heads + head);
  }
  __syncwarp();
  int e = warp + lane * ATTRIBUTION_WARPS;
  if (lane < ATTRIBUTION_OWN && e < t->pairs)
#pragma unroll 8
    for (int j = 0; j < count; j++) part = __dadd_rn(part, s->own[e][j]);
  __syncwarp();
  return part;
}

/* Continue a head's chain from `part`, and insert the head's contributions into lists. */
static __device__ inline double head_accumulate(const struct attribution_args *a,
                                                const struct attribution_task *t,
                                                const struct softmax_row *row,
                                                const struct softmax_sequence *sequence,
                                                struct shared *s, int head, double part)
{
  int kv_head = head / a->walk.group;
  const int *table = a->walk.table ? a->walk.table + sequence->cells : 0;
  float m = a->m[row->at];
  double l = a->l[row->at];
#pragma unroll 1
  for (int begin = row->from; begin < row->end; begin += ATTRIBUTION_SPAN) {
    int mine = begin + (int)threadIdx.x, here = min(row->end - begin, (int)ATTRIBUTION_SPAN);
    if (mine < row->end) {
      long long cell = cell_find(&a->walk, table, mine);
      if (!table) cell += sequence->cells;
      s->cell[threadIdx.x] = (int)cell;
      s->weight[threadIdx.x] = weight_find(a, s, cell, kv_head, m, l);
    }
#pragma unroll 1
    for (int first = 0; first < here; first += WARP) {
      int count = min(here - first, (int)WARP);
      double product[ATTRIBUTION_OWN] = {0};
#pragma unroll 1
      for (int column = 0; column < HEAD_DV; column += COLUMNS) {
        __syncthreads(); /* weights are stored, and the previous values have been read */
        values_load(a, s, kv_head, first, count, column);
        __syncthreads();
        products_add(t, s, column, product);
      }
      part = pairs_add(a, t, s, head, first, count, sequence->first + begin + first, product, part);
    }
    __syncthreads();
  }
  return part;
}

/* Load the query and the atoms for a head; entries past the last pair are not changed. */
static __device__ inline void head_load(const struct attribution_args *a,
                                        const struct attribution_task *t, long long at,
                                        struct shared *s, int head)
{
  for (int c = threadIdx.x; c < HEAD_D; c += ATTRIBUTION_THREADS)
    s->q[c] = a->walk.q[at * HEAD_D + c];
  for (int i = threadIdx.x; i < t->pairs * HEAD_DV; i += ATTRIBUTION_THREADS) {
    long long atom = a->atom_of[t->first + i / HEAD_DV];
    s->atoms[i / HEAD_DV][i % HEAD_DV] =
        a->atoms[(atom * a->walk.heads + head) * HEAD_DV + i % HEAD_DV];
  }
}

extern "C" __global__ void __launch_bounds__(ATTRIBUTION_THREADS)
    attribution(const __grid_constant__ struct attribution_args a)
{
  extern __shared__ __align__(16) char memory[];
  struct shared *s = (struct shared *)memory;
  const struct attribution_task *t = a.tasks + blockIdx.x;
  const struct softmax_sequence *sequence = a.walk.sequences + t->sequence;
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, e = warp + lane * ATTRIBUTION_WARPS;
  int is_own = lane < ATTRIBUTION_OWN && e < t->pairs; /* this lane has the sum of pair e */
  double sum = 0;
  for (int i = threadIdx.x; i < ATTRIBUTION_PAIRS * HEAD_DV; i += ATTRIBUTION_THREADS)
    s->atoms[i / HEAD_DV][i % HEAD_DV] = 0;
  for (int i = threadIdx.x; i < t->pairs * a.top && !a.part; i += ATTRIBUTION_THREADS)
    a.row[t->first * a.top + i] = -1, a.code[t->first * a.top + i] = 0;
  __syncthreads();
#pragma unroll 1
  for (int head = 0; head < a.walk.heads; head++) {
    struct softmax_row row = row_find(&a.walk, sequence, head / a.walk.group,
                                      t->query * a.walk.group + head % a.walk.group);
    head_load(&a, t, row.at, s, head);
    __syncthreads();
    double *open = a.part && is_own ? a.part + (t->first + e) * a.walk.heads + head : 0;
    double part = head_accumulate(&a, t, &row, sequence, s, head, open ? *open : 0);
    if (open) *open = part;
    sum = __dadd_rn(sum, part);
    __syncthreads();
  }
  if (is_own && !a.part) a.sum[t->first + e] = sum;
}
