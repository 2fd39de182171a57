/* SPDX-License-Identifier: BSD-3-Clause
 * Pieces of the caller's memory are copied to a staging area on the device, packed into tiles
 * there, and, for the filter, kept as f32 frames. */
#include "device/cuda/dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"
#include "device/cuda/upload.h"

static gidx atom_floats(const struct cuda_state *s)
{
  return (gidx)s->options.d * s->options.p;
}

/* Allocate an empty window of zeros. */
static int window_alloc(struct cuda_state *s, idx tile)
{
  gidx vectors = round_up(s->plan.window, tile) * s->options.d, real_bytes = sizeof(float);
  gidx packed = vectors * packed_columns(s->options.p) * real_bytes;
  gidx frames = vectors * cuda_frames_pitch(s->options.p) * real_bytes;
  s->tile = s->window_first = s->window_filled = 0;
  TRY(cuda_reserve(s, &s->work.packed, packed));
  TRY(cuda_reserve(s, &s->work.atom_of, vectors / s->options.d * (gidx)sizeof(idx)));
  TRY_CU(cudaMemsetAsync(s->work.packed.at, 0, (size_t)packed, s->stream));
  if (s->screen.is_on) {
    s->screen.filled = 0;
    TRY(cuda_reserve(s, &s->work.frames, frames));
    TRY_CU(cudaMemsetAsync(s->work.frames.at, 0, (size_t)frames, s->stream));
  }
  s->tile = tile;
  return OK;
}

/* Frames of the window from its slot `to` on <- count frames on the device. */
static int frames_put(struct cuda_state *s, const float *frames, idx count, idx to)
{
  size_t width = (size_t)s->options.p * sizeof(float), d = (size_t)s->options.d;
  size_t pitch = (size_t)cuda_frames_pitch(s->options.p) * sizeof(float);
  if (!s->screen.is_on) return OK;
  s->screen.filled = 0;
  TRY_CU(cudaMemcpy2DAsync((char *)s->work.frames.at + (size_t)to * d * pitch, pitch, frames, width,
                           width, (size_t)count * d, cudaMemcpyDeviceToDevice, s->stream));
  return OK;
}

/* Slots of the window from its slot `to` on <- count atoms in the staging area. */
static int staged_pack(struct device *dev, idx count, idx to)
{
  struct cuda_state *s = dev->state;
  struct pack_args args = {.in = s->work.staging.at,
                           .out = s->work.packed.at,
                           .count = count,
                           .padded = (idx)round_up(to + count, s->tile) - to,
                           .first = to,
                           .d = s->options.d,
                           .p = s->options.p,
                           .columns = packed_columns(s->options.p),
                           .width = s->tile};
  struct cuda_launch launch = {.name = KERNEL_PACK, .arguments = &args};
  launch.grid = (dim3){(unsigned)ceil_div(args.columns, WARP),
                       (unsigned)ceil_div(args.padded, WARP), (unsigned)s->options.d};
  launch.block = (dim3){WARP, 8, 1};
  TRY(cuda_launch(dev, &launch));
  return frames_put(s, s->work.staging.at, count, to);
}

/* Global numbers of count slots from `to` on <- first, first + 1 and so on. */
static int numbers_put(struct cuda_state *s, idx count, idx first, idx to)
{
  struct arena arena = {0};
  idx *numbers = NULL;
  TRY(arena_alloc(&arena, &numbers, count, sizeof *numbers));
  for (idx i = 0; i < count; i++) numbers[i] = first + i;
  int status =
      cuda_upload(s, (idx *)s->work.atom_of.at + to, numbers, count * (gidx)sizeof *numbers);
  arena_free(&arena);
  return status;
}

/* Pack count atoms into the window from its slot `to` on, one staging area at a time. */
static int atoms_pack(struct device *dev, const float *atoms, idx count, idx first, idx to)
{
  struct cuda_state *s = dev->state;
  gidx floats = atom_floats(s), bytes = floats * (gidx)sizeof(float);
  idx step = (idx)imin(s->plan.staging / bytes, count);
  TRY(cuda_reserve(s, &s->work.staging, step * bytes));
  for (idx done = 0; done < count; done += step) {
    idx n = (idx)imin(count - done, step);
    TRY(cuda_upload(s, s->work.staging.at, atoms + done * floats, n * bytes));
    TRY(staged_pack(dev, n, to + done));
    cuda_count(&dev->counts.put, n * bytes);
  }
  return numbers_put(s, count, first, to);
}

/* Copy the atoms of the window that are not on the device yet, as far as pieces have them. */
static int window_fill(struct device *dev)
{
  struct cuda_state *s = dev->state;
  for (int i = 0; i < s->n_pieces; i++) {
    const struct cuda_piece *piece = &s->pieces[i];
    idx low = s->window_first + s->window_filled;
    gidx high = (gidx)s->window_first + s->plan.window;
    idx end = (idx)imin(piece->slot + piece->count, high);
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
  if (tile != s->tile) TRY(window_alloc(s, tile)); /* packed for another list length, or freed */
  if (first != s->window_first) {
    s->window_first = first;
    s->window_filled = 0;
    TRY_CU(cudaMemsetAsync(s->work.packed.at, 0, (size_t)s->work.packed.bytes, s->stream));
  }
  TRY(window_fill(dev));
  *count = (idx)imin(dev->atoms - first, s->plan.window);
  return OK;
}

static int piece_add(struct cuda_state *s, struct cuda_piece piece)
{
  if (s->n_pieces == s->pieces_capacity) {
    int capacity = 2 * s->pieces_capacity + 16;
    struct cuda_piece *more = realloc(s->pieces, (size_t)capacity * sizeof *more);
    CHECK(more, ERR_MEMORY, "cannot allocate %d tiles", capacity);
    s->pieces = more;
    s->pieces_capacity = capacity;
  }
  if (s->n_pieces > 0) {
    const struct cuda_piece *before = &s->pieces[s->n_pieces - 1];
    if (piece.first < before->first + before->count) s->ascending = 0;
  }
  s->pieces[s->n_pieces++] = piece;
  return OK;
}

/* Fill the first window with the pieces that are there. */
static int first_window_fill(struct device *dev)
{
  struct cuda_state *s = dev->state;
  if (s->tile == 0) TRY(window_alloc(s, s->plan.tile));
  return s->window_first == 0 ? window_fill(dev) : OK;
}

int cuda_put_tile(struct device *dev, const float *atoms, idx count, idx first)
{
  struct cuda_state *s = dev->state;
  int status;
  TRY(piece_add(s, (struct cuda_piece){atoms, count, first, dev->atoms}));
  if (s->plan.window == 0) TRY(cuda_plan(dev));
  do status = first_window_fill(dev);
  while (cuda_replan(dev, 0, &status));
  return status;
}

void cuda_dictionary_free(struct device *dev)
{
  struct cuda_state *s = dev->state;
  s->n_pieces = 0;
  s->ascending = 1;
  s->window_first = s->window_filled = s->screen.filled = 0;
}

/* *view <- the frames of the filter, if these are all atoms put so far and have no padding. */
int cuda_atoms(struct device *dev, struct buffer *view)
{
  const struct cuda_state *s = dev->state;
  idx p = s->options.p;
  int all = s->window_first == 0 && s->window_filled == dev->atoms;
  *view = (struct buffer){0};
  if (s->screen.is_on && all && cuda_frames_pitch(p) == p)
    *view = (struct buffer){.device = s->work.frames.at,
                            .bytes = (gidx)dev->atoms * atom_floats(s) * (gidx)sizeof(float)};
  return OK;
}
