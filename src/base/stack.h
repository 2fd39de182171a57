/* SPDX-License-Identifier: BSD-3-Clause
 * Stacks that are too small for this program, or larger than a machine has, are refused at the
 * start: later they end it by a signal, or by an exit of the library that starts threads.
 *
 * Floor: base. */
#ifndef BASE_STACK_H
#define BASE_STACK_H

/* Raise this process's limit where it may be, and check it and what the environment asks for the
 * stacks of threads.  ERR_MEMORY: the limit is too low; ERR_USAGE: OMP_STACKSIZE. */
int stack_check(void);

#endif
