/* SPDX-License-Identifier: BSD-3-Clause
 * Check the sizes of stacks at the start.  Stacks that are too small for this program, or larger
 * than the machine has memory for, would later end it by a signal, or by an exit of the library
 * that starts threads.
 *
 * Floor: base. */
#ifndef BASE_STACK_H
#define BASE_STACK_H

/* Raise this process's stack limit if it is too low.  Call it before MPI starts, whose libraries
 * crash with less.  Not collective.  ERR_MEMORY: it may not be raised. */
int stack_raise(void);

/* Check the thread stack size that the environment asks for.  ERR_USAGE: it is not 256K to 1G. */
int stack_check(void);

#endif
