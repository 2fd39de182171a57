/* SPDX-License-Identifier: BSD-3-Clause
 * The CUDA device of a build without CUDA: it cannot be opened, and says what to do. */
#include <stdio.h>

#include "base/status.h"
#include "device/backend.h"
#include "device/cuda/jit.h"
#include "device/cuda/plan.h"

static void none_library(char *text, size_t capacity)
{
  snprintf(text, capacity, "none");
}

static int none_open(struct device *dev, const struct device_options *options)
{
  (void)dev, (void)options;
  FAIL(ERR_DEVICE,
       "this program was built without CUDA: configure it again with --with-cuda=DIR, where DIR is "
       "a CUDA toolkit");
}

/* A dry run asks for these bytes even in this build. */
static gidx none_codes_state_bytes(idx vectors, real rho, int nonnegative)
{
  return plan_state_bytes(vectors, rho, nonnegative);
}

static gidx none_normal_bytes(idx n, idx s, idx k, idx columns)
{
  (void)columns;
  return normal_work_bytes(normal_rows(n, s), s, k);
}

const struct backend backend_cuda = {
    .kind = "cuda",
    .library = none_library,
    .open = none_open,
    .forms_bytes = plan_forms_bytes,
    .codes_state_bytes = none_codes_state_bytes,
    .normal_bytes = none_normal_bytes,
    .arrow_bytes = plan_arrow_bytes,
    .dense_bytes = plan_dense_bytes,
    .joint_bytes = plan_joint_bytes,
};

int kernel_compile(const struct kernel_recipe *recipe, int architecture, const char *folder,
                   struct kernel_image *image, char **log)
{
  (void)recipe, (void)architecture, (void)folder, (void)image, (void)log;
  FAIL(ERR_DEVICE, "this program was built without NVRTC: configure it again with --with-cuda=DIR");
}

int kernel_image_get(const struct kernel_recipe *recipe, int architecture, const char *folder,
                     struct kernel_image *image)
{
  return kernel_compile(recipe, architecture, folder, image, NULL);
}
