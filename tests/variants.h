/* SPDX-License-Identifier: BSD-3-Clause
 * The variants of the CPU whose loops of codes, refits, arrow systems and dense work differ: two on
 * x86-64, where `baseline` takes those of avx2, and one elsewhere. */
#ifndef TESTS_VARIANTS_H
#define TESTS_VARIANTS_H

#ifdef __x86_64__
#define NARROW_VARIANT "avx2"
#define WIDE_VARIANT "avx512"
enum { LOOP_VARIANTS = 2 };
#else
#define NARROW_VARIANT "baseline"
#define WIDE_VARIANT "baseline"
enum { LOOP_VARIANTS = 1 };
#endif

__attribute__((unused)) static const char *const loop_variants[] = {NARROW_VARIANT, WIDE_VARIANT};

#endif
