/* SPDX-License-Identifier: BSD-3-Clause
 * dlopen() is called once, and dlsym() at each call of a function, which takes less time than the
 * function. */
#include "device/cuda/runtime_late.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *runtime;
static char missing[512]; /* the reason why there is no runtime */

/* Open the CUDA runtime of the version of the headers.  DT_RPATH names the folders of NVIDIA's
 * wheels. */
static void library_open(void)
{
  char name[32];
  snprintf(name, sizeof name, "libcudart.so.%d", CUDART_VERSION / 1000);
  runtime = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!runtime)
    snprintf(missing, sizeof missing,
             "%s: pip install 'sagitta-dictionaries[cuda]', or name its folder in LD_LIBRARY_PATH",
             dlerror());
}

static void *function(const char *name)
{
  pthread_once(&once, library_open);
  return runtime ? dlsym(runtime, name) : NULL;
}

/* Define a function under its own name, so that callers need not know that it is not linked. */
#define FORWARD(name, parameters, arguments)                                                       \
  HIDDEN cudaError_t name parameters                                                               \
  {                                                                                                \
    cudaError_t(*call) parameters;                                                                 \
    void *found = function(#name);                                                                 \
    memcpy(&call, &found, sizeof call);                                                            \
    return call ? call arguments : cudaErrorInitializationError;                                   \
  }

FORWARD(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attr, int device),
        (value, attr, device))
FORWARD(cudaDeviceGetStreamPriorityRange, (int *leastPriority, int *greatestPriority),
        (leastPriority, greatestPriority))
FORWARD(cudaEventCreate, (cudaEvent_t * event), (event))
FORWARD(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags), (event, flags))
FORWARD(cudaEventDestroy, (cudaEvent_t event), (event))
FORWARD(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end), (ms, start, end))
FORWARD(cudaEventQuery, (cudaEvent_t event), (event))
FORWARD(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
FORWARD(cudaEventSynchronize, (cudaEvent_t event), (event))
FORWARD(cudaFree, (void *devPtr), (devPtr))
FORWARD(cudaFreeHost, (void *ptr), (ptr))
FORWARD(cudaFuncSetAttribute, (const void *func, enum cudaFuncAttribute attr, int value),
        (func, attr, value))
FORWARD(cudaGetDevice, (int *device), (device))
FORWARD(cudaGetDeviceCount, (int *count), (count))
FORWARD(cudaGetDeviceProperties, (struct cudaDeviceProp * prop, int device), (prop, device))
FORWARD(cudaGetDriverEntryPointByVersion,
        (const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags,
         enum cudaDriverEntryPointQueryResult *driverStatus),
        (symbol, funcPtr, cudaVersion, flags, driverStatus))
FORWARD(cudaGetLastError, (void), ())
FORWARD(cudaHostAlloc, (void **pHost, size_t size, unsigned int flags), (pHost, size, flags))
FORWARD(cudaHostGetDevicePointer, (void **pDevice, void *pHost, unsigned int flags),
        (pDevice, pHost, flags))
FORWARD(cudaHostRegister, (void *ptr, size_t size, unsigned int flags), (ptr, size, flags))
FORWARD(cudaHostUnregister, (void *ptr), (ptr))
FORWARD(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *func, void **args),
        (config, func, args))
FORWARD(cudaLibraryGetKernel, (cudaKernel_t * pKernel, cudaLibrary_t library, const char *name),
        (pKernel, library, name))
FORWARD(cudaLibraryLoadData,
        (cudaLibrary_t * library, const void *code, enum cudaJitOption *jitOptions,
         void **jitOptionsValues, unsigned int numJitOptions,
         enum cudaLibraryOption *libraryOptions, void **libraryOptionValues,
         unsigned int numLibraryOptions),
        (library, code, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
         libraryOptionValues, numLibraryOptions))
FORWARD(cudaLibraryUnload, (cudaLibrary_t library), (library))
FORWARD(cudaMalloc, (void **devPtr, size_t size), (devPtr, size))
FORWARD(cudaMemGetInfo, (size_t * free, size_t *total), (free, total))
FORWARD(cudaMemcpy2DAsync,
        (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
         enum cudaMemcpyKind kind, cudaStream_t stream),
        (dst, dpitch, src, spitch, width, height, kind, stream))
FORWARD(cudaMemcpyAsync,
        (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream),
        (dst, src, count, kind, stream))
FORWARD(cudaMemset2DAsync,
        (void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
        (devPtr, pitch, value, width, height, stream))
FORWARD(cudaMemsetAsync, (void *devPtr, int value, size_t count, cudaStream_t stream),
        (devPtr, value, count, stream))
FORWARD(cudaOccupancyMaxActiveClusters,
        (int *numClusters, const void *func, const cudaLaunchConfig_t *launchConfig),
        (numClusters, func, launchConfig))
FORWARD(cudaRuntimeGetVersion, (int *runtimeVersion), (runtimeVersion))
FORWARD(cudaSetDevice, (int device), (device))
FORWARD(cudaStreamCreateWithFlags, (cudaStream_t * pStream, unsigned int flags), (pStream, flags))
FORWARD(cudaStreamCreateWithPriority, (cudaStream_t * pStream, unsigned int flags, int priority),
        (pStream, flags, priority))
FORWARD(cudaStreamDestroy, (cudaStream_t stream), (stream))
FORWARD(cudaStreamSynchronize, (cudaStream_t stream), (stream))
FORWARD(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
        (stream, event, flags))

HIDDEN const char *cudaGetErrorString(cudaError_t error)
{
  const char *(*call)(cudaError_t);
  void *symbol = function("cudaGetErrorString");
  memcpy(&call, &symbol, sizeof call);
  if (call) return call(error);
  return runtime ? "the library lacks a function" : missing;
}
