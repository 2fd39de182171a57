/* SPDX-License-Identifier: BSD-3-Clause
 * Signs of life: a thread sends signs to the next rank, and listens for signs of the previous rank.
 * If the previous rank sends none within the deadline, the watchdog ends the job.
 *
 * Floor: comm; included by src/comm only.
 *
 * The ranks form a ring: rank r sends to r + 1 and listens to r - 1, modulo their number.  Signs
 * come from a thread of their own, so that a busy rank does not look dead. */
#ifndef COMM_WATCH_H
#define COMM_WATCH_H

#include <mpi.h>
#include <pthread.h>

struct watch {
  MPI_Comm ring;        /* borrowed: carries nothing but signs */
  pthread_mutex_t *mpi; /* borrowed: held around MPI calls */
  int rank, size;
  char sign[48];        /* text: which sign is waited for */
  pthread_mutex_t lock; /* guards quit */
  pthread_cond_t wake;
  pthread_t thread;
  int is_running, quit;
};

/* Start the thread.  The caller has set ring, mpi, rank and size > 1 in a zeroed struct, and
 * keeps it in place until watch_end().  Not collective. */
int watch_start(struct watch *w);

/* End the thread and wait for it; safe on a watch that was never started.  Not collective. */
void watch_end(struct watch *w);

#endif
