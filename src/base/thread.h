/* SPDX-License-Identifier: BSD-3-Clause
 * Errors when the system does not start a thread: which limit may be the reason.
 *
 * Floor: base. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <stddef.h>

/* text[capacity] <- the limits of processes and threads that apply here, and what to do. */
void thread_limits(char *text, size_t capacity);

/* Fail because a thread could not be started.  what: such as "the thread of the watchdog"; error:
 * what pthread_create() returned.  Returns ERR_MEMORY. */
int thread_fail(const char *what, int error);

#endif
