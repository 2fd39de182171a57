/* SPDX-License-Identifier: BSD-3-Clause
 * The dictionary on a GPU.  It is packed once and stays there.  If it does not fit, one window of
 * it is packed after another.
 *
 * Floor: device.
 *
 * A slot is the number of an atom on this device, in the order in which atoms were put.  The window
 * is plan.window consecutive slots, in the workspaces `packed` and `atom_of` and, for the filter,
 * in `frames` [window][d][pitch] f32. */
#ifndef DEVICE_CUDA_DICTIONARY_H
#define DEVICE_CUDA_DICTIONARY_H

#include "device/cuda/cuda.h"

/* Floats between vectors of `frames`: a multiple of 4, so that 16 bytes can be copied at a time. */
static inline idx cuda_frames_pitch(idx p)
{
  return (p + 3) / 4 * 4;
}

/* Bring slots first .. first + plan.window - 1 to the device, in tiles of `tile` atoms.  *count <-
 * the number of these slots that exist. */
int cuda_window(struct device *dev, idx first, idx tile, idx *count);

/* Operations of the table. */
int cuda_put_tile(struct device *dev, const float *atoms, idx count, idx first);
void cuda_dictionary_free(struct device *dev);
int cuda_atoms(struct device *dev, struct buffer *view);

#endif
