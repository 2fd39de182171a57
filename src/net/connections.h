/* SPDX-License-Identifier: BSD-3-Clause
 * How many connections may be open: each takes a descriptor, and some are left to the program.
 *
 * Floor: net. */
#ifndef NET_CONNECTIONS_H
#define NET_CONNECTIONS_H

/* Let the process open as many files as it may ask for; connections get most of them.  Until then
 * they have no limit. */
void connections_limit(void);

#endif
