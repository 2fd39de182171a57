/* SPDX-License-Identifier: BSD-3-Clause
 * The limit of open connections: each connection uses a file descriptor, and some descriptors are
 * reserved for the program.
 *
 * Floor: net. */
#ifndef NET_CONNECTIONS_H
#define NET_CONNECTIONS_H

/* Raise the process's limit of open files as far as allowed; most of the descriptors are for
 * connections.  Before this call, connections have no limit. */
void connections_limit(void);

#endif
