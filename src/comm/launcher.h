/* SPDX-License-Identifier: BSD-3-Clause
 * What environment variables tell about the launcher of this process.  MPI need not have started.
 *
 * Floor: comm.  Not collective. */
#ifndef COMM_LAUNCHER_H
#define COMM_LAUNCHER_H

/* Was this process started without a launcher? */
int launcher_is_none(void);

/* The rank of this process; -1 if no launcher gives it. */
int launcher_rank(void);
/* How many processes were started together; -1 if no launcher says it. */
int launcher_size(void);

/* Does MPI know all processes that were started together?  ranks: how many it knows.  If it knows
 * fewer, several processes would do the whole job, and write to the same path.  ERR_USAGE then says
 * which launcher started how many, and how to start them.  has_mpi: 0 for the program of the Python
 * wheel that runs as one process. */
int launcher_check(int ranks, int has_mpi);

#endif
