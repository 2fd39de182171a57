/* SPDX-License-Identifier: BSD-3-Clause
 * A library to preload: one call of the CUDA runtime fails.
 *
 * With FAULT_CUDA=memory:3 the third cudaMalloc fails, with FAULT_CUDA=call:17 the seventeenth of
 * the calls below that use FORWARD.  With FAULT_RANK=R it fails only on rank R of mpirun.
 * CUDA_MEMORY=BYTES limits what cudaMalloc gives in all, and cudaMemGetInfo reports this limit.
 * With CUDA_MEMORY_FILE=PATH all processes that name the file share the limit. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MEMORY = 2, ILLEGAL_ADDRESS = 700 }; /* of cudaError_t */

struct grid {
  unsigned x, y, z;
};

/* Is this the rank whose calls fail? */
static int is_meant(void)
{
  const char *of = getenv("FAULT_RANK"), *rank = getenv("OMPI_COMM_WORLD_RANK");
  return !of || (rank && !strcmp(of, rank));
}

/* Count a call of a kind.  1: it is the one that fails. */
static int fails(const char *kind)
{
  static long left[2];
  static int asked;
  const char *text = getenv("FAULT_CUDA");
  int memory = !strcmp(kind, "memory");
  if (!asked && text && strchr(text, ':') && is_meant())
    left[strncmp(text, "memory", 6) == 0] = atol(strchr(text, ':') + 1);
  asked = 1;
  return left[memory] > 0 && --left[memory] == 0;
}

static void *next(const char *name)
{
  return dlsym(RTLD_NEXT, name);
}

/* The present allocations. */
enum { MAX_HELD = 4096 };
static struct {
  void *at;
  size_t bytes;
} held[MAX_HELD];
static int n_held;

/* The number of allocated bytes, of this process or of all that share CUDA_MEMORY_FILE. */
static size_t *used(void)
{
  static size_t own, *shared;
  const char *path = getenv("CUDA_MEMORY_FILE");
  if (!path) return &own;
  if (!shared) {
    int file = open(path, O_RDWR | O_CREAT, 0666);
    if (file < 0 || ftruncate(file, sizeof *shared)) abort();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) abort();
    close(file);
  }
  return shared;
}

static void held_add(void *at, size_t bytes)
{
  if (n_held == MAX_HELD) abort();
  held[n_held].at = at;
  held[n_held++].bytes = bytes;
}

static void held_remove(void *at)
{
  for (int i = 0; i < n_held; i++)
    if (held[i].at == at) {
      __atomic_fetch_sub(used(), held[i].bytes, __ATOMIC_SEQ_CST);
      held[i] = held[--n_held];
      return;
    }
}

#define FORWARD(name, types, ...)                                                                  \
  int(*forward) types;                                                                             \
  void *symbol = next(name);                                                                       \
  if (fails("call")) return ILLEGAL_ADDRESS;                                                       \
  memcpy(&forward, &symbol, sizeof symbol);                                                        \
  return forward(__VA_ARGS__)

int cudaMalloc(void **at, size_t bytes)
{
  const char *max = getenv("CUDA_MEMORY");
  int (*forward)(void **, size_t);
  void *symbol = next("cudaMalloc");
  memcpy(&forward, &symbol, sizeof symbol);
  if (fails("memory")) return MEMORY;
  size_t all = __atomic_add_fetch(used(), bytes, __ATOMIC_SEQ_CST);
  int status = max && all > (size_t)atol(max) ? MEMORY : forward(at, bytes);
  if (status)
    __atomic_fetch_sub(used(), bytes, __ATOMIC_SEQ_CST);
  else
    held_add(*at, bytes);
  return status;
}

int cudaFree(void *at)
{
  int (*forward)(void *);
  void *symbol = next("cudaFree");
  memcpy(&forward, &symbol, sizeof symbol);
  held_remove(at);
  return forward(at);
}

int cudaMemGetInfo(size_t *left, size_t *all)
{
  const char *max = getenv("CUDA_MEMORY");
  int (*forward)(size_t *, size_t *);
  void *symbol = next("cudaMemGetInfo");
  memcpy(&forward, &symbol, sizeof symbol);
  int status = forward(left, all);
  if (max) *all = (size_t)atol(max);
  if (max) *left = *all > *used() ? *all - *used() : 0;
  return status;
}

int cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
  FORWARD("cudaHostAlloc", (void **, size_t, unsigned), at, bytes, flags);
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
  FORWARD("cudaMemcpyAsync", (void *, const void *, size_t, int, void *), to, from, bytes, kind,
          stream);
}

int cudaMemsetAsync(void *to, int value, size_t bytes, void *stream)
{
  FORWARD("cudaMemsetAsync", (void *, int, size_t, void *), to, value, bytes, stream);
}

int cudaStreamSynchronize(void *stream)
{
  FORWARD("cudaStreamSynchronize", (void *), stream);
}

int cudaLaunchKernel(const void *kernel, struct grid grid, struct grid block, void **arguments,
                     size_t shared, void *stream)
{
  FORWARD("cudaLaunchKernel", (const void *, struct grid, struct grid, void **, size_t, void *),
          kernel, grid, block, arguments, shared, stream);
}

int cudaLaunchKernelExC(const void *how, const void *kernel, void **arguments)
{
  FORWARD("cudaLaunchKernelExC", (const void *, const void *, void **), how, kernel, arguments);
}

int cudaLibraryLoadData(void **library, const void *image, void *a, void *b, unsigned c, void *d,
                        void *e, unsigned f)
{
  FORWARD("cudaLibraryLoadData",
          (void **, const void *, void *, void *, unsigned, void *, void *, unsigned), library,
          image, a, b, c, d, e, f);
}

int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                      size_t height, int kind, void *stream)
{
  FORWARD("cudaMemcpy2DAsync", (void *, size_t, const void *, size_t, size_t, size_t, int, void *),
          to, to_pitch, from, from_pitch, width, height, kind, stream);
}

int cudaEventRecord(void *event, void *stream)
{
  FORWARD("cudaEventRecord", (void *, void *), event, stream);
}

int cudaEventElapsedTime(float *ms, void *begin, void *end)
{
  FORWARD("cudaEventElapsedTime", (float *, void *, void *), ms, begin, end);
}
