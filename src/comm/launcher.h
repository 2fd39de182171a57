/* SPDX-License-Identifier: BSD-3-Clause
 * What the program that started this process says of it, in environment variables: also before MPI
 * has started.
 *
 * Floor: comm.  Not collective. */
#ifndef COMM_LAUNCHER_H
#define COMM_LAUNCHER_H

/* Is this a process that no launcher started? */
int launcher_is_none(void);

/* The rank of this process, -1 where no launcher says one. */
int launcher_rank(void);
/* How many processes were started together, -1 likewise. */
int launcher_size(void);

/* Does MPI know of all processes that were started together?  ranks: how many it knows of.  Where
 * it knows of fewer, each of them would do the whole job, and write to the same place: ERR_USAGE
 * says what started how many, and how to start them.  has_mpi: 0 of the program of the Python
 * wheel, which is one process. */
int launcher_check(int ranks, int has_mpi);

#endif
