/* SPDX-License-Identifier: BSD-3-Clause
 * A ROUTER socket, which adds a frame with the client's name in front of each message.  In a build
 * without ZeroMQ, functions that return a status fail as net_check() does. */
#include "net/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/status.h"
#include "net/address.h"
#include "net/connections.h"
#include "net/curve.h"

#include "net/zeromq.h"

#ifdef NET_HAS_ZEROMQ

enum { LINGER = 1000 }; /* ms */

struct net {
  void *context, *socket;
  struct gate gate; /* its socket is NULL if there are no keys */
  char address[ADDRESS_BYTES + 28];
  zmq_msg_t received;
};

int net_check(void)
{
  return OK;
}

static int number_set(struct net *net, int option, int value)
{
  TRY_ZMQ(zmq_setsockopt(net->socket, option, &value, sizeof value), "cannot set up a socket");
  return OK;
}

/* Only this user may connect to the path, even if others may enter its folder. */
static int socket_bind(struct net *net, const char *path)
{
  char endpoint[4200];
  snprintf(endpoint, sizeof endpoint, "ipc://%s%s", path[0] == '/' ? "" : "./", path); /* no "@" */
  mode_t before = umask(077);
  int failed = zmq_bind(net->socket, endpoint) < 0, error = errno;
  umask(before);
  CHECK(!failed, ERR_CREATE, "cannot accept clients at '%s': %s", path, zmq_strerror(error));
  return OK;
}

/* tcp:HOST:PORT. */
static int port_bind(struct net *net, const char *address)
{
  char endpoint[sizeof net->address];
  size_t bytes = sizeof endpoint;
  if (strchr(address, '[')) TRY(number_set(net, ZMQ_IPV6, 1));
  /* connections to machines that have disappeared are closed */
  TRY(number_set(net, ZMQ_TCP_KEEPALIVE, 1));
  snprintf(endpoint, sizeof endpoint, "tcp://%s", address + 4);
  CHECK(zmq_bind(net->socket, endpoint) == 0, ERR_CREATE,
        "cannot accept clients at '%s': %s: give --listen another port, and an address of this "
        "machine, or * for all",
        address, zmq_strerror(errno));
  TRY_ZMQ(zmq_getsockopt(net->socket, ZMQ_LAST_ENDPOINT, endpoint, &bytes), "cannot find a port");
  snprintf(net->address, sizeof net->address, "tcp:%s", endpoint + strlen("tcp://"));
  return OK;
}

int net_open(struct net **net, const struct net_options *options)
{
  TRY(struct_alloc(net, sizeof **net));
  struct net *n = *net;
  zmq_msg_init(&n->received);
  n->context = zmq_ctx_new();
  if (n->context) n->socket = zmq_socket(n->context, ZMQ_ROUTER);
  CHECK(n->socket, ERR_MEMORY, "cannot make a socket: %s", zmq_strerror(errno));
  int64_t most = options->message_bytes;
  TRY_ZMQ(zmq_setsockopt(n->socket, ZMQ_MAXMSGSIZE, &most, sizeof most), "cannot limit messages");
  TRY(number_set(n, ZMQ_RCVHWM, options->requests));
  TRY(number_set(n, ZMQ_SNDHWM, options->replies));
  TRY(number_set(n, ZMQ_LINGER, LINGER));
  TRY(number_set(n, ZMQ_ROUTER_MANDATORY, 1)); /* a lost reply is reported */
  connections_limit();
  snprintf(n->address, sizeof n->address, "%s", options->address);
  if (options->keys) TRY(gate_open(&n->gate, n->context, n->socket, options->keys));
  return address_is_tcp(options->address) ? port_bind(n, options->address)
                                          : socket_bind(n, options->address);
}

const char *net_address(const struct net *net)
{
  return net->address;
}

void net_close(struct net *net)
{
  if (!net) return;
  zmq_msg_close(&net->received);
  if (net->socket) zmq_close(net->socket);
  gate_close(&net->gate);
  if (net->context) zmq_ctx_term(net->context);
  free(net);
}

int net_wait(struct net *net, int wake, int milliseconds)
{
  zmq_pollitem_t items[] = {{net->socket, -1, ZMQ_POLLIN, 0},
                            {NULL, wake, ZMQ_POLLIN, 0},
                            {net->gate.socket, -1, ZMQ_POLLIN, 0}};
  int count = net->gate.socket ? LENGTH(items) : LENGTH(items) - 1;
  int got = zmq_poll(items, count, milliseconds);
  if (got < 0 && errno != EINTR) TRY_ZMQ(got, "cannot wait for clients");
  return net->gate.socket ? gate_answer(&net->gate) : OK;
}

/* Receive the next frame into net->received; *more <- 1 if another frame follows.  *is_there <- 0:
 * there is none. */
static int frame_receive(struct net *net, int *more, int *is_there)
{
  int got;
  zmq_msg_close(&net->received);
  zmq_msg_init(&net->received);
  do got = zmq_msg_recv(&net->received, net->socket, ZMQ_DONTWAIT);
  while (got < 0 && errno == EINTR);
  *is_there = got >= 0;
  if (got < 0 && errno != EAGAIN) TRY_ZMQ(got, "cannot receive");
  *more = *is_there && zmq_msg_more(&net->received);
  return OK;
}

/* Drop the frames that follow the first one, and add their number to *frames. */
static int rest_drop(struct net *net, int *frames)
{
  for (int more = 1, there = 1; more && there;) {
    TRY(frame_receive(net, &more, &there));
    *frames += there;
  }
  return OK;
}

int net_receive(struct net *net, struct net_message *message, int *is_there)
{
  int more, there;
  *message = (struct net_message){0};
  TRY(frame_receive(net, &more, is_there));
  if (!*is_there) return OK;
  size_t bytes = zmq_msg_size(&net->received);
  if (bytes > NET_PEER_BYTES) FAIL(ERR_INTERNAL, "a client's name has %zu bytes", bytes);
  memcpy(message->peer.name, zmq_msg_data(&net->received), bytes);
  message->peer.bytes = (unsigned char)bytes;
  if (!more) return OK; /* the message has no frame after the name */
  TRY(frame_receive(net, &more, &there));
  message->frames = 1;
  if (net->gate.socket)
    message->is_refused = !gate_knows(&net->gate, zmq_msg_gets(&net->received, "User-Id"));
  if (more) return rest_drop(net, &message->frames);
  message->data = zmq_msg_data(&net->received);
  message->bytes = zmq_msg_size(&net->received);
  return OK;
}

/* What data_free() needs to know about a message.  It is freed when the transport has sent or lost
 * the message. */
struct sent {
  struct unread *unread;
  gidx bytes;
};

/* Any thread may call this: the transport does, when a message was sent or lost. */
static void data_free(void *data, void *hint)
{
  struct sent *sent = hint;
  if (sent && sent->unread) unread_remove(sent->unread, sent->bytes);
  free(sent);
  free(data);
}

/* Begin a message that counts as unread. */
static int message_begin(zmq_msg_t *message, void *data, size_t bytes, struct unread *unread)
{
  struct sent *sent = malloc(sizeof *sent);
  if (!sent || zmq_msg_init_data(message, data, bytes, data_free, sent) < 0) {
    free(sent);
    free(data);
    FAIL(ERR_MEMORY, "cannot allocate a reply");
  }
  *sent = (struct sent){unread, (gidx)bytes};
  if (unread) unread_add(unread, (gidx)bytes);
  return OK;
}

/* Begin a message to the peer; never waits. */
static int peer_begin(struct net *net, const struct net_peer *peer)
{
  int got;
  do got = zmq_send(net->socket, peer->name, peer->bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT);
  while (got < 0 && errno == EINTR);
  return got;
}

/* If sending fails with EAGAIN or EHOSTUNREACH, the reply is lost.  The transport finds out only
 * from time to time, or when it is asked for events, what peers have read.  So a peer that seems
 * slow may have read everything. */
int net_send(struct net *net, const struct net_peer *peer, void *data, size_t bytes,
             struct unread *unread, int *is_lost)
{
  zmq_msg_t message;
  int events;
  size_t size = sizeof events;
  TRY(message_begin(&message, data, bytes, unread));
  int got = peer_begin(net, peer);
  if (got < 0 && errno == EAGAIN && !zmq_getsockopt(net->socket, ZMQ_EVENTS, &events, &size))
    got = peer_begin(net, peer);
  if (got >= 0) do
      got = zmq_msg_send(&message, net->socket, ZMQ_DONTWAIT);
    while (got < 0 && errno == EINTR);
  int error = errno;
  *is_lost = got < 0;
  if (got < 0) zmq_msg_close(&message);
  if (got < 0 && error != EAGAIN && error != EHOSTUNREACH) {
    errno = error;
    TRY_ZMQ(got, "cannot send");
  }
  return OK;
}

#else

int net_check(void)
{
  FAIL(ERR_DEVICE, "this build has no ZeroMQ, by which clients connect: install libzmq3-dev, then "
                   "./configure --with-zmq && make");
}

int net_open(struct net **net, const struct net_options *options)
{
  (void)options;
  *net = NULL;
  return net_check();
}

void net_close(struct net *net)
{
  (void)net;
}

const char *net_address(const struct net *net)
{
  (void)net;
  return "";
}

int net_wait(struct net *net, int wake, int milliseconds)
{
  (void)net, (void)wake, (void)milliseconds;
  return net_check();
}

int net_receive(struct net *net, struct net_message *message, int *is_there)
{
  (void)net, (void)message;
  *is_there = 0;
  return net_check();
}

int net_send(struct net *net, const struct net_peer *peer, void *data, size_t bytes,
             struct unread *unread, int *is_lost)
{
  (void)net, (void)peer, (void)data, (void)bytes, (void)unread, (void)is_lost;
  return net_check();
}

#endif
