/* SPDX-License-Identifier: BSD-3-Clause
 * accept4() of this file replaces the one of the C library.  libzmq 4.3 ends the whole program if
 * accept4() fails with EMFILE, so any client could end the server by opening many connections. */
#include "net/connections.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"
#include "base/proc.h"

enum { LEAST_LEFT = 16, PART_LEFT = 8 };

static long most = INT32_MAX; /* every descriptor of a connection is smaller */

void connections_limit(void)
{
  gidx files = proc_files_allow();
  if (files) most = files - imax(LEAST_LEFT, files / PART_LEFT);
}

/* Declared here, since the declaration in <sys/socket.h> has a type that is not standard C. */
int accept4(int listener, void *address, void *bytes, int flags);
int accept4(int listener, void *address, void *bytes, int flags)
{
  /* 1 ms, since the listener stays ready for reading */
  static const struct timespec pause = {.tv_nsec = 1000000};
  long got = syscall(SYS_accept4, listener, address, bytes, flags);
  int is_short = got < 0 && (errno == EMFILE || errno == ENFILE);
  if (got < most && !is_short) return (int)got;
  if (got >= 0) close((int)got); /* the client will try again */
  if (is_short) nanosleep(&pause, NULL);
  errno = EAGAIN;
  return -1;
}
