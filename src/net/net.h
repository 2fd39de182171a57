/* SPDX-License-Identifier: BSD-3-Clause
 * Messages between this process and its clients, by ZeroMQ: one frame each.
 *
 * Floor: net, above base, which alone uses zmq.h.  One thread at a time uses a struct net.
 *
 * A client that does not read loses replies beyond a limit, and nobody waits for it.  Connections
 * leave some descriptors to the program (connections.h).  A build without ZeroMQ has net_check()
 * alone, which says how to get it. */
#ifndef NET_NET_H
#define NET_NET_H

#include "base/types.h"
#include "net/keys.h"
#include "net/unread.h"

struct net; /* net.c */

struct net_options {
  const char *address;     /* a path, or tcp:HOST:PORT (address.h); borrowed */
  const struct keys *keys; /* of clients that may connect by TCP; NULL: all may; borrowed */
  gidx message_bytes; /* of a message that is received at most; a longer one ends its connection */
  int requests;       /* of one client that wait to be received at most */
  int replies;        /* that wait for one client at most */
};

/* Whom a message is from, and a reply is for. */
enum { NET_PEER_BYTES = 255 };
struct net_peer {
  unsigned char name[NET_PEER_BYTES];
  unsigned char bytes;
};

/* A message that came; data belong to the net until the next call of net_receive(). */
struct net_message {
  struct net_peer peer;
  const unsigned char *data; /* of its first frame; of any alignment */
  size_t bytes;
  int frames;
  int is_refused; /* the key of its client is not known any more */
};

/* ERR_DEVICE where this build has no ZeroMQ. */
int net_check(void);

/* Accept clients at a path, in a folder that is there, where only this user may connect, or at a
 * port.  ERR_CREATE. */
int net_open(struct net **net, const struct net_options *options);
/* Replies that are under way get a second. */
void net_close(struct net *net);

/* The address where it listens: port 0 was one that is free. */
const char *net_address(const struct net *net);

/* Wait until a message is there, `wake`, a descriptor, can be read, or the time is over. */
int net_wait(struct net *net, int wake, int milliseconds);

/* The next message, if there is one: *is_there.  Never waits. */
int net_receive(struct net *net, struct net_message *message, int *is_there);

/* Send data[bytes], of malloc(), which are freed then, and count in `unread` until the client has
 * taken them, unless that is NULL.  *is_lost <- 1: the client is gone, or too many replies wait for
 * it. */
int net_send(struct net *net, const struct net_peer *peer, void *data, size_t bytes,
             struct unread *unread, int *is_lost);

#endif
