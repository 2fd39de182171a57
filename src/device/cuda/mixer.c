/* SPDX-License-Identifier: BSD-3-Clause
 * A run computes in three launches: the convolution of all channels, if there is one; norms and
 * decays; the steps of the states.  If another sequence writes a slot that a sequence reads, the
 * states and taps of such slots are copied first, in launches of their own.  With job->unfused all
 * states are copied to scratch first, and back at the end.  The tables of sequences stay on the GPU
 * while sequences and slots of calls stay the same. */
#include "device/cuda/mixer.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"

_Static_assert((int)MIXER_LANES == (int)DELTA_LANES && (int)MAX_MIXER_COLUMNS == (int)DELTA_COLUMNS,
               "lanes are a part of the result");
_Static_assert((int)CONV_TOKENS >= (int)DELTA_TAPS,
               "the first part of a sequence alone reads taps");

/* Copies of states and of taps: a range of the list of moves. */
struct moves {
  gidx first, count;
};

/* The call for which the tables were made; arrays are owned. */
struct call {
  idx sequences; /* -1: none */
  int is_unfused;
  gidx *start;   /* [sequences + 1] */
  idx *in, *out; /* [sequences] */
};

struct mixer_state {
  struct arena arena;
  struct call call;
  gidx parts, moves_at; /* number of parts (struct mixer_part); offset of the moves in the table */
  gidx parts_at;
  struct moves in, out; /* to scratch, and back from it */
  int longest;          /* tokens of the longest sequence */
  gidx long_ones;       /* number of sequences of at least longest / 2 tokens */
  struct cuda_work table, y, q, k, decay, s, taps;
};

int cuda_mixer_open(struct mixer *w)
{
  struct mixer_state *s;
  gidx n = w->most.sequences;
  TRY(struct_alloc(&s, sizeof *s));
  w->state = s;
  s->call.sequences = -1;
  TRY(arena_alloc(&s->arena, &s->call.start, n + 1, sizeof *s->call.start));
  TRY(arena_alloc(&s->arena, &s->call.in, n, sizeof *s->call.in));
  return arena_alloc(&s->arena, &s->call.out, n, sizeof *s->call.out);
}

void cuda_mixer_close(struct mixer *w)
{
  struct mixer_state *s = w->state;
  struct cuda_work *const works[] = {&s->table, &s->y, &s->q, &s->k, &s->decay, &s->s, &s->taps};
  for (int i = 0; i < LENGTH(works); i++) cuda_release(works[i]);
  arena_free(&s->arena);
  free(s);
}

static gidx state_floats(const struct mixer *w, const struct mixer_job *job)
{
  return (gidx)job->count * w->net.dv * w->net.d;
}

static gidx taps_floats(const struct mixer *w)
{
  return w->net.width ? gated_delta_channels(&w->net) * (w->net.width - 1) : 0;
}

/* The tables of a call on the host, in one array of bytes. */
struct tables {
  struct arena arena;
  char *all;
  gidx bytes;
  struct mixer_sequence *sequences;
  struct mixer_part *parts;
  struct mixer_move *moves;
};

static int longest_first(const void *a, const void *b)
{
  const struct mixer_sequence *x = a, *y = b;
  return x->tokens != y->tokens ? (x->tokens > y->tokens ? -1 : 1)
                                : (x->token > y->token) - (x->token < y->token);
}

static int tables_alloc(struct mixer_state *s, const struct mixer_job *job, struct tables *t)
{
  gidx n = job->slots.sequences, parts = job->start[n] / CONV_TOKENS + n;
  s->parts_at = n * (gidx)sizeof *t->sequences;
  s->moves_at = s->parts_at + parts * (gidx)sizeof *t->parts;
  t->bytes = s->moves_at + 2 * n * (gidx)sizeof *t->moves;
  TRY(arena_alloc(&t->arena, &t->all, t->bytes, 1));
  t->sequences = (void *)t->all;
  t->parts = (void *)(t->all + s->parts_at);
  t->moves = (void *)(t->all + s->moves_at);
  return OK;
}

/* Make the table of sequences, and the moves of their states; scratch is in the order of
 * sequences. */
static void sequences_make(const struct mixer *w, const struct mixer_job *job, struct tables *t)
{
  struct mixer_state *s = w->state;
  idx n = job->slots.sequences, scratch = 0;
  s->in = (struct moves){0};
  s->out = (struct moves){n, 0};
  for (idx i = 0; i < n; i++, scratch++) {
    idx in = job->slots.in[i], out = job->slots.out[i];
    int gathered = in >= 0 && (job->unfused || w->way[i] == DELTA_GATHERED);
    t->sequences[i] = (struct mixer_sequence){.token = job->start[i],
                                              .tokens = (int)(job->start[i + 1] - job->start[i]),
                                              .in = gathered ? scratch : in,
                                              .out = job->unfused && out >= 0 ? scratch : out,
                                              .is_gathered = gathered};
    if (gathered) t->moves[s->in.count++] = (struct mixer_move){in, scratch};
    if (job->unfused && out >= 0) t->moves[n + s->out.count++] = (struct mixer_move){scratch, out};
  }
  if (n > 1) qsort(t->sequences, (size_t)n, sizeof *t->sequences, longest_first);
}

/* Make the table of parts.  A sequence without tokens has one too, because its taps move. */
static void parts_make(struct mixer_state *s, idx sequences, struct tables *t)
{
  s->parts = s->long_ones = 0;
  s->longest = sequences ? t->sequences[0].tokens : 0;
  for (idx i = 0; i < sequences; i++) {
    s->long_ones += 2 * (gidx)t->sequences[i].tokens >= s->longest;
    for (int first = 0; first == 0 || first < t->sequences[i].tokens; first += CONV_TOKENS)
      t->parts[s->parts++] = (struct mixer_part){i, first};
  }
}

static int call_is(const struct call *c, const struct mixer_job *job)
{
  const struct delta_slots *d = &job->slots;
  size_t n = (size_t)d->sequences;
  return c->sequences == d->sequences && c->is_unfused == job->unfused &&
         memcmp(c->start, job->start, (n + 1) * sizeof *c->start) == 0 &&
         memcmp(c->in, d->in, n * sizeof *c->in) == 0 &&
         memcmp(c->out, d->out, n * sizeof *c->out) == 0;
}

static void call_keep(struct call *c, const struct mixer_job *job)
{
  const struct delta_slots *d = &job->slots;
  size_t n = (size_t)d->sequences;
  c->sequences = d->sequences;
  c->is_unfused = job->unfused;
  memcpy(c->start, job->start, (n + 1) * sizeof *c->start);
  memcpy(c->in, d->in, n * sizeof *c->in);
  memcpy(c->out, d->out, n * sizeof *c->out);
}

static int tables_put(struct mixer *w, const struct mixer_job *job, struct tables *t)
{
  struct mixer_state *s = w->state;
  struct cuda_state *c = w->device->state;
  TRY(tables_alloc(s, job, t));
  sequences_make(w, job, t);
  parts_make(s, job->slots.sequences, t);
  CHECK(s->parts <= INT32_MAX, ERR_MEMORY, "%lld parts of sequences in a call",
        (long long)s->parts);
  TRY(cuda_reserve(c, &s->table, imax(t->bytes, 1)));
  if (t->bytes)
    TRY_CU(
        cudaMemcpyAsync(s->table.at, t->all, (size_t)t->bytes, cudaMemcpyHostToDevice, c->stream));
  return OK;
}

static int tables_make(struct mixer *w, const struct mixer_job *job)
{
  struct mixer_state *s = w->state;
  struct tables t = {.all = NULL};
  if (call_is(&s->call, job)) return OK;
  for (idx i = 0; i < job->slots.sequences; i++)
    CHECK(job->start[i + 1] - job->start[i] <= INT32_MAX - CONV_TOKENS, ERR_INPUT,
          "sequence %d has %lld tokens", i, (long long)(job->start[i + 1] - job->start[i]));
  s->call.sequences = -1;
  int status = tables_put(w, job, &t);
  arena_free(&t.arena); /* allowed: pageable memory has been read when its copy returns */
  if (!status) call_keep(&s->call, job);
  return status;
}

/* Reserve space for the prepared rows, and for states that are copied. */
static int works_reserve(struct mixer *w, const struct mixer_job *job)
{
  struct mixer_state *s = w->state;
  struct cuda_state *c = w->device->state;
  const struct gated_delta *m = &w->net;
  gidx n = job->slots.sequences, wide = mixer_pitch(m->d), tokens = imax(job->start[n], 1) * 4;
  gidx scratch = s->in.count + s->out.count ? n * 4 : 0;
  if (m->width) TRY(cuda_reserve(c, &s->y, tokens * gated_delta_channels(m)));
  TRY(cuda_reserve(c, &s->q, tokens * m->heads_k * wide));
  TRY(cuda_reserve(c, &s->k, tokens * m->heads_k * wide));
  TRY(cuda_reserve(c, &s->decay, tokens * job->count * (m->by_column ? wide : 1)));
  TRY(cuda_reserve(c, &s->s, imax(scratch * state_floats(w, job), 1)));
  return cuda_reserve(c, &s->taps, imax(scratch * taps_floats(w), 1));
}

/* Launch a one-dimensional grid. */
static int launch(const struct mixer *w, struct cuda_launch *l, gidx blocks, int threads)
{
  const struct cuda_state *c = w->device->state;
  CHECK(blocks <= INT32_MAX, ERR_MEMORY, "%lld blocks in a launch", (long long)blocks);
  l->shape.top_k = 1;
  l->grid = (dim3){(unsigned)blocks, 1, 1};
  l->block = (dim3){(unsigned)threads, 1, 1};
  l->is_early = l->is_early && c->architecture >= 90;
  return blocks ? cuda_launch(w->device, l) : OK;
}

static void *side(const struct buffer *b)
{
  return b ? b->device : NULL;
}

static int copies_run(const struct mixer *w, const struct moves *moves, void *from, void *to,
                      gidx floats)
{
  const struct mixer_state *s = w->state;
  const char *table = s->table.at;
  struct mixer_gather_args a = {.from = from,
                                .to = to,
                                .moves =
                                    (const struct mixer_move *)(table + s->moves_at) + moves->first,
                                .floats = floats,
                                .blocks = (int)ceil_div(floats, COPY_FLOATS)};
  struct cuda_launch l = {.name = KERNEL_MIXER_GATHER, .is_early = 1, .arguments = &a};
  return launch(w, &l, moves->count * a.blocks, COPY_THREADS);
}

static int conv_run(const struct mixer *w, const struct mixer_job *job)
{
  const struct mixer_state *s = w->state;
  const struct gated_delta *m = &w->net;
  const char *table = s->table.at;
  struct mixer_conv_args a = {.x = side(job->x),
                              .weight = side(job->conv),
                              .bias = side(job->conv_bias),
                              .y = s->y.at,
                              .pool = side(job->taps),
                              .scratch = s->taps.at,
                              .out = job->unfused ? s->taps.at : side(job->taps),
                              .sequences = (const void *)table,
                              .parts = (const void *)(table + s->parts_at),
                              .channels = (int)gated_delta_channels(m),
                              .width = m->width,
                              .silu = m->silu};
  struct cuda_launch l = {.name = KERNEL_MIXER_CONV, .is_early = 1, .arguments = &a};
  a.blocks = (int)ceil_div(a.channels, CONV_THREADS);
  return launch(w, &l, s->parts * a.blocks, CONV_THREADS);
}

/* The rows of q, k and v: norm_run() reads their q and k, step_run() their v. */
static const float *rows_of(const struct mixer *w, const struct mixer_job *job)
{
  const struct mixer_state *s = w->state;
  return w->net.width ? s->y.at : side(job->x);
}

static int norm_run(const struct mixer *w, const struct mixer_job *job)
{
  const struct mixer_state *s = w->state;
  const struct gated_delta *m = &w->net;
  struct mixer_norm_args a = {.y = rows_of(w, job),
                              .g = side(job->g),
                              .q = s->q.at,
                              .k = s->k.at,
                              .decay = s->decay.at,
                              .tokens = job->start[job->slots.sequences],
                              .channels = (int)gated_delta_channels(m),
                              .heads_k = m->heads_k,
                              .heads = job->count,
                              .d = m->d,
                              .l2 = m->l2,
                              .by_column = m->by_column,
                              .eps = m->eps,
                              .scale = m->scale};
  struct cuda_launch l = {.name = KERNEL_MIXER_NORM, .is_early = 1, .arguments = &a};
  gidx warps = a.tokens * mixer_norm_items(a.heads_k, a.heads, a.by_column);
  return launch(w, &l, ceil_div(warps, NORM_WARPS), NORM_WARPS * WARP);
}

static int step_run(const struct mixer *w, const struct mixer_job *job)
{
  const struct mixer_state *s = w->state;
  const struct cuda_state *c = w->device->state;
  const struct gated_delta *m = &w->net;
  struct mixer_form f = mixer_form_of(m->d, m->dv, s->longest <= 1,
                                      s->long_ones * job->count * m->dv, c->sizes.multiprocessors);
  gidx values = 2 * (gidx)m->heads_k * m->d + (gidx)job->first * m->dv;
  const float *rows = rows_of(w, job);
  struct mixer_step_args a = {.q = s->q.at,
                              .k = s->k.at,
                              .decay = s->decay.at,
                              .v = rows ? rows + values : NULL,
                              .beta = side(job->beta),
                              .o = side(job->o),
                              .pool = side(job->s),
                              .scratch = s->s.at,
                              .out = job->unfused ? s->s.at : side(job->s),
                              .sequences = s->table.at,
                              .channels = (int)gated_delta_channels(m),
                              .heads_k = m->heads_k,
                              .heads = job->count,
                              .first = job->first,
                              .group = m->heads / m->heads_k,
                              .tiled = m->tiled};
  struct cuda_launch l = {
      .name = KERNEL_MIXER_STEP,
      .shape = {.head_d = m->d, .head_dv = m->dv, .by_column = m->by_column, .mixer = f},
      .shared = mixer_shared_bytes(m->d, m->by_column, f.columns, f.threads, f.chunk),
      /* This kernel reads states before it waits.  So the launch in front of it must be norm_run(),
       * which waits for all earlier ones. */
      .is_early = !job->is_prepared && job->start[job->slots.sequences] > 0,
      .arguments = &a};
  gidx blocks = job->count * ceil_div(m->dv, mixer_width(f.columns, f.threads));
  return launch(w, &l, job->slots.sequences * blocks, f.threads);
}

/* Copy states and taps, to scratch or back. */
static int all_copied(const struct mixer *w, const struct mixer_job *job, int is_back)
{
  struct mixer_state *s = w->state;
  const struct moves *moves = is_back ? &s->out : &s->in;
  void *pool = side(job->s), *scratch = s->s.at;
  gidx floats = state_floats(w, job);
  TRY(copies_run(w, moves, is_back ? scratch : pool, is_back ? pool : scratch, floats));
  if (!w->net.width) return OK;
  pool = side(job->taps), scratch = s->taps.at;
  return copies_run(w, moves, is_back ? scratch : pool, is_back ? pool : scratch, taps_floats(w));
}

int cuda_mixer_run(struct mixer *w, const struct mixer_job *job)
{
  const struct cuda_state *c = w->device->state;
  TRY_CU(cudaSetDevice(c->number));
  TRY(tables_make(w, job));
  TRY(works_reserve(w, job));
  TRY(all_copied(w, job, 0));
  if (!job->is_prepared && w->net.width) TRY(conv_run(w, job));
  if (!job->is_prepared) TRY(norm_run(w, job));
  TRY(step_run(w, job));
  return all_copied(w, job, 1);
}
