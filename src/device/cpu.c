/* SPDX-License-Identifier: BSD-3-Clause
 * The CPU device: its variants, its buffers, and the packing of tiles into panels. */
#include "device/cpu.h"

#include <cpuid.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"

/* With fewer terms a row the filter does not pay (doc/bench.md). */
enum { FILTER_TERMS = 1 << 20 };
/* Sums of integers stay below 2^31 up to here. */
enum { FILTER_COLUMNS_MOST = 65536 };

static int has_avx512(void)
{
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static int has_avx2(void)
{
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int has_vnni(void)
{
  return has_avx512() && __builtin_cpu_supports("avx512vnni");
}

/* Linux lets a process use tiles after it asked for it, once or more often, and refuses where it
 * does not save them.  Not by name, since clang's __builtin_cpu_supports knows no tiles. */
static int has_amx(void)
{
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  const unsigned tile = 1u << 24, int8 = 1u << 25;
  unsigned a, b, c, d;
  return has_vnni() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & tile && d & int8 &&
         !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
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
  const struct filter_loops *filter; /* with VNNI alone, or for all others; NULL: none */
  int (*present)(void), (*preferred)(void);
} variants[] = {
    {&route_avx512, &codes_avx512, &arrow_avx512, &filter_avx512, has_avx512, prefers_avx512},
    {&route_avx512vl, &codes_avx512, &arrow_avx512, &filter_avx512vl, has_avx512, has_avx512},
    {&route_avx2, &codes_avx2, &arrow_avx2, &filter_avx2, has_avx2, has_avx2},
    {&route_baseline, &codes_avx2, &arrow_avx2, NULL, has_baseline, has_baseline},
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

/* avx512vl keeps VNNI where there are tiles, so that both can be compared. */
static const struct filter_loops *filter_find(const struct variant *variant)
{
  if (variant->filter && !has_vnni()) return &filter_avx2;
  return variant->filter == &filter_avx512 && has_amx() ? &filter_amx : variant->filter;
}

/* Is the filter wanted, there, and worth its start? */
static int filter_open(struct cpu_state *s, const struct variant *variant)
{
  const struct device_options *o = &s->options;
  const char *wish = o->filter ? o->filter : "off";
  struct filter_state *f = &s->filter;
  int large = (gidx)o->atoms_most * o->d * o->p >= FILTER_TERMS;
  f->loops = o->p > FILTER_COLUMNS_MOST ? NULL : filter_find(variant);
  f->is_automatic = !strcmp(wish, "auto");
  f->is_on = !strcmp(wish, "on") || (f->is_automatic && f->loops && large);
  if (!f->is_on) return OK;
  CHECK(f->loops, ERR_DEVICE, "there is no certified filter for the variant '%s' and %d columns",
        variant->route->name, o->p);
  return filter_take(f, &s->arena, o->d, o->p, o->atoms_most);
}

static int state_take(struct cpu_state *s)
{
  gidx panels = ((gidx)s->options.atoms_most + s->route->lanes - 1) / s->route->lanes;
  TRY(arena_take(&s->arena, &s->panels, panels * panel_floats(s), sizeof(float)));
  return arena_take(&s->arena, &s->atom_of, s->options.atoms_most, sizeof(idx));
}

static int cpu_open(struct device *dev, const struct device_options *options)
{
  struct arena arena = {0};
  struct cpu_state *s;
  const struct variant *variant = NULL;
  TRY(variant_find(options->variant, &variant));
  TRY(arena_take(&arena, &s, 1, sizeof *s));
  *s = (struct cpu_state){.arena = arena, .options = *options, .ascending = 1};
  s->route = variant->route;
  s->codes = has_avx2() ? variant->codes : NULL;
  s->arrow = has_avx2() ? variant->arrow : NULL;
  dev->state = s;
  dev->variant = s->route->name;
  TRY(state_take(s));
  return filter_open(s, variant);
}

static void cpu_close(struct device *dev)
{
  struct cpu_state *s = dev->state;
  struct arena arena = s->arena; /* it holds the state too */
  arena_free(&s->arrow_room.arena);
  arena_free(&arena);
}

/* Both sides of a buffer are the host's. */
static int cpu_take(struct device *dev, struct buffer *b)
{
  (void)dev;
  size_t bytes = ((size_t)b->bytes + CACHE_LINE) / CACHE_LINE * CACHE_LINE;
  b->host = b->device = memory_zeroed(bytes);
  CHECK(b->host, ERR_MEMORY, "cannot allocate %.1f MB", 1e-6 * (double)bytes);
  return OK;
}

static int cpu_wrap(struct device *dev, struct buffer *b)
{
  (void)dev;
  b->device = b->host;
  return OK;
}

static void cpu_drop(struct device *dev, struct buffer *b)
{
  (void)dev;
  if (b->owned) free(b->host);
}

static int cpu_copy(struct device *dev, const struct buffer *b, gidx at, gidx bytes)
{
  (void)dev, (void)b, (void)at, (void)bytes;
  return OK;
}

static int cpu_pick(struct device *dev, const struct pick_job *job)
{
  const struct cpu_state *s = dev->state;
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
  struct cpu_state *s = dev->state;
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
  return s->filter.is_on ? filter_put(s, old, count, atoms) : OK;
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
  const struct cpu_state *s = dev->state;
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
    .close = cpu_close,
    .take = cpu_take,
    .hold = cpu_take,
    .wrap = cpu_wrap,
    .spare = cpu_wrap,
    .drop = cpu_drop,
    .put = cpu_copy,
    .get = cpu_copy,
    .pick = cpu_pick,
    .put_tile = cpu_put_tile,
    .route = cpu_route,
    .codes_state = cpu_codes_state,
    .codes = cpu_codes,
    .peak = cpu_peak,
};
