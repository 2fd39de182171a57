/* SPDX-License-Identifier: BSD-3-Clause
 * The devices and variants on which a test runs: variants of the CPU, or a GPU.
 *
 * Without a GPU a test of GPUs is skipped; with REQUIRE_GPU=1 it fails instead. */
#ifndef TESTS_DEVICE_HOW_H
#define TESTS_DEVICE_HOW_H

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "device/route.h"
#include "tap.h"

struct how {
  const char *kind, *variant;
  int threads;                    /* the most threads that are tried */
  const char *filter;             /* as in struct device_options; NULL: off */
  const struct device_test *test; /* as in struct device_options; NULL: as in jobs */
};

static struct device_options how_options(const struct how *how, idx p, idx d, idx max_atoms)
{
  return (struct device_options){.p = p,
                                 .d = d,
                                 .max_atoms = max_atoms,
                                 .threads = 1,
                                 .variant = how->variant,
                                 .kind = how->kind,
                                 .kernels = getenv("KERNELS"), /* NULL: those built in */
                                 .filter = how->filter,
                                 .test = how->test};
}

/* 1: smaller and fewer cases.  SMALL=1 is for sanitizers of kernels, SANITIZED for a build with
 * sanitizers or for an emulator.  These are slow, and look for faults, not for wrong bits. */
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

/* 1 if there is a GPU.  Otherwise 0, and the claim is skipped or fails. */
__attribute__((unused)) static int gpu_present(void)
{
  if (how_present(&how_cuda)) return 1;
  if (is_set("REQUIRE_GPU"))
    ok(0, "there is a GPU, as REQUIRE_GPU demands");
  else
    skip("there is no GPU");
  return 0;
}

#endif
