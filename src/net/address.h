/* SPDX-License-Identifier: BSD-3-Clause
 * The address where a server listens: a socket in a folder of its user, with a lock file beside it,
 * or a port.
 *
 * Floor: net. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <stddef.h>

enum { ADDRESS_BYTES = 100 }; /* of a path at most, so that all systems accept it for a socket */

/* address[ADDRESS_BYTES + 1] <- where to listen.  listen: a path, or tcp:HOST:PORT; tcp:PORT
 * listens on this machine only.  NULL: the socket `live` in $XDG_RUNTIME_DIR/sagitta or
 * /tmp/sagitta-UID; that folder is made with mode 0700.  ERR_CREATE if the folder is not this
 * user's, is a link, or others may enter it.  ERR_USAGE: the path is too long, or there is no such
 * port. */
int address_find(const char *listen, char *address);

/* Is it tcp:HOST:PORT?  And if so, can it only be reached from this machine? */
int address_is_tcp(const char *address);
int address_is_local(const char *address);

/* Lock PATH.lock until address_free(), which removes nothing.  ERR_CREATE if another server has it:
 * binding alone would take over its socket without an error. */
int address_lock(const char *path, int *lock);
void address_free(int lock);

#endif
