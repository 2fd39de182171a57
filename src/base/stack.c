/* SPDX-License-Identifier: BSD-3-Clause
 * A raised limit takes effect at once for the first thread, whose stack grows as it is used.  Other
 * threads would get stacks as large as the limit was before main(), so their default size is
 * raised, too.  OMP_STACKSIZE is also read before main(), so a bad value can only be refused. */
#include "base/stack.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/num.h"
#include "base/status.h"

/* Bytes.  With 64 kB the solver, the threads that write files, and MPI libraries crash.  A gigabyte
 * per thread is refused by some machines. */
#define MIN_STACK ((gidx)256 << 10)
#define MAX_STACK ((gidx)1 << 30)
/* the default of most machines, with which this program is tested */
#define USUAL_STACK ((rlim_t)8 << 20)

/* The bytes of "512", which are kB, "512K", "4M" or "1 G"; -1 for any other text, which OpenMP
 * ignores. */
static double bytes_of(const char *text)
{
  static const char units[] = "BKMG";
  char *end;
  double value = strtod(text, &end);
  if (end == text || value < 0) return -1;
  while (isspace((unsigned char)*end)) end++;
  const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : units + 1;
  if (!unit || (*end && end[1 + strspn(end + 1, " \t")])) return -1;
  for (; unit > units; unit--) value *= 1024;
  return value;
}

static int threads_allow(size_t bytes)
{
  pthread_attr_t attributes;
  if (pthread_getattr_default_np(&attributes)) return 0;
  int is_set =
      !pthread_attr_setstacksize(&attributes, bytes) && !pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  return is_set;
}

int stack_raise(void)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= (rlim_t)MIN_STACK) return OK;
  CHECK(limit.rlim_max >= (rlim_t)MIN_STACK, ERR_MEMORY,
        "the stack is limited to %lld kB, %lld are needed: start from a shell in which "
        "`ulimit -Hs` prints 8192 or more",
        (long long)(limit.rlim_max >> 10), (long long)(MIN_STACK >> 10));
  limit.rlim_cur = limit.rlim_max < USUAL_STACK ? limit.rlim_max : USUAL_STACK;
  CHECK(setrlimit(RLIMIT_STACK, &limit) == 0 && threads_allow((size_t)limit.rlim_cur), ERR_MEMORY,
        "cannot raise the limit of the stack to %lld kB: run `ulimit -s 8192` first",
        (long long)(limit.rlim_cur >> 10));
  return OK;
}

int stack_check(void)
{
  static const char *const names[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE"};
  for (int i = 0; i < LENGTH(names); i++) {
    const char *text = getenv(names[i]);
    double bytes = text ? bytes_of(text) : -1;
    CHECK(bytes < 0 || (bytes >= (double)MIN_STACK && bytes <= (double)MAX_STACK), ERR_USAGE,
          "%s is '%.40s', stacks of threads have 256K to 1G: unset it, or set 8M", names[i], text);
  }
  return OK;
}
