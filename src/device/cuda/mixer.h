/* SPDX-License-Identifier: BSD-3-Clause
 * Gated delta nets on a GPU: operations of the table in backend.h.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_MIXER_H
#define DEVICE_CUDA_MIXER_H

#include "device/cuda/cuda.h"

int cuda_mixer_open(struct mixer *w);
void cuda_mixer_close(struct mixer *w);
int cuda_mixer_run(struct mixer *w, const struct mixer_job *job);

#endif
