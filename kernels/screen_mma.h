/* SPDX-License-Identifier: BSD-3-Clause
 * Scores of a tile by mma.sync (8.0): a warp multiplies 16 rows by all items; all threads copy. */

/* Four 8 x 8 squares of a stage; each lane names a row of 16 bytes. */
static __device__ inline void squares_load(unsigned square[4], const char *at)
{
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(square[0]), "=r"(square[1]), "=r"(square[2]), "=r"(square[3])
               : "r"(shared_address(at))
               : "memory");
}

static __device__ inline void square_multiply(float z[4], const unsigned rows[4],
                                              const unsigned atoms[2])
{
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3])
               : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(atoms[0]),
                 "r"(atoms[1]));
}

/* Where 16 bytes of an item of a stage stand. */
static __device__ inline const char *piece_at(const char *stage, int item, int piece)
{
  return stage + item * SCREEN_ITEM + (piece ^ item % 8) * 16;
}

static __device__ inline void stage_multiply(float z[EIGHTS][4], const char *stage)
{
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
  for (int k = 0; k < SCREEN_DEPTH / 8; k += 2) {
    unsigned rows[4], atoms[4];
    squares_load(rows, piece_at(stage, warp * 16 + lane % 16, k + lane / 16));
#pragma unroll
    for (int j = 0; j < EIGHTS; j += 2) { /* squares: (j, k), (j, k + 1), (j + 1, k), .. */
      int item = 8 * (j + lane / 16) + lane % 8;
      squares_load(atoms, piece_at(stage + ROWS_BYTES, item, k + lane / 8 % 2));
      square_multiply(z[j], rows, atoms);
      square_multiply(z[j + 1], rows, atoms + 2);
    }
  }
}

static __device__ inline void bytes_order(char *to, const char *from, int bytes)
{
  for (int i = 16 * threadIdx.x; i < bytes; i += 16 * SCREEN_WARPS * WARP)
    async_copy16(to + i, from + i);
}

/* All threads order a stage of a pair; an empty group beyond the last. */
static __device__ inline void stage_order(const struct screen_args *a, struct shared *s,
                                          const struct tile_pair *pair, int stage)
{
  if (stage < a->stages) {
    long long row = (long long)pair->row_tile * a->stages + stage;
    long long atom = (long long)pair->atom_tile * a->stages + stage;
    char *to = s->stage[stage % STAGES];
    bytes_order(to, a->rows + row * ROWS_BYTES, ROWS_BYTES);
    bytes_order(to + ROWS_BYTES, a->atoms + atom * (STAGE_BYTES - ROWS_BYTES),
                STAGE_BYTES - ROWS_BYTES);
  }
  async_commit();
}

static __device__ inline int stages_enter(const struct screen_args *a, struct shared *s)
{
  (void)a, (void)s;
  return 1;
}

static __device__ inline void tile_multiply(const struct screen_args *a, struct shared *s,
                                            float z[EIGHTS][4], struct tile_pair *pair, int *serial,
                                            const struct lane_rows *before)
{
  (void)serial;
#pragma unroll
  for (int j = 0; j < EIGHTS; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) z[j][i] = 0;
  for (int i = 0; i < STAGES; i++) stage_order(a, s, pair, i);
  hits_append(a, before);
#pragma unroll 1
  for (int stage = 0; stage < a->stages; stage++) {
    ASYNC_WAIT(STAGES - 1);
    __syncthreads();
    stage_multiply(z, s->stage[stage % STAGES]);
    __syncthreads();
    stage_order(a, s, pair, stage + STAGES);
  }
  pair_next(a, pair);
}
