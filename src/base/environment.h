/* SPDX-License-Identifier: BSD-3-Clause
 * setenv(), putenv() and unsetenv() for a program whose threads read the environment meanwhile.
 *
 * Floor: base.
 *
 * The C library's own, before glibc 2.41, free the array that getenv() of another thread may be
 * walking.  These take their place for the whole program, libraries included: MPI's start adds
 * variables while the driver of a GPU, which starts beside it, reads them.  Arrays and texts are
 * kept, some bytes for each variable that is set. */
#ifndef BASE_ENVIRONMENT_H
#define BASE_ENVIRONMENT_H

/* 1 where libraries that are loaded get these functions: then threads may read the environment
 * while any other sets it. */
int environment_is_shared(void);

#endif
