/* SPDX-License-Identifier: BSD-3-Clause
 * Bytes and seconds of all threads are added.  So a rate is that of one thread, which is at most
 * the rate of all. */
#include "base/pace.h"

#include <math.h>
#include <time.h>

#include "base/log.h"
#include "base/num.h"

/* Bytes per second.  GUESSED: the rate if too little was measured.  FASTEST: an upper limit, since
 * bytes that are verified are also hashed. */
static const double GUESSED = 20e6, FASTEST = 200e6;
static const double MARGIN = 2; /* seconds, for writing records, renaming files and ending MPI */

static uint64_t moved[PACE_WAYS], spent[PACE_WAYS]; /* bytes, nanoseconds */
static double last, longest;                        /* seconds */
static gidx more, most = INT64_MAX;

double pace_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void pace_moved(enum pace_way way, gidx bytes, double begun)
{
  double seconds = pace_now() - begun;
  __atomic_fetch_add(&moved[way], (uint64_t)imax(bytes, 0), __ATOMIC_RELAXED);
  __atomic_fetch_add(&spent[way], (uint64_t)(1e9 * seconds), __ATOMIC_RELAXED);
}

void pace_step(void)
{
  double now = pace_now();
  if (last > 0 && now - last > longest) longest = now - last;
  last = now;
}

void pace_ending_set(gidx more_bytes, gidx most_bytes)
{
  more = more_bytes;
  most = most_bytes;
}

/* Bytes per second.  *is_known <- 1 if the rate was measured, with at least 1 MiB. */
static double rate(enum pace_way way, int *is_known)
{
  uint64_t bytes = __atomic_load_n(&moved[way], __ATOMIC_RELAXED);
  uint64_t took = __atomic_load_n(&spent[way], __ATOMIC_RELAXED);
  *is_known = bytes >= 1 << 20;
  if (!*is_known) return GUESSED;
  double found = 1e9 * (double)bytes / (double)(took ? took : 1);
  return found < FASTEST ? found : FASTEST;
}

void pace_ending_log(void)
{
  int reads, writes;
  gidx written = (gidx)__atomic_load_n(&moved[PACE_WRITE], __ATOMIC_RELAXED);
  gidx bytes = imin(written, most) + more;
  double read = rate(PACE_READ, &reads), write = rate(PACE_WRITE, &writes);
  double step = longest > 0 ? longest : log_seconds();
  double seconds = 2 * step + (double)bytes / write + (double)bytes / read + MARGIN;
  log_info(
      "stops   within %.0f s: a step takes up to %.2f s, and %.1f MB are written at %.0f MB/s%s "
      "and read again at %.0f%s",
      ceil(seconds), step, 1e-6 * (double)bytes, 1e-6 * write, writes ? "" : ", which is a guess,",
      1e-6 * read, reads ? "" : ", a guess");
}
