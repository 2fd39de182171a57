/* SPDX-License-Identifier: BSD-3-Clause
 * The CPU device: its buffers, and the packing of tiles into panels. */
#include "device/cpu/cpu.h"
#include "device/cpu/train_batch.h"
#include "device/cpu/train_nested.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/status.h"
#include "device/cpu/isa.h"

/* With fewer terms per row the filter does not pay (doc/bench.md). */
enum { SCREEN_TERMS = 1 << 20 };
/* With at most this many columns, sums of integers stay below 2^31. */
enum { MAX_SCREEN_COLUMNS = 65536 };

/* Use the filter if the options ask for it, this processor has it, and it pays. */
static int screen_open(struct cpu_state *s, const struct screen_loops *loops)
{
  const struct device_options *o = &s->options;
  const char *wish = o->filter ? o->filter : "off";
  struct screen_state *f = &s->screen;
  int large = (gidx)o->max_atoms * o->d * o->p >= SCREEN_TERMS;
  f->loops = o->p > MAX_SCREEN_COLUMNS ? NULL : loops;
  f->is_automatic = !strcmp(wish, "auto");
  f->is_on = !strcmp(wish, "on") || (f->is_automatic && f->loops && large);
  if (!f->is_on) return OK;
  CHECK(f->loops, ERR_DEVICE, "there is no certified filter for the variant '%s' and %d columns",
        s->route->name, o->p);
  return screen_alloc(f, &s->arena, o->d, o->p, o->max_atoms);
}

/* Choose the loops that the options name, and allocate the forms of the dictionary. */
static int state_alloc(struct cpu_state *s)
{
  struct isa loops;
  TRY(variant_find(s->options.variant, &loops));
  s->route = loops.route;
  s->codes = loops.codes;
  s->refit = loops.refit;
  s->arrow = loops.arrow;
  s->dense = loops.dense;
  s->normal = loops.normal;
  s->triad = loops.triad;
  s->attention = loops.attention;
  s->mixer = loops.mixer;
  gidx panels = ((gidx)s->options.max_atoms + s->route->lanes - 1) / s->route->lanes;
  TRY(arena_alloc(&s->arena, &s->panels, panels * panel_floats(s), sizeof(float)));
  TRY(arena_alloc(&s->arena, &s->atom_of, s->options.max_atoms, sizeof(idx)));
  return screen_open(s, loops.screen);
}

static int cpu_forms_bytes(const struct device_options *options, gidx *bytes)
{
  struct cpu_state s = {.arena = {.is_dry = 1}, .options = *options};
  TRY(state_alloc(&s));
  *bytes = (gidx)s.arena.bytes;
  return OK;
}

static int cpu_open(struct device *dev, const struct device_options *options)
{
  struct arena arena = {0};
  struct cpu_state *s;
  TRY(arena_alloc(&arena, &s, 1, sizeof *s));
  *s = (struct cpu_state){.arena = arena, .options = *options, .ascending = 1};
  dev->state = s;
  TRY(state_alloc(s));
  snprintf(dev->variant, sizeof dev->variant, "%s", s->route->name);
  return OK;
}

static void cpu_close(struct device *dev)
{
  struct cpu_state *s = cpu_of(dev);
  struct arena arena = s->arena; /* a copy, since the arena holds s itself */
  arena_free(&s->arrow_scratch.arena);
  free(s->shard);
  free(s->mixer_values);
  attribution_work_free(s->attribution);
  arena_free(&arena);
}

/* Both sides of a buffer are the same host memory. */
static int cpu_buffer_alloc(struct device *dev, struct buffer *b)
{
  (void)dev;
  size_t bytes = ((size_t)b->bytes + CACHE_LINE) / CACHE_LINE * CACHE_LINE;
  b->host = b->device = memory_zeroed(bytes);
  CHECK(b->host, ERR_MEMORY, "cannot allocate %.1f MB", 1e-6 * (double)bytes);
  return OK;
}

static int cpu_buffer_wrap(struct device *dev, struct buffer *b)
{
  (void)dev;
  b->device = b->host;
  return OK;
}

static void cpu_buffer_free(struct device *dev, struct buffer *b)
{
  (void)dev;
  if (b->owned) free(b->host);
}

static int cpu_buffer_copy(struct device *dev, const struct buffer *b, gidx at, gidx bytes)
{
  (void)dev, (void)b, (void)at, (void)bytes;
  return OK;
}

static int cpu_buffer_clear(struct device *dev, const struct buffer *b, gidx at, gidx bytes)
{
  (void)dev;
  memset((char *)b->device + at, 0, (size_t)bytes);
  return OK;
}

static int cpu_gather(struct device *dev, const struct gather_job *job)
{
  const struct cpu_state *s = cpu_of(dev);
  const char *from = job->from->device;
  char *to = (char *)job->to->device + job->at * job->unit;
#pragma omp parallel for num_threads(s->options.threads)
  for (gidx i = 0; i < job->n; i++)
    memcpy(to + i * job->unit, from + (job->names ? job->names[i] : i) * job->unit,
           (size_t)job->unit);
  return OK;
}

/* Slots begin .. end - 1 of one panel <- frames[end - begin][d][p]. */
static void panel_pack(struct cpu_state *s, idx begin, idx end, const float *frames)
{
  idx lanes = s->route->lanes;
  gidx stride = (gidx)s->options.d * s->options.p;
  float *to = s->panels + begin / lanes * panel_floats(s) + begin % lanes;
  for (gidx i = 0; i < stride; i++)
    for (idx a = 0; a < end - begin; a++) to[i * lanes + a] = frames[a * stride + i];
}

static int cpu_put_tile(struct device *dev, const float *atoms, idx count, idx first)
{
  struct cpu_state *s = cpu_of(dev);
  idx lanes = s->route->lanes, old = s->count;
  gidx stride = (gidx)s->options.d * s->options.p;
  if (old > 0 && first <= s->atom_of[old - 1]) s->ascending = 0;
  for (idx a = 0; a < count; a++) s->atom_of[old + a] = first + a;
#pragma omp parallel for num_threads(s->options.threads)
  for (idx panel = old / lanes; panel <= (old + count - 1) / lanes; panel++) {
    idx begin = panel * lanes < old ? old : panel * lanes;
    idx end = (panel + 1) * lanes < old + count ? (panel + 1) * lanes : old + count;
    panel_pack(s, begin, end, atoms + (begin - old) * stride);
  }
  s->count += count;
  return s->screen.is_on ? screen_put(s, old, count, atoms) : OK;
}

static void cpu_dictionary_free(struct device *dev)
{
  struct cpu_state *s = cpu_of(dev);
  s->count = 0;
  s->ascending = 1;
  s->screen.max_norm = s->screen.max_error = 0;
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cpu_peak(const struct device *dev, double seconds)
{
  enum { TURNS = 10000 };
  const struct cpu_state *s = cpu_of(dev);
  const struct route_loops *loops = s->route;
  double best = 0, begin = now(), last = begin;
  do {
    loops->spin(TURNS);
    double time = now(), rate = TURNS * (double)loops->spin_terms / (time - last);
    best = rate > best ? rate : best;
    last = time;
  } while (last - begin < seconds);
  return best;
}

const struct backend backend_cpu = {
    .kind = "cpu",
    .open = cpu_open,
    .forms_bytes = cpu_forms_bytes,
    .close = cpu_close,
    .alloc = cpu_buffer_alloc,
    .alloc_device = cpu_buffer_alloc,
    .wrap = cpu_buffer_wrap,
    .wrap_spare = cpu_buffer_wrap,
    .free = cpu_buffer_free,
    .put = cpu_buffer_copy,
    .get = cpu_buffer_copy,
    .clear = cpu_buffer_clear,
    .gather = cpu_gather,
    .put_tile = cpu_put_tile,
    .forget = cpu_dictionary_free,
    .route = cpu_route,
    .place = cpu_scatter,
    .encoder = cpu_encoder,
    .codes_state_bytes = cpu_codes_state_bytes,
    .codes = cpu_codes,
    .quality = cpu_quality,
    .arrow = cpu_arrow,
    .attention = cpu_attention,
    .mixer_run = cpu_mixer_run,
    .attribution = cpu_attribution,
    .residuals = cpu_residuals,
    .row_products = cpu_row_products,
    .row_sums = cpu_row_sums,
    .moves_try = cpu_moves_try,
    .moves_keep = cpu_moves_keep,
    .frame_end = cpu_frame_end,
    .directions_keep = cpu_directions_keep,
    .dense_open = cpu_dense_open,
    .dense_close = cpu_dense_close,
    .cholesky = cpu_cholesky,
    .inverse = cpu_inverse,
    .product = cpu_product,
    .entries = cpu_entries,
    .dense_bytes = cpu_dense_bytes,
    .normal_add = cpu_normal_add,
    .normal_decay = cpu_normal_decay,
    .normal_descend = cpu_normal_descend,
    .normal_energies = cpu_normal_energies,
    .normal_clear = cpu_normal_clear,
    .normal_bytes = cpu_normal_bytes,
    .triad_product = cpu_triad_product,
    .triad_gradient = cpu_triad_gradient,
    .triad_sparse = cpu_triad_sparse,
    .triad_dots = cpu_triad_dots,
    .adam = cpu_adam,
    .train_codes = cpu_train_codes,
    .train_codes_bytes = cpu_train_codes_bytes,
    .train_scores = cpu_train_scores,
    .train_count = cpu_train_count,
    .train_cut = cpu_train_cut,
    .train_batch_bytes = cpu_train_batch_bytes,
    .train_raise = cpu_train_raise,
    .train_blocks = cpu_train_blocks,
    .train_suffix = cpu_train_suffix,
    .train_block_get = cpu_train_block_get,
    .train_offset = cpu_train_offset,
    .train_sums = cpu_train_sums,
    .train_errors = cpu_train_errors,
    .train_scale = cpu_train_scale,
    .train_transpose = cpu_train_transpose,
    .train_idle = cpu_train_idle,
    .train_tangent = cpu_train_tangent,
    .train_normalize = cpu_train_normalize,
    .joint_open = cpu_joint_open,
    .joint_close = cpu_joint_close,
    .joint_batch = cpu_joint_batch,
    .joint_begin = cpu_joint_begin,
    .joint_add = cpu_joint_add,
    .joint_row_size = cpu_joint_row_size,
    .parts_append = cpu_parts_append,
    .parts_apply = cpu_parts_apply,
    .lanczos_step = cpu_lanczos_step,
    .peak = cpu_peak,
};
