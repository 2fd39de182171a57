/* SPDX-License-Identifier: BSD-3-Clause
 * Stages by bulk copies that complete on barriers (9.0).  Four additional warps are producers;
 * one thread of them starts all copies.
 *
 * The producers give most of their registers to the warps that compute: 384 threads begin with 168
 * registers each; then the 128 threads of the producers keep 40, and the other 256 get 232. */
/* One thread begins to copy a stage. */
static __device__ inline void stage_order(const struct route_args *a, struct shared *s,
                                          const struct walk *w, int serial)
{
  if (serial >= w->pairs * w->stages) return;
  struct piece p = piece_of(a, w, serial);
  int rows = p.columns * ROUTE_ROWS * 4, atoms = p.columns * ATOMS * 4;
  float *to = s->stage[serial % STAGES];
  unsigned long long *full = &s->full[serial % STAGES];
  barrier_expect(full, rows + atoms);
  bulk_copy(to, p.rows, rows, full);
  bulk_copy(to + COLUMNS * ROUTE_ROWS, p.atoms, atoms, full);
}

/* The producer refills each stage as soon as all warps have read it. */
static __device__ inline void stages_produce(const struct route_args *a, struct shared *s,
                                             const struct walk *w)
{
  for (int serial = 0; serial < w->pairs * w->stages; serial++) {
    unsigned parity = (serial / STAGES + 1) % 2;
    if (serial >= STAGES)
      while (!barrier_passed(&s->empty[serial % STAGES], parity)) {}
    stage_order(a, s, w, serial);
  }
}

static __device__ inline int stages_enter(const struct route_args *a, struct shared *s,
                                          const struct walk *w)
{
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      barrier_begin(&s->full[i], 1);
      barrier_begin(&s->empty[i], ROUTE_WARPS * WARP);
    }
    barriers_publish();
  }
  __syncthreads();
  if (threadIdx.x >= ROUTE_WARPS * WARP) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == ROUTE_WARPS * WARP) stages_produce(a, s, w);
    return 0;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  return 1;
}

static __device__ inline void stage_wait(struct shared *s, const struct walk *w)
{
  unsigned long long *full = &s->full[w->serial % STAGES];
  while (!barrier_passed(full, w->serial / STAGES % 2)) {}
}

static __device__ inline void stage_done(const struct route_args *a, struct shared *s,
                                         struct walk *w)
{
  (void)a;
  /* One lane of a warp would be enough, but a race checker can follow only if every lane
   * arrives. */
  barrier_arrive(&s->empty[w->serial % STAGES]);
  w->serial++;
}
