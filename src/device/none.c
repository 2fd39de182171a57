/* SPDX-License-Identifier: BSD-3-Clause
 * The CUDA device of a build without CUDA: it cannot be opened, and says what to do. */
#include "base/status.h"
#include "device/backend.h"
#include "device/cuda_kernels.h"

static int none_open(struct device *dev, const struct device_options *options)
{
  (void)dev, (void)options;
  FAIL(ERR_DEVICE,
       "this program was built without CUDA: configure it again with --with-cuda=DIR, where DIR is "
       "a CUDA toolkit");
}

const struct backend backend_cuda = {.kind = "cuda", .open = none_open};

int kernel_compile(const struct kernel_recipe *recipe, int architecture, const char *folder,
                   struct kernel_image *image, char **log)
{
  (void)recipe, (void)architecture, (void)folder, (void)image, (void)log;
  FAIL(ERR_DEVICE, "this program was built without NVRTC");
}

int kernel_load(const struct kernel_recipe *recipe, int architecture, const char *folder,
                struct kernel_image *image)
{
  return kernel_compile(recipe, architecture, folder, image, NULL);
}
