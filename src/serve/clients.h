/* SPDX-License-Identifier: BSD-3-Clause
 * The clients of a server: counts of requests and replies, and the atoms that a client watches.
 *
 * Floor: serve.  While the server accepts clients, only the thread of the sockets uses them. */
#ifndef SERVE_CLIENTS_H
#define SERVE_CLIENTS_H

#include "net/net.h"

enum { MAX_CLIENTS = 1024 };

struct client {
  struct net_peer peer;
  gidx waiting;          /* requests without a reply so far */
  gidx owed;             /* bytes of the replies to these requests */
  struct unread *unread; /* counts replies that the client has not taken; owned */
  idx *watched;          /* [n_watched] ascending; NULL: it never sent a list; owned */
  idx n_watched;
  uint64_t heard; /* number of its last message, in the order of all messages */
};

struct clients {
  struct client *all; /* [MAX_CLIENTS] the first `count` are in use; owned */
  int count;
  uint64_t messages;     /* of all clients so far */
  struct unread *unread; /* counts replies that clients have not taken yet; owned */
};

int clients_init(struct clients *c);
void clients_free(struct clients *c);

/* Find the client of this name, or add it.  If the list is full, the new client replaces the one
 * that has been silent longest.  Only a client is replaced that has no request waiting and has
 * taken all replies.  NULL: there is no such client, or there is no memory. */
struct client *clients_find(struct clients *c, const struct net_peer *peer);

/* The client of this name.  NULL: it is not in the list. */
struct client *clients_known(struct clients *c, const struct net_peer *peer);

#endif
