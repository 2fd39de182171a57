/* SPDX-License-Identifier: BSD-3-Clause
 * A limit that is raised holds at once, since the first thread's stack grows as it is used;
 * OMP_STACKSIZE was read before main(), so it can be refused only. */
#include "base/stack.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/num.h"
#include "base/status.h"

/* Bytes.  Commands that solve crash with 64 kB; a gigabyte for each thread is what some machines
 * refuse. */
#define MIN_STACK ((gidx)256 << 10)
#define MAX_STACK ((gidx)1 << 30)

/* The bytes of "512", which are kB, "512K", "4M" or "1 G"; -1 where it is no such text, which
 * OpenMP ignores. */
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

int stack_check(void)
{
  static const char *const names[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE"};
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < (rlim_t)MIN_STACK) {
    limit.rlim_cur = limit.rlim_max < (rlim_t)MIN_STACK ? limit.rlim_max : (rlim_t)MIN_STACK;
    CHECK(limit.rlim_cur == (rlim_t)MIN_STACK && setrlimit(RLIMIT_STACK, &limit) == 0, ERR_MEMORY,
          "the stack is limited to %lld kB, %lld are needed: `ulimit -s 8192`",
          (long long)(limit.rlim_cur >> 10), (long long)(MIN_STACK >> 10));
  }
  for (int i = 0; i < LENGTH(names); i++) {
    const char *text = getenv(names[i]);
    double bytes = text ? bytes_of(text) : -1;
    CHECK(bytes < 0 || (bytes >= (double)MIN_STACK && bytes <= (double)MAX_STACK), ERR_USAGE,
          "%s is '%.40s', stacks of threads have 256K to 1G: unset it, or set 8M", names[i], text);
  }
  return OK;
}
