/* SPDX-License-Identifier: BSD-3-Clause
 * Where a server listens: a socket in a folder of its user, and the lock beside it, or a port.
 *
 * Floor: net. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <stddef.h>

enum { ADDRESS_BYTES = 100 }; /* of a path at most, so that all systems take it as a socket's */

/* address[ADDRESS_BYTES + 1] <- where to listen: `listen`, a path or tcp:HOST:PORT, where tcp:PORT
 * is of this machine alone.  NULL: live in $XDG_RUNTIME_DIR/sagitta or /tmp/sagitta-UID, a folder
 * that is made with mode 0700.  ERR_CREATE where that folder is not this user's, is a link, or may
 * be entered by others.  ERR_USAGE: the path is too long, or there is no such port. */
int address_find(const char *listen, char *address);

/* Is it tcp:HOST:PORT, and if so, only reached from this machine? */
int address_is_tcp(const char *address);
int address_is_local(const char *address);

/* Lock PATH.lock until address_free(), which removes nothing.  ERR_CREATE where another server has
 * it: binding alone would take a socket over without an error. */
int address_lock(const char *path, int *lock);
void address_free(int lock);

#endif
