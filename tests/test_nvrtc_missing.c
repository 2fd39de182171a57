/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: without NVRTC the compilation of a kernel fails with a message that tells what to install.
 * The linker redirects calls of dlopen() to this file. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/cuda/jit.h"
#include "tap.h"

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);

void *__wrap_dlopen(const char *name, int flags)
{
  int is_nvrtc = name && strstr(name, "libnvrtc");
  return __real_dlopen(is_nvrtc ? "libnvrtc-not-there.so" : name, flags);
}

int main(void)
{
  struct kernel_recipe recipe;
  struct kernel_image image = {0};
  kernel_recipe(KERNEL_ARROW, &(struct kernel_shape){.d = 1, .team = WARP, .top_k = 1}, &recipe);
  int status = kernel_compile(&recipe, 90, NULL, &image, NULL);
  const char *text = status_message();
  if (strstr(text, "built without NVRTC"))
    skip("this build compiles no kernels");
  else
    ok(status == ERR_DEVICE && strstr(text, "libnvrtc-not-there.so: cannot open") &&
           strstr(text, ": install nvidia-cuda-nvrtc") && strstr(text, "--device cpu needs none"),
       "without NVRTC the error names the missing package: %d %s", status, text);
  free(image.bytes);
  return done_testing();
}
