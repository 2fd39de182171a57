/* SPDX-License-Identifier: BSD-3-Clause
 * The window of the dictionary as the filter needs it: f32 frames one after another for the exact
 * chains, short operands for the matrix unit. */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/order.h"
#include "base/status.h"
#include "device/cuda.h"

/* With fewer terms a row the filter does not pay (doc/bench.md). */
#define FILTER_TERMS (1 << 18)
/* So many times the root of all frames are the sample: there, what a larger one costs and what
 * shorter lists save are about equal. */
#define FILTER_SAMPLED 11.3

double cuda_filter_gamma(int architecture, gidx terms)
{
  int hopper = architecture / 10 == 9;
  double group = hopper ? 16 : 8, cut = hopper ? 0x1p-25 : 0x1p-23;
  double theta = 2 * ((group + 1) * cut + 0x1p-23), sum = ceil((double)terms / group) * theta;
  return sum < 0.5 ? sum / (1 - sum) : INFINITY;
}

int cuda_filter_open(struct device *dev)
{
  struct cuda_state *s = dev->state;
  struct cuda_filter *f = &s->filter;
  const struct device_options *o = &s->options;
  const char *wish = o->filter ? o->filter : "off";
  int large = (gidx)o->atoms_most * o->d * o->p >= FILTER_TERMS;
  f->wgmma = s->architecture / 10 == 9 && !o->filter_mma;
  f->gamma = cuda_filter_gamma(s->architecture, (gidx)filter_stages(o->p) * FILTER_DEPTH);
  f->is_automatic = !strcmp(wish, "auto");
  f->is_on = !strcmp(wish, "on") || (f->is_automatic && large);
  struct filter_form form = filter_form_of(f->wgmma, o->d, 0);
  int can = filter_shared_bytes(form.vectors, form.stages) <= s->shared && !isinf(f->gamma);
  CHECK(can || !f->is_on || f->is_automatic, ERR_DEVICE,
        "there is no certified filter for GPU %d, %s, and %d columns", s->number, s->name, o->p);
  if (!can) f->is_on = 0;
  for (int i = 0; f->is_on && i < LENGTH(f->marks); i++) TRY_CU(cudaEventCreate(&f->marks[i]));
  return OK;
}

void cuda_filter_release(struct cuda_state *s)
{
  struct cuda_filter *f = &s->filter;
  struct cuda_work *const works[] = {&f->frames, &f->halves, &f->most, &f->rows, &f->work};
  for (int i = 0; i < LENGTH(works); i++) cuda_release(works[i]);
  f->filled = 0;
}

void cuda_filter_stop(struct cuda_state *s)
{
  cuda_filter_release(s);
  s->filter.is_on = 0;
}

int cuda_filter_drop(struct cuda_state *s)
{
  struct cuda_filter *f = &s->filter;
  if (!f->is_on || !f->is_automatic || f->frames.bytes == 0) return 0;
  log_rank("memory of GPU %d is short: no certified filter", s->number);
  status_clear();
  cuda_filter_stop(s);
  s->rows_most = 0; /* that was tried with the filter */
  return 1;
}

void cuda_filter_close(struct cuda_state *s)
{
  cuda_filter_stop(s);
  for (int i = 0; i < LENGTH(s->filter.marks); i++)
    if (s->filter.marks[i]) cudaEventDestroy(s->filter.marks[i]);
}

int cuda_filter_take(struct cuda_state *s, gidx slots)
{
  struct cuda_filter *f = &s->filter;
  gidx bytes = slots * s->options.d * cuda_filter_pitch(s->options.p) * (gidx)sizeof(float);
  if (!f->is_on) return OK;
  f->filled = 0;
  int status = cuda_reserve(s, &f->frames, bytes);
  if (status == ERR_MEMORY && f->is_automatic) {
    status_clear();
    log_rank("memory of GPU %d is short: no certified filter", s->number);
    cuda_filter_stop(s);
    return OK;
  }
  TRY(status);
  TRY_CU(cudaMemsetAsync(f->frames.at, 0, (size_t)bytes, s->stream));
  return OK;
}

int cuda_filter_put(struct cuda_state *s, const float *frames, idx count, idx to)
{
  struct cuda_filter *f = &s->filter;
  if (!f->is_on) return OK;
  size_t width = (size_t)s->options.p * sizeof(float), d = (size_t)s->options.d;
  size_t pitch = (size_t)cuda_filter_pitch(s->options.p) * sizeof(float);
  f->filled = 0;
  TRY_CU(cudaMemcpy2DAsync((char *)f->frames.at + (size_t)to * d * pitch, pitch, frames, width,
                           width, (size_t)count * d, cudaMemcpyDeviceToDevice, s->stream));
  return OK;
}

struct buffer cuda_filter_atoms(const struct device *dev)
{
  const struct cuda_state *s = dev->state;
  const struct cuda_filter *f = &s->filter;
  idx p = s->options.p;
  int all = s->window_first == 0 && s->window_filled == dev->atoms;
  if (!f->is_on || !all || cuda_filter_pitch(p) != p) return (struct buffer){0};
  return (struct buffer){.device = f->frames.at,
                         .bytes = (gidx)dev->atoms * s->options.d * p * (gidx)sizeof(float)};
}

/* How many tiles of the filter's the window fills. */
static idx tiles_of(const struct cuda_state *s, struct filter_form form)
{
  idx tile = form.vectors / form.frame;
  return (s->window_filled + tile - 1) / tile;
}

static int halves_reserve(struct cuda_state *s)
{
  struct cuda_filter *f = &s->filter;
  struct filter_form form = filter_form_of(f->wgmma, s->options.d, 0);
  gidx stages = (gidx)tiles_of(s, form) * filter_stages(s->options.p);
  TRY(cuda_reserve(s, &f->halves, stages * form.vectors * FILTER_ITEM));
  return cuda_reserve(s, &f->most, sizeof(struct filter_most));
}

/* The window as short operands, and their largest norms. */
static int frames_halve(struct device *dev)
{
  struct cuda_state *s = dev->state;
  struct cuda_filter *f = &s->filter;
  struct filter_form form = filter_form_of(f->wgmma, s->options.d, 0);
  TRY_CU(cudaMemsetAsync(f->most.at, 0, sizeof(struct filter_most), s->stream));
  struct halve_args a = {.in = f->frames.at,
                         .out = f->halves.at,
                         .frames = s->window_filled,
                         .turn = f->turn,
                         .padded = tiles_of(s, form) * (form.vectors / form.frame),
                         .d = s->options.d,
                         .p = s->options.p,
                         .pitch = cuda_filter_pitch(s->options.p),
                         .items = form.vectors,
                         .frame = form.frame,
                         .most = f->most.at};
  struct cuda_launch launch = {.name = KERNEL_HALVE_ATOMS, .arguments = &a};
  launch.grid = (dim3){(unsigned)(a.padded + FILTER_ROW_WARPS - 1) / FILTER_ROW_WARPS, 1, 1};
  launch.block = (dim3){FILTER_ROW_WARPS * WARP, 1, 1};
  return cuda_launch(dev, &launch);
}

/* The same by the clock of the device; trying the matrix unit has loaded the kernel. */
static int frames_halve_timed(struct device *dev)
{
  struct cuda_state *s = dev->state;
  cudaEvent_t *marks = s->filter.marks;
  float ms;
  TRY(halves_reserve(s));
  TRY_CU(cudaEventRecord(marks[0], s->stream));
  TRY(frames_halve(dev));
  TRY_CU(cudaEventRecord(marks[1], s->stream));
  TRY(cuda_finish(s));
  TRY_CU(cudaEventElapsedTime(&ms, marks[0], marks[1]));
  dev->filter.seconds[FILTER_ATOMS] += 1e-3 * (double)ms;
  return OK;
}

/* How many frames to sample: whole tiles, at most half of all. */
static idx sampled_of(const struct cuda_filter *f, idx d, idx filled)
{
  struct filter_form form = filter_form_of(f->wgmma, d, 1);
  idx tile = form.vectors / form.frame, tiles = (idx)(FILTER_SAMPLED * sqrt(filled)) / tile + 1;
  if (tiles > filled / 2 / tile) tiles = filled / 2 / tile;
  return tiles * tile;
}

static int matrix_unit_try(struct device *dev)
{
  struct cuda_state *s = dev->state;
  int good = 0;
  TRY(cuda_filter_probe(dev, &good));
  s->filter.is_tried = 1;
  if (good) return OK;
  log_rank("the matrix unit of GPU %d does not add as the certified filter assumes: the exact path "
           "is taken",
           s->number);
  cuda_filter_stop(s);
  return OK;
}

int cuda_filter_prepare(struct device *dev)
{
  struct cuda_state *s = dev->state;
  struct cuda_filter *f = &s->filter;
  if (!f->is_tried) TRY(matrix_unit_try(dev));
  if (!f->is_on || (f->filled == s->window_filled && f->first == s->window_first)) return OK;
  f->turn = golden_stride(s->window_filled);
  f->sampled = sampled_of(f, s->options.d, s->window_filled);
  TRY(frames_halve_timed(dev));
  f->first = s->window_first;
  f->filled = s->window_filled;
  return OK;
}
