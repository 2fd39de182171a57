/* SPDX-License-Identifier: BSD-3-Clause
 * A thread that the system does not start: which limit may be why.
 *
 * Floor: base. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <stddef.h>

/* text[capacity] <- the limits of processes and threads that hold here, and what to do. */
void thread_limits(char *text, size_t capacity);

/* Fail for want of a thread: what is "the thread of the watchdog", error what pthread_create()
 * returned.  Returns ERR_MEMORY. */
int thread_fail(const char *what, int error);

#endif
