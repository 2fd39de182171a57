/* SPDX-License-Identifier: BSD-3-Clause
 * Launches that begin before the launches in front of them have ended (9.0). */
#ifndef LAUNCHES_H
#define LAUNCHES_H

/* Allow the next launch to begin; it waits for this one where it must. */
static __device__ inline void launch_next(void)
{
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Wait until earlier launches have ended; what they wrote is then visible. */
static __device__ inline void launches_wait(void)
{
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
