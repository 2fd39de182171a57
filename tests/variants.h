/* SPDX-License-Identifier: BSD-3-Clause
 * The variants of the CPU with different loops for codes, refits, arrow systems and dense
 * operations.  On x86-64 there are two, because `baseline` uses the loops of avx2; on other
 * processors there is one. */
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
