/* SPDX-License-Identifier: BSD-3-Clause
 * More checks of the certified filter on any device; device_route.h has others. */
#ifndef TESTS_SCREEN_CHECKS_H
#define TESTS_SCREEN_CHECKS_H

#include "device_route.h"

/* Numbers of columns around the widths of loads, wide rows, and supports of 200 of k atoms. */
static void check_widths(const struct how *hows, int count, idx k)
{
  static const idx ps[] = {1, 3, 8, 9, 63, 64, 65, 4096};
  for (int i = 0; i < LENGTH(ps); i++)
    for (int kind = i % 2; kind < KINDS; kind += 2)
      problem_run((struct problem){.n = 37,
                                   .p = ps[i],
                                   .d = 1 + (i + kind) % 3,
                                   .top_k = kind % 2 ? 200 : 7,
                                   .k = k,
                                   .tile = 33,
                                   .excluded = kind % 5 == 2,
                                   .kind = (enum kind)kind},
                  hows, count);
}

/* Route a problem, and check the result.  Returns how many rows took which path. */
static struct screen_counts paths(struct problem c, const struct how *how)
{
  int good = problem_make(&c) == OK;
  problem_answer(&c);
  good = good && problem_check(&c, how, 1);
  ok(good, "kind %d with K=%d by its paths", c.kind, c.k);
  arena_free(&c.arena);
  return c.filter;
}

/* With a bound of 0 results must be wrong for these kinds of data.  Otherwise the tests would not
 * show that the bound is needed. */
static void check_without_bound(const struct how *how, idx top_k, const enum kind *kinds, int count)
{
  static const struct device_test boundless = {.bound = 1};
  struct how broken = *how;
  int wrong = 0;
  broken.test = &boundless;
  for (int i = 0; i < count; i++) {
    struct problem c = {
        .n = 61, .p = 48, .d = 1, .top_k = top_k, .k = 1500, .tile = 1500, .kind = kinds[i]};
    int good = problem_make(&c) == OK;
    problem_answer(&c);
    int is_wrong = good && !problem_check(&c, &broken, 1);
    if (!is_wrong) printf("# kind %d is right without the bound\n", kinds[i]);
    wrong += is_wrong;
    arena_free(&c.arena);
  }
  ok(wrong == count, "%s: without the bound %d of %d answers are wrong", how->variant, wrong,
     count);
}

#endif
