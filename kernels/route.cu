/* SPDX-License-Identifier: BSD-3-Clause
 * route: exact scores (N.1) of tiles of rows and atoms, candidates kept per row; scores stay on chip.
 *
 * grid    blocks of route_args, at most one a multiprocessor: block b has the (row tile, atom tile)
 *         pairs total b / blocks .. total (b + 1) / blocks - 1, atom tiles innermost
 * block   8 warps; a warp owns 16 rows, a thread 8 rows x ATOMS_THREAD atoms
 * shared  struct shared: STAGES stages of COLUMNS columns of both operands a team; scores of 16
 *         rows a warp; thresholds and lengths of lists
 * sums    columns ascending from +0, two roundings a term; frames: gates, vectors ascending
 *
 * -D BULK          1: bulk copies that complete on a barrier (sm_90 and up), 0: cp.async (sm_80)
 * -D ATOMS_THREAD  16 or 8
 * -D COLUMNS, STAGES, FRAMES (0: d is 1), CAPACITY (lists.h)
 *
 * Two teams of four warps, one warp of each on every scheduler, take the block's pairs from either
 * end until they meet.  A team has its own stages: as long as one of the two can go on, the
 * scheduler has work, and while both can, one fills the other's gaps.  (With stages for all eight,
 * the warp that the scheduler prefers runs ahead, waits, and leaves the other one's gaps open.)
 * A warp of a team waits for the others for stages only; they take turns in ordering them.  Vectors of four are loaded but never stored: a vector store would tie
 * accumulators to aligned registers.  The inner loop has to fit the instruction cache. */
#define FRESH (ATOMS_THREAD / 2)
#include "lists.h"

enum {
  ROWS = 16 * WARPS,
  ATOMS = 16 * ATOMS_THREAD,
  STAGE_FLOATS = COLUMNS * (ROWS + ATOMS),
  SCRATCH = 8 * ATOMS_THREAD * WARP, /* floats a warp: [8 rows][ATOMS_THREAD][lane] */
  THREADS = WARPS * WARP
};

struct shared {
  float stage[STAGES][STAGE_FLOATS]; /* [COLUMNS][ROWS], then [COLUMNS][ATOMS] */
  float scratch[WARPS][SCRATCH];
  unsigned long long full[STAGES], empty[STAGES]; /* barriers of bulk copies */
  int ordered[STAGES];                            /* the stage's serial number */
  int least[ROWS], length[ROWS];                  /* of the rows' lists */
};

/* The walk of a warp through the stages of its block. */
struct walk {
  int first, pairs; /* of the block */
  int stages;       /* of a pair: vectors x pieces of COLUMNS columns */
  int serial;       /* stage in work, from 0 */
};

/* One piece of packed operands. */
struct piece {
  const float *rows, *atoms;
  int columns;
};

static __device__ inline struct piece piece_of(const struct route_args *a, const struct walk *w,
                                               int serial)
{
  int pair = w->first + serial / w->stages, stage = serial % w->stages;
  int row_tile = pair / a->atom_tiles, atom_tile = pair % a->atom_tiles, vector = 0;
  if (FRAMES) {
    int pieces = w->stages / a->d;
    vector = stage / pieces;
    stage %= pieces;
  }
  int column = stage * COLUMNS, left = a->columns - column;
  long long row = (long long)row_tile * a->columns + column;
  long long atom = ((long long)atom_tile * (FRAMES ? a->d : 1) + vector) * a->columns + column;
  struct piece p = {a->rows + row * ROWS, a->atoms + atom * ATOMS,
                    left < COLUMNS ? left : COLUMNS};
  return p;
}

static __device__ inline unsigned shared_address(const void *p)
{
  return (unsigned)__cvta_generic_to_shared(p);
}

#if BULK
static __device__ inline void bulk_copy(float *to, const float *from, int bytes, unsigned full)
{
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :: "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(full)
               : "memory");
}

/* One thread orders a stage. */
static __device__ inline void stage_order(const struct route_args *a, struct shared *s,
                                          const struct walk *w, int serial)
{
  if (serial >= w->pairs * w->stages) return;
  struct piece p = piece_of(a, w, serial);
  int rows = p.columns * ROWS * 4, atoms = p.columns * ATOMS * 4;
  float *to = s->stage[serial % STAGES];
  unsigned full = shared_address(&s->full[serial % STAGES]);
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(full), "r"(rows + atoms) : "memory");
  bulk_copy(to, p.rows, rows, full);
  bulk_copy(to + COLUMNS * ROWS, p.atoms, atoms, full);
}

static __device__ inline unsigned barrier_passed(unsigned long long *barrier, unsigned parity)
{
  unsigned passed;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
               "selp.u32 %0, 1, 0, p; }"
               : "=r"(passed) : "r"(shared_address(barrier)), "r"(parity) : "memory");
  return passed;
}

static __device__ inline void stages_begin(const struct route_args *a, struct shared *s,
                                           const struct walk *w)
{
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      s->ordered[i] = i;
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(&s->full[i])));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                   :: "r"(shared_address(&s->empty[i])), "r"(WARPS));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int i = 0; i < STAGES; i++) stage_order(a, s, w, i);
  }
  __syncthreads();
}

static __device__ inline void stage_wait(struct shared *s, const struct walk *w)
{
  unsigned long long *full = &s->full[w->serial % STAGES];
  while (!barrier_passed(full, w->serial / STAGES % 2)) {}
}

/* This warp is done with a stage.  Who finds that all are orders what is STAGES ahead, the first of
 * those if there are several. */
static __device__ inline void stage_done(const struct route_args *a, struct shared *s,
                                         struct walk *w)
{
  int stage = w->serial % STAGES, next = w->serial + STAGES;
  __syncwarp();
  if (threadIdx.x % WARP == 0) {
    unsigned all;
    asm volatile("{ .reg .pred p; .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%1]; "
                 "mbarrier.test_wait.shared::cta.b64 p, [%1], state; selp.u32 %0, 1, 0, p; }"
                 : "=r"(all) : "r"(shared_address(&s->empty[stage])) : "memory");
    if (all && atomicMax(&s->ordered[stage], next) < next) stage_order(a, s, w, next);
  }
  w->serial++;
}
#else
static __device__ inline void piece_order(float *to, const float *from, int floats)
{
  for (int i = 4 * threadIdx.x; i < floats; i += 4 * THREADS)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(shared_address(to + i)), "l"(from + i) : "memory");
}

/* All threads order a stage together; an empty group where the walk has ended. */
static __device__ inline void stage_order(const struct route_args *a, struct shared *s,
                                          const struct walk *w, int serial)
{
  if (serial < w->pairs * w->stages) {
    float *to = s->stage[serial % STAGES];
    struct piece p = piece_of(a, w, serial);
    piece_order(to, p.rows, p.columns * ROWS);
    piece_order(to + COLUMNS * ROWS, p.atoms, p.columns * ATOMS);
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

static __device__ inline void stages_begin(const struct route_args *a, struct shared *s,
                                           const struct walk *w)
{
  for (int i = 0; i < STAGES; i++) stage_order(a, s, w, i);
}

static __device__ inline void stage_wait(struct shared *s, const struct walk *w)
{
  (void)s, (void)w;
  asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 1) : "memory");
  __syncthreads();
}

static __device__ inline void stage_done(const struct route_args *a, struct shared *s,
                                         struct walk *w)
{
  __syncthreads();
  stage_order(a, s, w, w->serial + STAGES);
  w->serial++;
}
#endif

static __device__ inline void column_load(float *x, float *y, const float *rows, const float *atoms)
{
#pragma unroll
  for (int i = 0; i < 8; i += 4) *(float4 *)(x + i) = *(const float4 *)(rows + i);
#pragma unroll
  for (int i = 0; i < ATOMS_THREAD; i += 4) *(float4 *)(y + i) = *(const float4 *)(atoms + 16 * i);
}

/* z <- z + products of the columns of the stage in work, which has come.  The next column is loaded
 * before this one is used (the last one again). */
static __device__ inline void stage_add(const struct shared *s, const struct walk *w,
                                        float z[8][ATOMS_THREAD], int columns)
{
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  const float *rows = s->stage[w->serial % STAGES] + warp * 16 + lane / 16 * 8;
  const float *atoms = s->stage[w->serial % STAGES] + COLUMNS * ROWS + lane % 16 * 4;
  float x[2][8], y[2][ATOMS_THREAD];
  column_load(x[0], y[0], rows, atoms);
#pragma unroll 1
  for (int c = 0; c < columns; c += ROUTE_COLUMN_STEP) {
#pragma unroll
    for (int u = 0; u < ROUTE_COLUMN_STEP; u++) {
      if (!PIPE) column_load(x[0], y[0], rows, atoms);
      if (u + 1 < ROUTE_COLUMN_STEP || c + ROUTE_COLUMN_STEP < columns || !PIPE) {
        rows += ROWS;
        atoms += ATOMS;
      }
      int now = PIPE ? u % 2 : 0;
      if (PIPE) column_load(x[(u + 1) % 2], y[(u + 1) % 2], rows, atoms);
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < ATOMS_THREAD; j++)
          z[i][j] = __fadd_rn(z[i][j], __fmul_rn(x[now][i], y[now][j]));
    }
  }
}

/* z <- gates so far: the scratch keeps them between vectors. */
static __device__ inline void gates_add(float z[8][ATOMS_THREAD], float *scratch, int vector, int last)
{
  scratch += threadIdx.x % WARP;
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < ATOMS_THREAD; j++) {
      float *gate = scratch + (i * ATOMS_THREAD + j) * WARP;
      z[i][j] = __fmul_rn(z[i][j], z[i][j]);
      if (vector > 0) z[i][j] = __fadd_rn(*gate, z[i][j]);
      if (!last) *gate = z[i][j];
    }
}

/* Scores (frames: gates) of the next tile. */
static __device__ inline void tile_scores(const struct route_args *a, struct shared *s,
                                          struct walk *w, float z[8][ATOMS_THREAD], float *scratch)
{
  int vectors = FRAMES ? a->d : 1;
  for (int vector = 0; vector < vectors; vector++) {
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < ATOMS_THREAD; j++) z[i][j] = 0;
#pragma unroll 1
    for (int column = 0; column < a->columns; column += COLUMNS) {
      int left = a->columns - column;
      stage_wait(s, w);
      stage_add(s, w, z, left < COLUMNS ? left : COLUMNS);
      stage_done(a, s, w);
    }
    if (FRAMES) gates_add(z, scratch, vector, vector == vectors - 1);
  }
}

/* Rows with a score that may be chosen go to the scratch; returns bits i: row i of either half. */
static __device__ inline unsigned scores_keep(const float z[8][ATOMS_THREAD], const int *least,
                                              float *scratch)
{
  unsigned rows = 0;
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    float bound = __int_as_float(least[lane / 16 * 8 + i]);
    int any = 0;
#pragma unroll
    for (int j = 0; j < ATOMS_THREAD; j++) any |= !(fabsf(z[i][j]) < bound);
    if (__any_sync(FULL_WARP, any)) {
#pragma unroll
      for (int j = 0; j < ATOMS_THREAD; j++) scratch[(i * ATOMS_THREAD + j) * WARP + lane] = z[i][j];
      rows |= 1u << i;
    }
  }
  return rows;
}

/* A warp's rows of the present row tile. */
struct target {
  long long row;           /* global number of the warp's first */
  int first, part;         /* first slot of the atom tile; which list of each row */
  int *least, *length;     /* [16] */
  const float *scratch;
};

static __device__ inline struct candidate *target_list(const struct route_args *a,
                                                       const struct target *t, int row)
{
  return a->lists + ((t->row + row) * a->parts + t->part) * CAPACITY;
}

static __device__ inline int is_excluded(const struct route_args *a, long long row, int slot)
{
  int found = 0;
  for (int e = 0; e < a->excluded_count; e++)
    found |= a->excluded[row * a->excluded_count + e] == slot;
  return found;
}

static __device__ inline void score_bad(const struct route_args *a, long long row, int slot)
{
  atomicMin(a->bad, (unsigned long long)row << 32 | (unsigned)a->atom_of[slot]);
}

/* Where the lane has atom j of a tile: 64 (j / 4) + 4 (lane % 16) + j % 4. */
static __device__ inline int tile_offset(int j)
{
  return j / 4 * 64 + threadIdx.x % 16 * 4 + j % 4;
}

/* The whole warp absorbs all scores of one row, by a cut if need be. */
static __device__ inline void row_absorb(const struct route_args *a, const struct target *t, int row)
{
  int lane = threadIdx.x % WARP, key[FRESH], slot[FRESH], least = t->least[row];
  float value[FRESH];
#pragma unroll
  for (int i = 0; i < FRESH; i++) {
    int offset = i * WARP + lane, j = offset / 64 * 4 + offset % 4;
    value[i] = t->scratch[(row % 8 * ATOMS_THREAD + j) * WARP + row / 8 * 16 + offset / 4 % 16];
    slot[i] = t->first + offset;
    key[i] = slot[i] < a->slots ? magnitude(value[i]) : -1;
    if (key[i] >= KEY_INFINITE) {
      score_bad(a, t->row + row, slot[i]);
      key[i] = -1;
    }
  }
#pragma unroll 1
  for (int e = 0; e < a->excluded_count; e++) {
    int excluded = a->excluded[(t->row + row) * a->excluded_count + e];
#pragma unroll
    for (int i = 0; i < FRESH; i++)
      if (slot[i] == excluded) key[i] = -1;
  }
  int length = list_absorb(target_list(a, t, row), t->length[row], &least, a->take, a->ascending,
                           a->ascending ? 0 : a->atom_of, value, key, slot);
  if (lane == 0) {
    t->least[row] = least;
    t->length[row] = length;
  }
}

/* Each half of the warp appends what may be chosen of its row i; a list without room takes the
 * other way. */
static __device__ inline void rows_append(const struct route_args *a, const struct target *t, int i)
{
  int lane = threadIdx.x % WARP, half = lane / 16, row = half * 8 + i, length = t->length[row];
  float least = __int_as_float(t->least[row]);
  const float *score = t->scratch + i * ATOMS_THREAD * WARP + lane;
  unsigned wanted = 0, half_lanes = 0xffffu << 16 * half;
#pragma unroll
  for (int j = 0; j < ATOMS_THREAD; j++)
    wanted |= (unsigned)(!(fabsf(score[j * WARP]) < least)) << j;
  unsigned sums = __reduce_add_sync(FULL_WARP, __popc(wanted) << 16 * half);
  int sum = (int)(sums >> 16 * half & 0xffff);
  unsigned full = __ballot_sync(FULL_WARP, length + sum > CAPACITY);
#pragma unroll 1
  for (int h = 0; h < 2; h++)
    if (full >> 16 * h & 1) row_absorb(a, t, 8 * h + i);
  if (full & half_lanes) wanted = 0;
  struct candidate *list = target_list(a, t, row);
  while (__any_sync(FULL_WARP, wanted)) {
    int j = __ffs(wanted) - 1, slot = t->first + tile_offset(j);
    struct candidate c = {wanted ? score[j * WARP] : 0, slot};
    int kept = wanted && slot < a->slots;
    if (kept && magnitude(c.value) >= KEY_INFINITE) {
      score_bad(a, t->row + row, slot);
      kept = 0;
    }
    kept = kept && !is_excluded(a, t->row + row, slot);
    unsigned mask = __ballot_sync(FULL_WARP, kept) & half_lanes;
    if (kept) list[length + lanes_before(mask)] = c;
    length += __popc(mask);
    wanted &= wanted - 1;
  }
  if (lane % 16 == 0 && !(full & half_lanes)) t->length[row] = length;
}

/* The block that owns a pair: the largest b with total b / blocks <= pair. */
static __device__ inline int block_of(const struct route_args *a, long long pair)
{
  long long total = (long long)a->row_tiles * a->atom_tiles;
  return (int)(((pair + 1) * a->blocks - 1) / total);
}

/* Lists of a row tile begin empty: anything is wanted, nothing for rows beyond the last. */
static __device__ inline void target_begin(const struct route_args *a, int row_tile,
                                           struct target *t)
{
  int lane = threadIdx.x % WARP;
  t->row = (long long)row_tile * ROWS + threadIdx.x / WARP * 16;
  t->part = blockIdx.x - block_of(a, (long long)row_tile * a->atom_tiles);
  if (lane < 16) {
    t->least[lane] = t->row + lane < a->n ? 0 : KEY_INFINITE;
    t->length[lane] = 0;
  }
  __syncwarp();
}

static __device__ inline void walk_begin(const struct route_args *a, struct shared *s,
                                         struct walk *w)
{
  long long total = (long long)a->row_tiles * a->atom_tiles;
  w->first = (int)(total * blockIdx.x / a->blocks);
  w->pairs = (int)(total * (blockIdx.x + 1) / a->blocks) - w->first;
  w->stages = (FRAMES ? a->d : 1) * ((a->columns + COLUMNS - 1) / COLUMNS);
  w->serial = 0;
  stages_begin(a, s, w);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    route(const __grid_constant__ struct route_args a)
{
  extern __shared__ __align__(128) char memory[];
  struct shared *s = (struct shared *)memory;
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, fresh = 1;
  struct target t;
  t.least = s->least + warp * 16;
  t.length = s->length + warp * 16;
  t.scratch = s->scratch[warp];
  struct walk w;
  walk_begin(&a, s, &w);
  int row_tile = w.first / a.atom_tiles, atom_tile = w.first % a.atom_tiles;
  for (int left = w.pairs; left > 0; left--) {
    float z[8][ATOMS_THREAD];
    if (fresh) target_begin(&a, row_tile, &t);
    tile_scores(&a, s, &w, z, s->scratch[warp]);
    t.first = atom_tile * ATOMS;
    unsigned rows = scores_keep(z, t.least, s->scratch[warp]);
    __syncwarp();
#pragma unroll 1
    for (; rows; rows &= rows - 1) {
      rows_append(&a, &t, __ffs(rows) - 1);
      __syncwarp();
    }
    fresh = ++atom_tile == a.atom_tiles || left == 1;
    if (fresh && lane < 16) a.counts[(t.row + lane) * a.parts + t.part] = t.length[lane];
    if (atom_tile == a.atom_tiles) {
      atom_tile = 0;
      row_tile++;
    }
  }
}
