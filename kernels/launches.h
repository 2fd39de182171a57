/* SPDX-License-Identifier: BSD-3-Clause
 * Lets a launch begin before earlier launches of its stream have ended (9.0).  On older devices
 * these functions do nothing. */
#ifndef LAUNCHES_H
#define LAUNCHES_H

/* Allow the next launch to begin.  It calls launches_wait() before it uses results of this one. */
static __device__ inline void launch_next(void)
{
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Wait until earlier launches have ended and their writes are visible. */
static __device__ inline void launches_wait(void)
{
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
