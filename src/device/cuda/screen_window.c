/* SPDX-License-Identifier: BSD-3-Clause
 * The frames of the window become fp16 tiles for the matrix unit, in an order in which the first
 * ones are a sample. */
#include "device/cuda/screen_window.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "device/cuda/dictionary.h"
#include "device/cuda/memory.h"
#include "device/cuda/screen_launch.h"
#include "device/cuda/screen_probe.h"

/* With fewer terms per row the filter does not pay (doc/bench.md). */
#define SCREEN_TERMS (1 << 18)

int cuda_screen_open(struct device *dev)
{
  struct cuda_state *s = dev->state;
  struct cuda_screen *f = &s->screen;
  const struct device_options *o = &s->options;
  const char *wish = o->filter ? o->filter : "off";
  int large = (gidx)o->max_atoms * o->d * o->p >= SCREEN_TERMS;
  s->sizes.wgmma = s->architecture / 10 == 9 && !(o->test && o->test->mma);
  f->gamma = cuda_screen_gamma(s->architecture, (gidx)screen_stages(o->p) * SCREEN_DEPTH);
  f->is_automatic = !strcmp(wish, "auto");
  f->is_on = !strcmp(wish, "on") || (f->is_automatic && large);
  struct screen_form form = screen_form_of(s->sizes.wgmma, o->d, 0);
  int can = screen_shared_bytes(form.vectors, form.stages) <= s->shared && !isinf(f->gamma);
  CHECK(can || !f->is_on || f->is_automatic, ERR_DEVICE,
        "there is no certified filter for GPU %d, %s, and %d columns", s->number, s->name, o->p);
  if (!can) f->is_on = 0;
  for (int i = 0; f->is_on && i < LENGTH(f->marks); i++) TRY_CU(cudaEventCreate(&f->marks[i]));
  return OK;
}

void cuda_screen_close(struct cuda_state *s)
{
  for (int i = 0; i < LENGTH(s->screen.marks); i++)
    if (s->screen.marks[i]) cudaEventDestroy(s->screen.marks[i]);
}

/* The number of the filter's tiles that the window fills. */
static idx tiles_of(const struct cuda_state *s, struct screen_form form)
{
  return (idx)ceil_div(s->window_filled, form.vectors / form.frame);
}

static int f16_reserve(struct cuda_state *s)
{
  struct screen_form form = screen_form_of(s->sizes.wgmma, s->options.d, 0);
  gidx stages = (gidx)tiles_of(s, form) * screen_stages(s->options.p);
  TRY(cuda_reserve(s, &s->work.f16, stages * form.vectors * SCREEN_ITEM));
  return cuda_reserve(s, &s->work.norms, sizeof(struct screen_max_norms));
}

/* Convert the window to fp16 tiles, and find the largest norms of its frames. */
static int frames_to_f16(struct device *dev)
{
  struct cuda_state *s = dev->state;
  struct cuda_screen *f = &s->screen;
  struct screen_form form = screen_form_of(s->sizes.wgmma, s->options.d, 0);
  TRY_CU(cudaMemsetAsync(s->work.norms.at, 0, sizeof(struct screen_max_norms), s->stream));
  struct to_f16_args a = {.in = s->work.frames.at,
                          .out = s->work.f16.at,
                          .frames = s->window_filled,
                          .turn = f->turn,
                          .padded = tiles_of(s, form) * (form.vectors / form.frame),
                          .d = s->options.d,
                          .p = s->options.p,
                          .pitch = cuda_frames_pitch(s->options.p),
                          .items = form.vectors,
                          .frame = form.frame,
                          .norms = s->work.norms.at};
  return cuda_screen_to_f16(dev, &a);
}

/* The same, measured by the device's clock.  The kernel is loaded: the trial has used it. */
static int frames_to_f16_timed(struct device *dev)
{
  struct cuda_state *s = dev->state;
  cudaEvent_t *marks = s->screen.marks;
  float ms;
  TRY(f16_reserve(s));
  TRY_CU(cudaEventRecord(marks[0], s->stream));
  TRY(frames_to_f16(dev));
  TRY_CU(cudaEventRecord(marks[1], s->stream));
  TRY(cuda_finish(s));
  TRY_CU(cudaEventElapsedTime(&ms, marks[0], marks[1]));
  dev->filter.seconds[SCREEN_ATOMS] += 1e-3 * (double)ms;
  return OK;
}

int cuda_screen_try(struct device *dev)
{
  struct cuda_state *s = dev->state;
  int good = 0;
  if (!s->screen.is_on || s->screen.is_tried) return OK;
  TRY(cuda_screen_probe(dev, &good));
  s->screen.is_tried = 1;
  if (good) return OK;
  log_rank(
      "the matrix unit of GPU %d does not add as the certified filter assumes: the direct path "
      "is taken",
      s->number);
  cuda_screen_stop(s);
  return OK;
}

int cuda_screen_prepare(struct device *dev)
{
  struct cuda_state *s = dev->state;
  struct cuda_screen *f = &s->screen;
  TRY(cuda_screen_try(dev));
  if (!f->is_on || (f->filled == s->window_filled && f->first == s->window_first)) return OK;
  f->turn = golden_stride(s->window_filled);
  TRY(frames_to_f16_timed(dev));
  f->first = s->window_first;
  f->filled = s->window_filled;
  return OK;
}
