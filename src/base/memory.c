/* SPDX-License-Identifier: BSD-3-Clause
 * A singly linked list of aligned blocks, the link in front of each. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/status.h"

enum { ALIGN = 64 };

struct arena_piece {
  struct arena_piece *next;
};

int arena_take(struct arena *arena, void *pointer, gidx count, size_t size)
{
  CHECK(count >= 0 && (count == 0 || (size_t)count <= (SIZE_MAX / 2) / size), ERR_MEMORY,
        "an array of %lld items of %zu bytes is larger than memory", (long long)count, size);
  size_t bytes = ALIGN + ((size_t)count * size + ALIGN - 1) / ALIGN * ALIGN;
  struct arena_piece *piece = aligned_alloc(ALIGN, bytes);
  CHECK(piece, ERR_MEMORY, "cannot allocate %zu bytes beside the %zu held", bytes, arena->bytes);
  memset(piece, 0, bytes);
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
    free(arena->pieces);
    arena->pieces = next;
  }
  arena->bytes = 0;
}

int array_reserve(void *pointer, gidx *room, gidx count, size_t size)
{
  if (count <= *room) return OK;
  void *old;
  memcpy(&old, pointer, sizeof old);
  free(old);
  void *grown = malloc((size_t)count * size);
  *room = grown ? count : 0;
  memcpy(pointer, &grown, sizeof grown);
  CHECK(grown, ERR_MEMORY, "cannot allocate %lld items of %zu bytes", (long long)count, size);
  return OK;
}

gidx memory_peak(void)
{
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) ? 0 : (gidx)usage.ru_maxrss * 1024;
}
