/* SPDX-License-Identifier: BSD-3-Clause
 * The CUDA device of a build without CUDA: it cannot be opened, and says what to do. */
#include "base/status.h"
#include "device/backend.h"

static int none_open(struct device *dev, const struct device_options *options)
{
  (void)dev, (void)options;
  FAIL(ERR_DEVICE,
       "this program was built without CUDA: configure it again with --with-cuda=DIR, where DIR is "
       "a CUDA toolkit");
}

const struct backend backend_cuda = {.kind = "cuda", .open = none_open};
