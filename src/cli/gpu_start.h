/* SPDX-License-Identifier: BSD-3-Clause
 * Starting a GPU while MPI starts, which takes about as long, with several processes less.
 *
 * Floor: cli.  Not collective. */
#ifndef CLI_GPU_START_H
#define CLI_GPU_START_H

#include "cli/command.h"

/* Before MPI's start: begin where the command line says `--device cuda` and that there is something
 * to compute, the launcher which process of this machine this is, and MPI's start lets others be at
 * work (comm_start_is_quiet()).  It changes nothing but time: what fails is left for device_open()
 * to tell, and where this is not begun that does all of it. */
void gpu_start_begin(const struct run *run);

/* Wait for it; at once if it is not under way. */
void gpu_start_end(void);

#endif
