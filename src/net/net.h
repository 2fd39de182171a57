/* SPDX-License-Identifier: BSD-3-Clause
 * Messages between this process and its clients, by ZeroMQ.  Each message has one frame.
 *
 * Floor: net, above base.  This folder is the only user of zmq.h.  One thread at a time may use a
 * struct net.
 *
 * A client that does not read loses replies beyond a limit; nothing waits for it.  The number of
 * connections is limited, so that some file descriptors remain for the program (connections.h).  In
 * a build without ZeroMQ all functions that return a status fail; the message says how to get
 * ZeroMQ. */
#ifndef NET_NET_H
#define NET_NET_H

#include "base/types.h"
#include "net/keys.h"
#include "net/unread.h"

struct net; /* net.c */

struct net_options {
  const char *address;     /* a path, or tcp:HOST:PORT (address.h); borrowed */
  const struct keys *keys; /* of the clients that may connect by TCP; NULL: all may; borrowed */
  /* largest size of a received message; a longer message ends its connection */
  gidx message_bytes;
  int requests; /* largest number of requests of one client that wait to be received */
  int replies;  /* largest number of replies that wait for one client */
};

/* The client that a message is from, or a reply is for. */
enum { NET_PEER_BYTES = 255 };
struct net_peer {
  unsigned char name[NET_PEER_BYTES];
  unsigned char bytes;
};

/* A received message; data is valid until the next call of net_receive(). */
struct net_message {
  struct net_peer peer;
  const unsigned char *data; /* of its only frame; NULL if frames is not 1; may be unaligned */
  size_t bytes;
  int frames;
  int is_refused; /* the key of its client is no longer known */
};

/* ERR_DEVICE if this build has no ZeroMQ. */
int net_check(void);

/* Accept clients at a path, in an existing folder, where only this user may connect; or at a port.
 * ERR_CREATE. */
int net_open(struct net **net, const struct net_options *options);
/* Close the socket.  Replies that are not yet sent have one second to be sent. */
void net_close(struct net *net);

/* The address where net listens; for port 0, with the port that was chosen. */
const char *net_address(const struct net *net);

/* Wait until a message has come, the descriptor `wake` can be read, or the time is over. */
int net_wait(struct net *net, int wake, int milliseconds);

/* *is_there <- 1, and *message <- the next message, if there is one.  Never waits. */
int net_receive(struct net *net, struct net_message *message, int *is_there);

/* Send data[bytes], which malloc() allocated.  It is freed when it is no longer needed, also after
 * a failure.  Until the transport has sent or lost the bytes, they count in `unread`, unless that
 * is NULL.  *is_lost <- 1: the client is gone, or too many replies wait for it. */
int net_send(struct net *net, const struct net_peer *peer, void *data, size_t bytes,
             struct unread *unread, int *is_lost);

#endif
