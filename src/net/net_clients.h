/* SPDX-License-Identifier: BSD-3-Clause
 * Clients for benchmarks of a server.  Each client has its own connection.
 *
 * Floor: net.  One thread at a time may use them. */
#ifndef NET_NET_CLIENTS_H
#define NET_NET_CLIENTS_H

#include "base/types.h"

struct net_clients; /* net_clients.c */
int net_clients_open(struct net_clients **clients, const char *path, int count);
void net_clients_close(struct net_clients *clients);
/* Send a message, which is copied.  *is_lost <- 1: too many messages wait to be sent. */
int net_clients_send(struct net_clients *clients, int which, const void *data, size_t bytes,
                     int *is_lost);
/* Wait until any client has a message, or the time is over. */
int net_clients_wait(struct net_clients *clients, int milliseconds);
/* The next message for a client, if there is one; data is valid until the next call. */
int net_clients_receive(struct net_clients *clients, int which, const unsigned char **data,
                        size_t *bytes, int *is_there);

#endif
