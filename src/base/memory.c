/* SPDX-License-Identifier: BSD-3-Clause
 * An arena is a singly linked list of aligned pieces; the link is in front of each piece. */
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/num.h"
#include "base/proc.h"
#include "base/status.h"
#include "base/team.h"

enum { ALIGN = 64, HUGE_PAGE = 2 << 20, LONG = 2 * HUGE_PAGE };
/* An array of at least SHARED bytes is touched in parts by the spare threads, because the system
 * makes pages when they are first written.  For one thread this takes longer than reading a file
 * into the pages. */
enum { SHARED = 64 << 20, SHARED_PART = 8 * HUGE_PAGE };

struct arena_piece {
  struct arena_piece *next;
  void *base; /* the pointer for free() */
};

/* Ask for large pages for a long array; the system may refuse. */
static void huge_memory_advise(void *at, size_t bytes)
{
#ifdef MADV_HUGEPAGE
  if (bytes >= LONG) madvise(at, bytes, MADV_HUGEPAGE);
#endif
}

struct zeroing {
  char *at;
  size_t bytes;
};

static void part_zero(void *self, gidx i)
{
  const struct zeroing *z = self;
  size_t begin = (size_t)i * SHARED_PART, left = z->bytes - begin;
  memset(z->at + begin, 0, left < SHARED_PART ? left : SHARED_PART);
}

void *memory_zeroed(size_t bytes)
{
  void *at;
  if (posix_memalign(&at, bytes < LONG ? ALIGN : HUGE_PAGE, bytes + !bytes)) return NULL;
  huge_memory_advise(at, bytes);
  if (bytes < SHARED) return memset(at, 0, bytes);
  struct zeroing zeroing = {at, bytes};
  spare_run(ceil_div((gidx)bytes, SHARED_PART), part_zero, &zeroing);
  return at;
}

/* A piece of `bytes` bytes of zeros.  The system zeroes a new page when a thread first touches it.
 * One thread alone would take seconds for the arrays of a large job. */
static struct arena_piece *piece_alloc(size_t bytes)
{
  size_t unit = bytes < LONG ? ALIGN : HUGE_PAGE;
  char *base = calloc(1, bytes + unit);
  if (!base) return NULL;
  struct arena_piece *piece =
      (struct arena_piece *)(void *)(base + (unit - (uintptr_t)base % unit) % unit);
  huge_memory_advise(piece, bytes);
  piece->base = base;
  return piece;
}

int arena_alloc(struct arena *arena, void *pointer, gidx count, size_t size)
{
  CHECK(count >= 0 && (count == 0 || (size_t)count <= (SIZE_MAX / 2) / size), ERR_MEMORY,
        "an array of %lld items of %zu bytes is larger than memory", (long long)count, size);
  size_t bytes = ALIGN + ((size_t)count * size + ALIGN - 1) / ALIGN * ALIGN;
  if (arena->is_dry) {
    arena->bytes += bytes;
    memset(pointer, 0, sizeof(void *));
    return OK;
  }
  struct arena_piece *piece = piece_alloc(bytes);
  CHECK(piece, ERR_MEMORY, "cannot allocate %zu bytes beside the %zu held", bytes, arena->bytes);
  piece->next = arena->pieces;
  arena->pieces = piece;
  arena->bytes += bytes;
  void *start = (char *)piece + ALIGN;
  memcpy(pointer, &start, sizeof start);
  return OK;
}

void arena_free(struct arena *arena)
{
  while (arena->pieces) {
    struct arena_piece *next = arena->pieces->next;
    free(arena->pieces->base);
    arena->pieces = next;
  }
  arena->bytes = 0;
}

int struct_alloc(void *pointer, size_t bytes)
{
  void *at = calloc(1, bytes);
  memcpy(pointer, &at, sizeof at);
  CHECK(at, ERR_MEMORY, "cannot allocate %zu bytes", bytes);
  return OK;
}

int array_reserve(void *pointer, gidx *capacity, gidx count, size_t size)
{
  if (count <= *capacity) return OK;
  void *old;
  memcpy(&old, pointer, sizeof old);
  free(old);
  void *grown = malloc((size_t)count * size);
  *capacity = grown ? count : 0;
  memcpy(pointer, &grown, sizeof grown);
  CHECK(grown, ERR_MEMORY, "cannot allocate %lld items of %zu bytes", (long long)count, size);
  return OK;
}

/* A number of a file in /proc, converted from kB to bytes; -1 if it is missing. */
static gidx proc_kilobytes(const char *path, const char *name)
{
  gidx value = proc_number(path, name);
  return value < 0 ? -1 : value * 1024;
}

/* From /proc, because getrusage() also counts the process that started this one. */
gidx memory_peak(void)
{
  gidx peak = proc_kilobytes("/proc/self/status", "VmHWM:");
  return peak < 0 ? 0 : peak;
}

gidx memory_program(void)
{
  enum { LEAST = 36 << 20, UNIT = 1 << 20 };
  static gidx bytes;
  if (!bytes) bytes = imax(round_up(memory_peak(), UNIT), LEAST);
  return bytes;
}

gidx memory_available(void)
{
  return memory_per_process(1);
}

gidx memory_per_process(int processes)
{
  struct rlimit limit;
  gidx left = proc_kilobytes("/proc/meminfo", "MemAvailable:");
  gidx held = proc_kilobytes("/proc/self/status", "VmSize:");
  if (left < 0) left = (gidx)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  left = imin(left, proc_memory("")) / processes;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && held >= 0) {
    left = imin((gidx)limit.rlim_cur - held, left);
  }
  return left;
}
