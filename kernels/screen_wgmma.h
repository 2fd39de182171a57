/* SPDX-License-Identifier: BSD-3-Clause
 * Scores of a tile by wgmma (9.0): a warpgroup multiplies 64 rows by 256 items, both from shared
 * memory; one more warpgroup copies. */
static_assert(VECTORS == 256 && SCREEN_WARPS == 8, "two warpgroups of m64n256k16");

/* A stage as wgmma reads it: rows of 128 bytes, permuted, eight of them 1024 bytes apart. */
static __device__ inline unsigned long long operand_of(const char *stage)
{
  return (shared_address(stage) & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define FOUR(j) "+f"(z[j][0]), "+f"(z[j][1]), "+f"(z[j][2]), "+f"(z[j][3])
#define SIXTEEN(j) FOUR(j), FOUR(j + 1), FOUR(j + 2), FOUR(j + 3)
#define ALL                                                                                        \
  SIXTEEN(0), SIXTEEN(4), SIXTEEN(8), SIXTEEN(12), SIXTEEN(16), SIXTEEN(20), SIXTEEN(24),          \
      SIXTEEN(28)

/* z <- products of 16 columns, plus z if `add`. */
static __device__ inline void columns_multiply(float z[EIGHTS][4], unsigned long long rows,
                                               unsigned long long atoms, int add)
{
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
      "%127"
      "}, %128, %129, p, 1, 1, 0, 0; }"
      : ALL
      : "l"(rows), "l"(atoms), "r"(add));
}

/* Multiplications before are done with z, and those after have not begun. */
static __device__ inline void products_wait(float z[EIGHTS][4])
{
  asm volatile("wgmma.wait_group.sync.aligned 0;" : ALL : : "memory");
}

static __device__ inline void stage_multiply(float z[EIGHTS][4], const char *stage, int add)
{
  unsigned long long rows = operand_of(stage + threadIdx.x / 128 * 64 * SCREEN_ITEM);
  unsigned long long atoms = operand_of(stage + ROWS_BYTES);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int k = 0; k < SCREEN_DEPTH / 16; k++)
    columns_multiply(z, rows + 2 * k, atoms + 2 * k, add || k > 0);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* The producer: a stage is ordered again as soon as both warpgroups are done with it. */
static __device__ inline void stages_produce(const struct screen_args *a, struct shared *s)
{
  int serial = 0;
  for (struct tile_pair pair = pair_first(a); pair_is(a, &pair); pair_next(a, &pair)) {
    const char *rows = a->rows + (long long)pair.row_tile * a->stages * ROWS_BYTES;
    const char *atoms =
        a->atoms + (long long)pair.atom_tile * a->stages * (STAGE_BYTES - ROWS_BYTES);
    for (int stage = 0; stage < a->stages; stage++, serial++) {
      int at = serial % STAGES;
      if (serial >= STAGES)
        while (!barrier_passed(&s->empty[at], (serial / STAGES + 1) % 2)) {}
      barrier_expect(&s->full[at], STAGE_BYTES);
      bulk_copy(s->stage[at], rows + (long long)stage * ROWS_BYTES, ROWS_BYTES, &s->full[at]);
      bulk_copy(s->stage[at] + ROWS_BYTES, atoms + (long long)stage * (STAGE_BYTES - ROWS_BYTES),
                STAGE_BYTES - ROWS_BYTES, &s->full[at]);
    }
  }
}

/* 0: this warp only copied, and is done. */
static __device__ inline int stages_enter(const struct screen_args *a, struct shared *s)
{
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      barrier_begin(&s->full[i], 1);
      barrier_begin(&s->empty[i], SCREEN_WARPS * WARP);
    }
    barriers_publish();
  }
  __syncthreads();
  if (threadIdx.x >= SCREEN_WARPS * WARP) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == SCREEN_WARPS * WARP) stages_produce(a, s);
    return 0;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  return 1;
}

/* z <- scores of the pair, which becomes the next; `serial` counts stages.  What the tile before
 * found is appended while the first stages are multiplied. */
static __device__ inline void tile_multiply(const struct screen_args *a, struct shared *s,
                                            float z[EIGHTS][4], struct tile_pair *pair, int *serial,
                                            const struct lane_rows *before)
{
  int early = a->stages > 1;
#pragma unroll 1
  for (int stage = 0; stage < a->stages; stage++, ++*serial) {
    int at = *serial % STAGES;
    while (!barrier_passed(&s->full[at], *serial / STAGES % 2)) {}
    stage_multiply(z, s->stage[at], stage > 0);
    if (stage == early) {
      hits_append(a, before);
      pair_next(a, pair);
    }
    if (stage == 0) continue;
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    barrier_arrive(&s->empty[(*serial - 1) % STAGES]);
  }
  products_wait(z);
  barrier_arrive(&s->empty[(*serial - 1) % STAGES]);
}
