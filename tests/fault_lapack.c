/* SPDX-License-Identifier: BSD-3-Clause
 * A LAPACK that fails.  It takes the place of libopenblas.so.0 and forwards calls to the library
 * LAPACK_REAL.  The routine named by LAPACK_FAILS does nothing, and its info is LAPACK_INFO. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Arguments are pointers and lengths.  All are forwarded; a routine reads only those it has. */
#define PARAMETERS                                                                                 \
  long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l,  \
      long m, long n, long o, long p, long q, long r, long s, long t, long u, long v, long w
#define ARGUMENTS a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w
typedef void routine(PARAMETERS);

static routine *real_find(const char *name)
{
  void *symbol = dlsym(dlopen(getenv("LAPACK_REAL"), RTLD_NOW | RTLD_LOCAL), name);
  routine *found;
  memcpy(&found, &symbol, sizeof found);
  return found;
}

/* info: the argument that points to the routine's info. */
#define ROUTINE(name, info)                                                                        \
  void name(PARAMETERS);                                                                           \
  void name(PARAMETERS)                                                                            \
  {                                                                                                \
    if (strcmp(getenv("LAPACK_FAILS"), #name) == 0)                                                \
      *(int *)info = atoi(getenv("LAPACK_INFO"));                                                  \
    else                                                                                           \
      real_find(#name)(ARGUMENTS);                                                                 \
  }
ROUTINE(dsytrf_, h)
ROUTINE(dsytrd_, j)
ROUTINE(dsterf_, d)
ROUTINE(dstemr_, u)
ROUTINE(dormtr_, m)
