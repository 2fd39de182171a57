/* SPDX-License-Identifier: BSD-3-Clause
 * The dictionary on a GPU: packed once and resident, or, where it does not fit, window after
 * window.
 *
 * A slot is the place of an atom in the order in which they were put. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "device/cuda.h"
#include "plan.h"

enum { STAGING_BYTES = 64 << 20, STAGING_ATOMS = 1 << 20 }; /* a grid has 65,535 x 32 at most */

static gidx atom_floats(const struct cuda_state *s)
{
  return (gidx)s->options.d * s->options.p;
}

static idx whole_tiles(const struct cuda_state *s, idx slots)
{
  return (slots + s->tile - 1) / s->tile * s->tile;
}

static int window_take(struct cuda_state *s)
{
  gidx slots = whole_tiles(s, s->window);
  gidx bytes = slots * s->options.d * packed_columns(s->options.p) * (gidx)sizeof(float);
  TRY(cuda_reserve(s, &s->packed, bytes));
  TRY(cuda_reserve(s, &s->atom_of, slots * (gidx)sizeof(idx)));
  TRY_CU(cudaMemsetAsync(s->packed.at, 0, (size_t)bytes, s->stream));
  s->window_first = s->window_filled = 0;
  return cuda_filter_take(s, slots);
}

/* The failure that led here, and what it means. */
static int window_fail(const struct cuda_state *s)
{
  char why[512];
  snprintf(why, sizeof why, "%s", status_message());
  status_clear();
  FAIL(ERR_MEMORY, "%s; the smallest tile, %d atoms of %d x %d, does not fit beside the rest", why,
       s->tile, s->options.d, s->options.p);
}

int cuda_window_halve(struct device *dev)
{
  struct cuda_state *s = dev->state;
  int status = cuda_filter_drop(s) ? window_take(s) : ERR_MEMORY;
  while (status == ERR_MEMORY) {
    idx half = whole_tiles(s, s->window) / 2;
    if (half < s->tile) return window_fail(s);
    s->window = whole_tiles(s, half);
    log_rank("memory of GPU %d is short: %d atoms at a time", s->number, s->window);
    cuda_release(&s->packed);
    cuda_release(&s->staging);
    cuda_filter_release(s);
    status_clear();
    status = window_take(s);
  }
  return status;
}

/* Pack count atoms into the window from slot `to` of it on, at most a staging area at a time. */
static int atoms_pack(struct device *dev, const float *atoms, idx count, idx first, idx to)
{
  struct cuda_state *s = dev->state;
  gidx floats = atom_floats(s), bytes = floats * (gidx)sizeof(float);
  idx step = STAGING_BYTES / bytes > 0 ? (idx)(STAGING_BYTES / bytes) : 1,
      columns = packed_columns(s->options.p);
  if (step > STAGING_ATOMS) step = STAGING_ATOMS;
  if (step > count) step = count;
  TRY(cuda_reserve(s, &s->staging, step * bytes));
  for (idx done = 0; done < count; done += step) {
    idx n = count - done < step ? count - done : step;
    TRY_CU(cudaMemcpyAsync(s->staging.at, atoms + done * floats, (size_t)(n * bytes),
                           cudaMemcpyHostToDevice, s->stream));
    struct pack_args args = {.in = s->staging.at,
                             .out = s->packed.at,
                             .count = n,
                             .padded = whole_tiles(s, to + done + n) - (to + done),
                             .first = to + done,
                             .d = s->options.d,
                             .p = s->options.p,
                             .columns = columns,
                             .width = s->tile};
    struct cuda_launch launch = {.name = KERNEL_PACK, .arguments = &args};
    launch.grid = (dim3){(unsigned)(columns + WARP - 1) / WARP,
                         (unsigned)(args.padded + WARP - 1) / WARP, (unsigned)s->options.d};
    launch.block = (dim3){WARP, 8, 1};
    TRY(cuda_launch(dev, &launch));
    TRY(cuda_filter_put(s, s->staging.at, n, to + done));
    cuda_count(&dev->counts.put, n * bytes);
  }
  struct arena arena = {0};
  idx *numbers = NULL;
  TRY(arena_take(&arena, &numbers, count, sizeof *numbers));
  for (idx i = 0; i < count; i++) numbers[i] = first + i;
  cudaError_t error =
      cudaMemcpyAsync((idx *)s->atom_of.at + to, numbers, (size_t)count * sizeof *numbers,
                      cudaMemcpyHostToDevice, s->stream);
  int status = error ? cuda_fail(error, __FILE__, __LINE__) : cuda_finish(s);
  arena_free(&arena);
  return status;
}

/* Bring what pieces have of the window and is not there yet. */
static int window_fill(struct device *dev)
{
  struct cuda_state *s = dev->state;
  for (int i = 0; i < s->n_pieces; i++) {
    const struct cuda_piece *piece = &s->pieces[i];
    idx low = s->window_first + s->window_filled, high = s->window_first + s->window;
    idx end = piece->slot + piece->count < high ? piece->slot + piece->count : high;
    if (end <= low) continue;
    idx skip = low - piece->slot;
    TRY(atoms_pack(dev, piece->atoms + skip * atom_floats(s), end - low, piece->first + skip,
                   low - s->window_first));
    s->window_filled += end - low;
  }
  return OK;
}

int cuda_window(struct device *dev, idx first, idx tile, idx *count)
{
  struct cuda_state *s = dev->state;
  idx left = dev->atoms - first;
  if (tile != s->tile) { /* packed for lists of another length */
    s->tile = tile;
    TRY(window_take(s));
  }
  if (first != s->window_first) {
    s->window_first = first;
    s->window_filled = 0;
    TRY_CU(cudaMemsetAsync(s->packed.at, 0, (size_t)s->packed.bytes, s->stream));
  }
  TRY(window_fill(dev));
  *count = left < s->window ? left : s->window;
  return OK;
}

static int piece_add(struct cuda_state *s, struct cuda_piece piece)
{
  if (s->n_pieces == s->pieces_room) {
    int room = 2 * s->pieces_room + 16;
    struct cuda_piece *more = realloc(s->pieces, (size_t)room * sizeof *more);
    CHECK(more, ERR_MEMORY, "cannot allocate %d tiles", room);
    s->pieces = more;
    s->pieces_room = room;
  }
  if (s->n_pieces > 0) {
    const struct cuda_piece *before = &s->pieces[s->n_pieces - 1];
    if (piece.first < before->first + before->count) s->ascending = 0;
  }
  s->pieces[s->n_pieces++] = piece;
  return OK;
}

int cuda_atoms(struct device *dev, struct buffer *view)
{
  *view = cuda_filter_atoms(dev);
  return OK;
}

int cuda_put_tile(struct device *dev, const float *atoms, idx count, idx first)
{
  struct cuda_state *s = dev->state;
  TRY(piece_add(s, (struct cuda_piece){atoms, count, first, dev->atoms}));
  if (s->window == 0) {
    s->window = s->options.atoms_most;
    s->tile = route_tile_atoms(route_form_of(s->bulk, s->options.d, 1).atoms_thread);
    int status = window_take(s);
    if (status == ERR_MEMORY) status = cuda_window_halve(dev);
    TRY(status);
  }
  int status = s->window_first == 0 ? window_fill(dev) : OK;
  while (status == ERR_MEMORY) { /* of the staging area */
    TRY(cuda_window_halve(dev));
    status = window_fill(dev);
  }
  return status;
}
