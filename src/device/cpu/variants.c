/* SPDX-License-Identifier: BSD-3-Clause
 * The units of this program, the variants as lists of units, and the units that this processor can
 * run.  The loops of an operation come from the first unit of the variant that has them and that
 * this processor can run. */
#include "config.h"

#include <string.h>

#include "base/status.h"
#include "base/types.h"
#include "device/cpu/isa.h"
#include "device/device.h"

#ifdef HAVE_X86_FEATURES
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Stands for a unit that this program was built without. */
enum { CPU_NEVER = 1 << 8 };
__attribute__((unused)) static const struct isa isa_none = {.needs = CPU_NEVER};

extern const struct isa isa_portable;
#ifdef HAVE_ISA_AVX2
extern const struct isa isa_avx2;
#define AVX2 isa_avx2
#else
#define AVX2 isa_none
#endif
#ifdef HAVE_ISA_AVX512
extern const struct isa isa_avx512, isa_avx512vl;
#define AVX512 isa_avx512
#define AVX512VL isa_avx512vl
#else
#define AVX512 isa_none
#define AVX512VL isa_none
#endif
#ifdef HAVE_ISA_VNNI
extern const struct isa isa_avx512_vnni, isa_avx512vl_vnni;
#define AVX512_VNNI isa_avx512_vnni
#define AVX512VL_VNNI isa_avx512vl_vnni
#else
#define AVX512_VNNI isa_none
#define AVX512VL_VNNI isa_none
#endif
#ifdef HAVE_ISA_AMX
extern const struct isa isa_amx;
#define AMX isa_amx
#else
#define AMX isa_none
#endif

enum { MAX_UNITS = 4 };
/* The names, with "auto", are those of CPU_VARIANTS. */
static const struct variant {
  const char *name;
  int is_slow_on_zen4; /* 1: `auto` does not take it on Zen 4 */
  int has_screen;
  const struct isa *units[MAX_UNITS]; /* the processor must run the first one */
} variants[] = {
    /* On Zen 4, broadcasts cost the widest vectors a third of their speed (route_body.h). */
    {"avx512", 1, 1, {&AVX512, &AMX, &AVX512_VNNI, &AVX2}},
    /* Without AMX, so that AMX and VNNI can be compared. */
    {"avx512vl", 0, 1, {&AVX512VL, &AVX512VL_VNNI, &AVX512, &AVX2}},
    {"avx2", 0, 1, {&AVX2}},
    {"baseline", 0, 0, {&isa_portable, &AVX2}},
};

#ifdef HAVE_X86_FEATURES
/* A process may use AMX tiles only after it has asked Linux, which refuses if it cannot save them.
 * The request may be repeated.  Uses cpuid, since clang's __builtin_cpu_supports does not know
 * AMX. */
static int has_amx(void)
{
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  const unsigned tile = 1u << 24, int8 = 1u << 25;
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & tile && d & int8 &&
         !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
}

static int cpu_has(unsigned feature)
{
  switch (feature) {
  case CPU_AVX2:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  case CPU_AVX512:
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  case CPU_VNNI:
    return __builtin_cpu_supports("avx512vnni");
  case CPU_AMX:
    return has_amx();
  default:
    return 0;
  }
}

static int is_zen4(void)
{
  return __builtin_cpu_is("amdfam19h");
}
#else
static int cpu_has(unsigned feature)
{
  (void)feature;
  return 0;
}

static int is_zen4(void)
{
  return 0;
}
#endif

static int unit_runs(const struct isa *unit)
{
  for (unsigned feature = 1; feature <= unit->needs; feature *= 2)
    if (unit->needs & feature && !cpu_has(feature)) return 0;
  return 1;
}

/* Take from `unit` the loops that `loops` still lacks. */
static void loops_complete(struct isa *loops, const struct isa *unit)
{
  if (!loops->route) loops->route = unit->route;
  if (!loops->codes) loops->codes = unit->codes;
  if (!loops->refit) loops->refit = unit->refit;
  if (!loops->arrow) loops->arrow = unit->arrow;
  if (!loops->dense) loops->dense = unit->dense;
  if (!loops->normal) loops->normal = unit->normal;
  if (!loops->triad) loops->triad = unit->triad;
  if (!loops->screen) loops->screen = unit->screen;
  if (!loops->attention) loops->attention = unit->attention;
  if (!loops->mixer) loops->mixer = unit->mixer;
}

static void loops_find(const struct variant *v, struct isa *loops)
{
  *loops = (struct isa){0};
  for (int i = 0; i < MAX_UNITS && v->units[i]; i++)
    if (unit_runs(v->units[i])) loops_complete(loops, v->units[i]);
  if (!v->has_screen) loops->screen = NULL;
}

static int is_preferred(const struct variant *v)
{
  return unit_runs(v->units[0]) && !(v->is_slow_on_zen4 && is_zen4());
}

int variant_find(const char *name, struct isa *loops)
{
  int automatic = !strcmp(name, "auto");
  for (int i = 0; i < LENGTH(variants); i++) {
    const struct variant *v = &variants[i];
    if (automatic ? !is_preferred(v) : strcmp(name, v->name)) continue;
    CHECK(unit_runs(v->units[0]), ERR_DEVICE,
          "this processor lacks the instructions of '%s': use --cpu-variant auto", name);
    loops_find(v, loops);
    return OK;
  }
  FAIL(ERR_USAGE, "unknown variant '%s': there are " CPU_VARIANTS, name);
}

const struct isa *isa_present(int i)
{
  static const struct isa *const units[] = {&isa_portable,  &AVX2,        &AVX512VL, &AVX512,
                                            &AVX512VL_VNNI, &AVX512_VNNI, &AMX};
  for (int u = 0; u < LENGTH(units); u++)
    if (unit_runs(units[u]) && i-- == 0) return units[u];
  return NULL;
}

int device_check_fma(void)
{
  struct isa loops;
  TRY(variant_find("baseline", &loops));
  CHECK(loops.codes, ERR_DEVICE,
        "this processor has no fused multiply-add (AVX2 and FMA): codes cannot be computed on it");
  return OK;
}
