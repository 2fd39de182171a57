/* SPDX-License-Identifier: BSD-3-Clause
 * Memory that the ranks of a node share: a window of MPI-3 in the unified model.
 *
 * Floor: comm.
 *
 * Between two calls of comm_shared_sync() an item is either written, by one rank, or read.  What
 * was written before a call is what every rank of the node reads after it.  The caller decides who
 * writes what.
 *
 * Such memory is a file in a memory file system, /dev/shm, of limited size.  If the file system is
 * full when the program first writes a page, the program gets a signal.  So the free room is
 * checked first.  Then every page is written once by a system call, which fails without a signal,
 * before the caller gets the memory. */
#ifndef COMM_SHARED_H
#define COMM_SHARED_H

#include "comm/comm.h"

struct comm_shared {
  void *at; /* zeros, on a 64-byte boundary; the address differs between ranks */
  gidx bytes;
  int rank, ranks;                  /* among the ranks of the node */
  int has_first;                    /* is rank 0 of all ranks among them? */
  struct comm_shared_window *state; /* owned; NULL: not open */
};

/* Can this rank share `bytes` bytes, as far as this is known in advance?  ERR_MEMORY: it cannot,
 * and the message says what is short.  Each rank checks its address space; the first rank of a node
 * also checks the file system and the limit of file sizes.  Not collective. */
int comm_shared_check(const struct comm *c, gidx bytes);

/* Share `bytes` bytes on each node; c is the communicator of all ranks.  Each rank calls
 * comm_shared_check() first.  ERR_MEMORY.  If MPI itself fails, the status (ERR_COMM or ERR_MEMORY)
 * is not agreed, and the job must end.  comm_shared_close() is safe on a zeroed struct.
 * Collective, like comm_shared_close(). */
int comm_shared_open(struct comm *c, gidx bytes, struct comm_shared *s);
int comm_shared_close(struct comm *c, struct comm_shared *s);

/* Wait for the ranks of this node.  Collective among them. */
int comm_shared_sync(struct comm *c, struct comm_shared *s);

#endif
