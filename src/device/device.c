/* SPDX-License-Identifier: BSD-3-Clause
 * Opening the CPU device, its checks, and the packing of tiles into panels. */
#include "device/device.h"

#include <string.h>
#include <time.h>

#include "base/status.h"
#include "device/cpu.h"

static int has_avx512(void)
{
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static int has_avx2(void)
{
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int has_baseline(void)
{
  return 1;
}

/* On Zen 4 the widest vectors lose a third of their speed to broadcasts, see route_body.h. */
static int prefers_avx512(void)
{
  return has_avx512() && !__builtin_cpu_is("amdfam19h");
}

/* `auto` takes the first that is preferred, a name the one that it names if that is present. */
static const struct variant {
  const struct route_loops *route;
  const struct codes_loops *codes;
  const struct arrow_loops *arrow;
  int (*present)(void), (*preferred)(void);
} variants[] = {
    {&route_avx512, &codes_avx512, &arrow_avx512, has_avx512, prefers_avx512},
    {&route_avx512vl, &codes_avx512, &arrow_avx512, has_avx512, has_avx512},
    {&route_avx2, &codes_avx2, &arrow_avx2, has_avx2, has_avx2},
    {&route_baseline, &codes_avx2, &arrow_avx2, has_baseline, has_baseline},
};

static int variant_find(const char *name, const struct variant **out)
{
  int automatic = !strcmp(name, "auto");
  for (int i = 0; i < LENGTH(variants); i++) {
    *out = &variants[i];
    if (automatic && variants[i].preferred()) return OK;
    if (strcmp(name, variants[i].route->name)) continue;
    CHECK(variants[i].present(), ERR_DEVICE, "this processor lacks the instructions of '%s'", name);
    return OK;
  }
  FAIL(ERR_USAGE, "unknown variant '%s': auto, baseline, avx2, avx512vl or avx512", name);
}

static int state_take(struct device_state *s)
{
  gidx panels = ((gidx)s->options.atoms_most + s->route->lanes - 1) / s->route->lanes;
  TRY(arena_take(&s->arena, &s->panels, panels * panel_floats(s), sizeof(float)));
  return arena_take(&s->arena, &s->atom_of, s->options.atoms_most, sizeof(idx));
}

int device_open(struct device *dev, const struct device_options *options)
{
  struct arena arena = {0};
  struct device_state *s;
  const struct variant *variant = NULL;
  TRY(variant_find(options->variant, &variant));
  CHECK(options->p >= 1 && options->d >= 1 && options->threads >= 1 && options->atoms_most >= 0,
        ERR_INTERNAL, "device of %d columns, %d vectors a frame, %d threads", options->p,
        options->d, options->threads);
  TRY(arena_take(&arena, &s, 1, sizeof *s));
  *s = (struct device_state){.arena = arena, .options = *options, .ascending = 1};
  s->route = variant->route;
  s->codes = has_avx2() ? variant->codes : NULL;
  s->arrow = has_avx2() ? variant->arrow : NULL;
  *dev = (struct device){s, s->route->name};
  return state_take(s);
}

void device_close(struct device *dev)
{
  if (dev->state) {
    struct arena arena = dev->state->arena; /* it holds the state too */
    arena_free(&dev->state->arrow_room.arena);
    arena_free(&arena);
  }
  *dev = (struct device){0};
}

int device_check_fma(void)
{
  CHECK(has_avx2(), ERR_DEVICE,
        "this processor has no fused multiply-add (AVX2 and FMA): codes cannot be computed on it");
  return OK;
}

/* Does this thread keep subnormal operands and results, in both precisions? */
static int keeps_subnormals(void)
{
  volatile float small = 0x1p-100f, tiny = 0x1p-30f;
  volatile real small_real = 0x1p-1000, tiny_real = 0x1p-60;
  volatile float product = small * tiny;
  volatile real product_real = small_real * tiny_real;
  volatile float back = product / tiny;
  volatile real back_real = product_real / tiny_real;
  return back == small && back_real == small_real;
}

int device_check_subnormals(int threads)
{
  int lost = 0;
#pragma omp parallel for num_threads(threads) schedule(static, 1) reduction(+ : lost)
  for (int t = 0; t < threads; t++) lost += !keeps_subnormals();
  CHECK(lost == 0, ERR_INTERNAL, "%d of %d threads flush subnormal numbers to zero", lost, threads);
  return OK;
}

/* Slots begin .. end - 1 of one panel <- frames[end - begin][d][p]. */
static void panel_pack(struct device_state *s, idx begin, idx end, const float *frames)
{
  idx lanes = s->route->lanes;
  gidx stride = (gidx)s->options.d * s->options.p;
  float *to = s->panels + begin / lanes * panel_floats(s) + begin % lanes;
  for (gidx i = 0; i < stride; i++)
    for (idx a = 0; a < end - begin; a++) to[i * lanes + a] = frames[a * stride + i];
}

int device_put_tile(struct device *dev, const float *atoms, idx count, idx first)
{
  struct device_state *s = dev->state;
  idx lanes = s->route->lanes, old = s->count;
  gidx stride = (gidx)s->options.d * s->options.p;
  CHECK(count >= 0 && count <= s->options.atoms_most - old, ERR_INTERNAL,
        "%d atoms put beside %d, at most %d were expected", count, old, s->options.atoms_most);
  if (count == 0) return OK;
  if (old > 0 && first <= s->atom_of[old - 1]) s->ascending = 0;
  for (idx a = 0; a < count; a++) s->atom_of[old + a] = first + a;
#pragma omp parallel for num_threads(s->options.threads)
  for (idx panel = old / lanes; panel <= (old + count - 1) / lanes; panel++) {
    idx begin = panel * lanes < old ? old : panel * lanes;
    idx end = (panel + 1) * lanes < old + count ? (panel + 1) * lanes : old + count;
    panel_pack(s, begin, end, atoms + (begin - old) * stride);
  }
  s->count += count;
  return OK;
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double device_peak(const struct device *dev, double seconds)
{
  enum { TURNS = 10000 };
  const struct route_loops *loops = dev->state->route;
  double best = 0, begin = now(), last = begin;
  do {
    loops->spin(TURNS);
    double time = now(), rate = TURNS * (double)loops->spin_terms / (time - last);
    best = rate > best ? rate : best;
    last = time;
  } while (last - begin < seconds);
  return best;
}
