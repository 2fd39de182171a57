/* SPDX-License-Identifier: BSD-3-Clause
 * The limit of open connections: each takes a file descriptor, and some are left to the program.
 *
 * Floor: net. */
#ifndef NET_CONNECTIONS_H
#define NET_CONNECTIONS_H

/* Let the process open as many files as it may ask for; most of them are for connections.  Before
 * this call, connections have no limit. */
void connections_limit(void);

#endif
