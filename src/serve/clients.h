/* SPDX-License-Identifier: BSD-3-Clause
 * The clients of a server: what each has under way, and which atoms it watches.
 *
 * Floor: serve.  Used by the thread of the sockets alone. */
#ifndef SERVE_CLIENTS_H
#define SERVE_CLIENTS_H

#include "net/net.h"

enum { MAX_CLIENTS = 1024 };

struct client {
  struct net_peer peer;
  gidx waiting;          /* requests without a reply so far */
  gidx owed;             /* bytes of the replies to these */
  struct unread *unread; /* replies that it has not taken; owned */
  idx *watched;          /* [n_watched] ascending; NULL: it watches none; owned */
  idx n_watched;
  uint64_t heard; /* when its last message came, as a count of messages */
};

struct clients {
  struct client *all; /* [MAX_CLIENTS], the first `count` are in use; owned */
  int count;
  uint64_t messages;
  struct unread *unread; /* of all, owned */
};

int clients_init(struct clients *c);
void clients_free(struct clients *c);

/* The client of a name, which is new where it was never heard of: then it takes the memory of the
 * one that was silent for longest and has taken all replies.  NULL: all have some to come, or there
 * is no memory. */
struct client *clients_find(struct clients *c, const struct net_peer *peer);

/* The client if it is known; NULL. */
struct client *clients_known(struct clients *c, const struct net_peer *peer);

#endif
