/* SPDX-License-Identifier: BSD-3-Clause
 * The address where a server listens: a socket in a folder of the server's user, with a lock file
 * beside the socket; or a TCP port.
 *
 * Floor: net. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <stddef.h>

/* largest length of an address; all systems accept a path of this length for a socket */
enum { ADDRESS_BYTES = 100 };

/* address[ADDRESS_BYTES + 1] <- where to listen.  listen: a path, or tcp:HOST:PORT; tcp:PORT
 * listens on this machine only.  NULL: the socket `live` in $XDG_RUNTIME_DIR/sagitta or
 * /tmp/sagitta-UID; that folder is made with mode 0700.  ERR_CREATE if the folder is not this
 * user's, is a link, or others may enter it.  ERR_USAGE: the path is too long, or there is no such
 * port. */
int address_find(const char *listen, char *address);

/* address_is_tcp(): is the address tcp:HOST:PORT?  address_is_local(): is HOST an address 127.x.x.x
 * or [::1], which only this machine can reach?  A host name counts as not local. */
int address_is_tcp(const char *address);
int address_is_local(const char *address);

/* Lock the file PATH.lock until address_free(), which does not remove it.  ERR_CREATE if another
 * server has the lock, or if PATH exists and is no socket.  Without the lock, binding would take
 * over the socket of that server without an error. */
int address_lock(const char *path, int *lock);
void address_free(int lock);

#endif
