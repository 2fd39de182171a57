/* SPDX-License-Identifier: BSD-3-Clause
 * The clients of a server: requests and replies of each, and the atoms that it watches.
 *
 * Floor: serve.  Used by the thread of the sockets alone. */
#ifndef SERVE_CLIENTS_H
#define SERVE_CLIENTS_H

#include "net/net.h"

enum { MAX_CLIENTS = 1024 };

struct client {
  struct net_peer peer;
  gidx waiting;          /* requests without a reply so far */
  gidx owed;             /* bytes that the replies to these will have */
  struct unread *unread; /* bytes of replies that it has not taken yet; owned */
  idx *watched;          /* [n_watched] ascending; NULL: it watches none; owned */
  idx n_watched;
  uint64_t heard; /* number of its last message, among all messages */
};

struct clients {
  struct client *all; /* [MAX_CLIENTS], the first `count` are in use; owned */
  int count;
  uint64_t messages;
  struct unread *unread; /* bytes of replies that clients have not taken, in all; owned */
};

int clients_init(struct clients *c);
void clients_free(struct clients *c);

/* Find the client of this name, or add it.  If the list is full, it replaces the client that was
 * silent longest among those that have taken all replies.  NULL: every client still has replies to
 * take, or there is no memory. */
struct client *clients_find(struct clients *c, const struct net_peer *peer);

/* The client of this name; NULL: it is not in the list. */
struct client *clients_known(struct clients *c, const struct net_peer *peer);

#endif
