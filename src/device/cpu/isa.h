/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of one instruction set, and the choice of them by processor and --cpu-variant.
 *
 * Floor: device.
 *
 * A unit is one file isa_<set>.c.  It takes its vectors from vectors_<bits>.h or defines them, then
 * includes the *_body.h of its operations, and ends with one table.  A new instruction set needs
 * such a file, its flags in m4/isa.m4, a library in src/local.mk, and a row in variants.c; and a
 * name in CPU_VARIANTS (device.h) if --cpu-variant is to accept it. */
#ifndef DEVICE_CPU_ISA_H
#define DEVICE_CPU_ISA_H

struct route_loops;
struct codes_loops;
struct refit_loops;
struct arrow_loops;
struct dense_loops;
struct normal_loops;
struct triad_loops;
struct screen_loops;
struct attention_loops;
struct mixer_loops;

/* Functions in units are inlined, which makes the loops fast.  NOINLINE marks those that would
 * spill registers if inlined. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

/* What a processor needs to run a unit, beyond the compiler's default target. */
enum cpu_feature { CPU_AVX2 = 1, CPU_AVX512 = 2, CPU_VNNI = 4, CPU_AMX = 8 };

/* The loops of a unit; NULL: it has none for this operation. */
struct isa {
  unsigned needs; /* flags of enum cpu_feature */
  const struct route_loops *route;
  const struct codes_loops *codes;
  const struct refit_loops *refit;
  const struct arrow_loops *arrow;
  const struct dense_loops *dense;
  const struct normal_loops *normal;
  const struct triad_loops *triad;
  const struct screen_loops *screen;
  const struct attention_loops *attention;
  const struct mixer_loops *mixer;
};

/* *loops <- the loops of the variant `name` (or "auto") on this processor.  Each is from the first
 * unit of the variant that has it and that this processor can run.  route is never NULL.  screen is
 * NULL if there is no certified filter.  All others are NULL without hardware FMA.  ERR_DEVICE: the
 * processor lacks the variant's instructions; ERR_USAGE: there is no such variant. */
int variant_find(const char *name, struct isa *loops);

/* The i-th unit that runs on this processor; NULL: there are no more.  For tests. */
const struct isa *isa_present(int i);

#endif
