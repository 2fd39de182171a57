/* SPDX-License-Identifier: BSD-3-Clause
 * Devices and variants that a conformance test goes through: those of the CPU, or a GPU.
 *
 * A test with a GPU is skipped where there is none, and fails there with REQUIRE_GPU=1. */
#ifndef TESTS_DEVICE_HOW_H
#define TESTS_DEVICE_HOW_H

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "device/route.h"
#include "tap.h"

struct how {
  const char *kind, *variant;
  int threads;                    /* 1 .. threads are tried */
  const char *filter;             /* as struct device_options; NULL: off */
  const struct device_test *test; /* NULL: what jobs run */
};

static struct device_options how_options(const struct how *how, idx p, idx d, idx max_atoms)
{
  return (struct device_options){.p = p,
                                 .d = d,
                                 .max_atoms = max_atoms,
                                 .threads = 1,
                                 .variant = how->variant,
                                 .kind = how->kind,
                                 .kernels = getenv("KERNELS"), /* other than those built in */
                                 .filter = how->filter,
                                 .test = how->test};
}

/* Less of each kind: with SMALL=1, for a sanitizer of kernels, and in a build with sanitizers or
 * for an emulator, which are slow, and after faults rather than bits. */
__attribute__((unused)) static int is_small(void)
{
  return is_set("SMALL") || is_set("SANITIZED");
}

static int how_present(const struct how *how)
{
  struct device dev = {0};
  struct device_options options = how_options(how, 1, 1, 0);
  int status = device_open(&dev, &options);
  if (status) printf("# %s\n", status_message());
  device_close(&dev);
  status_clear();
  return status == OK;
}

__attribute__((unused)) static const struct how how_cuda = {
    .kind = "cuda", .variant = "auto", .threads = 1};

/* 1 with a GPU; else the test is skipped or fails. */
__attribute__((unused)) static int gpu_present(void)
{
  if (how_present(&how_cuda)) return 1;
  if (is_set("REQUIRE_GPU"))
    ok(0, "a GPU, which REQUIRE_GPU asks for");
  else
    skip("there is no GPU");
  return 0;
}

#endif
