/* SPDX-License-Identifier: BSD-3-Clause
 * Check the sizes of stacks at the start.  With stacks that are too small, or larger than the
 * memory of the machine, the program would later be ended by a signal or by the OpenMP library.
 *
 * Floor: base. */
#ifndef BASE_STACK_H
#define BASE_STACK_H

/* Raise this process's stack limit if it is too low.  Call it before MPI starts, since MPI
 * libraries crash with a smaller stack.  Not collective.  ERR_MEMORY: the system refuses to raise
 * it. */
int stack_raise(void);

/* Check the thread stack size that the environment asks for.  ERR_USAGE: it is not 256K to 1G. */
int stack_check(void);

#endif
