/* SPDX-License-Identifier: BSD-3-Clause
 * Stages by asynchronous copies of 16 bytes (8.0).  All threads make copies. */
static __device__ inline void piece_order(float *to, const float *from, int floats)
{
  for (int i = 4 * threadIdx.x; i < floats; i += 4 * ROUTE_WARPS * WARP)
    async_copy16(to + i, from + i);
}

/* All threads begin to copy a stage; past the last stage this is an empty group. */
static __device__ inline void stage_order(const struct route_args *a, struct shared *s,
                                          const struct walk *w, int serial)
{
  if (serial < w->pairs * w->stages) {
    float *to = s->stage[serial % STAGES];
    struct piece p = piece_of(a, w, serial);
    piece_order(to, p.rows, p.columns * ROUTE_ROWS);
    piece_order(to + COLUMNS * ROUTE_ROWS, p.atoms, p.columns * ATOMS);
  }
  async_commit();
}

static __device__ inline int stages_enter(const struct route_args *a, struct shared *s,
                                          const struct walk *w)
{
  for (int i = 0; i < STAGES; i++) stage_order(a, s, w, i);
  return 1;
}

static __device__ inline void stage_wait(struct shared *s, const struct walk *w)
{
  (void)s, (void)w;
  ASYNC_WAIT(STAGES - 1);
  __syncthreads();
}

static __device__ inline void stage_done(const struct route_args *a, struct shared *s,
                                         struct walk *w)
{
  __syncthreads();
  stage_order(a, s, w, w->serial + STAGES);
  w->serial++;
}
