/* SPDX-License-Identifier: BSD-3-Clause
 * NVRTC is opened when the first kernel is compiled.  If the program were linked with it, every
 * command and every rank would relocate that library before main(), which takes longer than
 * all other work before main(). */
#include "device/cuda/nvrtc.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;
static char missing[512]; /* the reason why there is no library */

/* Open the library of the headers' version; the DT_RPATH of programs says where it is. */
static void library_open(void)
{
  char name[32];
  snprintf(name, sizeof name, "libnvrtc.so.%d", CUDART_VERSION / 1000);
  library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    snprintf(missing, sizeof missing,
             "%s: install nvidia-cuda-nvrtc%s, or name its folder in LD_LIBRARY_PATH; --device cpu "
             "needs none",
             dlerror(), CUDART_VERSION < 13000 ? "-cu12" : "");
}

static void *function(const char *name)
{
  pthread_once(&once, library_open);
  return library ? dlsym(library, name) : NULL;
}

/* Define a function under its own name, so that callers need not know that it is not linked. */
#define FORWARD(name, parameters, arguments)                                                       \
  HIDDEN nvrtcResult name parameters                                                               \
  {                                                                                                \
    nvrtcResult(*call) parameters;                                                                 \
    void *symbol = function(#name);                                                                \
    memcpy(&call, &symbol, sizeof call);                                                           \
    return call ? call arguments : NVRTC_ERROR_INTERNAL_ERROR;                                     \
  }

FORWARD(nvrtcVersion, (int *major, int *minor), (major, minor))
FORWARD(nvrtcCreateProgram,
        (nvrtcProgram * program, const char *text, const char *name, int count,
         const char *const *headers, const char *const *names),
        (program, text, name, count, headers, names))
FORWARD(nvrtcDestroyProgram, (nvrtcProgram * program), (program))
FORWARD(nvrtcCompileProgram, (nvrtcProgram program, int count, const char *const *options),
        (program, count, options))
FORWARD(nvrtcGetProgramLogSize, (nvrtcProgram program, size_t *size), (program, size))
FORWARD(nvrtcGetProgramLog, (nvrtcProgram program, char *log), (program, log))
FORWARD(nvrtcGetCUBINSize, (nvrtcProgram program, size_t *size), (program, size))
FORWARD(nvrtcGetCUBIN, (nvrtcProgram program, char *image), (program, image))

HIDDEN const char *nvrtcGetErrorString(nvrtcResult result)
{
  const char *(*call)(nvrtcResult);
  void *symbol = function("nvrtcGetErrorString");
  memcpy(&call, &symbol, sizeof call);
  if (call) return call(result);
  return library ? "the library lacks a function" : missing;
}
