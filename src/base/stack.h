/* SPDX-License-Identifier: BSD-3-Clause
 * Stacks that are too small for this program, or larger than a machine has, are refused at the
 * start: later they end it by a signal, or by an exit of the library that starts threads.
 *
 * Floor: base. */
#ifndef BASE_STACK_H
#define BASE_STACK_H

/* Raise this process's limit where it is too low and may be raised.  Not collective, and called
 * before MPI starts, whose libraries crash where there is less.  ERR_MEMORY: it may not be. */
int stack_raise(void);

/* Check what the environment asks for the stacks of threads.  ERR_USAGE: it is not 256K to 1G. */
int stack_check(void);

#endif
