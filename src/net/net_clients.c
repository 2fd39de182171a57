/* SPDX-License-Identifier: BSD-3-Clause
 * DEALER sockets of one context, all used by one thread. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "net/net_clients.h"
#include "net/net.h"
#include "net/zeromq.h"

#ifdef NET_HAS_ZEROMQ

struct net_clients {
  void *context;
  zmq_pollitem_t *items; /* [count] the socket of each client; owned */
  int count;
  zmq_msg_t received;
};

static int client_connect(struct net_clients *c, int which, const char *endpoint)
{
  const int none = 0;
  void *socket = zmq_socket(c->context, ZMQ_DEALER);
  CHECK(socket, ERR_MEMORY, "cannot make a socket: %s", zmq_strerror(errno));
  c->items[which] = (zmq_pollitem_t){socket, -1, ZMQ_POLLIN, 0};
  c->count = which + 1;
  TRY_ZMQ(zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none), "cannot set up a socket");
  TRY_ZMQ(zmq_setsockopt(socket, ZMQ_RCVHWM, &none, sizeof none), "cannot set up a socket");
  TRY_ZMQ(zmq_connect(socket, endpoint), "cannot connect");
  return OK;
}

int net_clients_open(struct net_clients **clients, const char *path, int count)
{
  char endpoint[4200];
  TRY(struct_alloc(clients, sizeof **clients));
  struct net_clients *c = *clients;
  zmq_msg_init(&c->received);
  c->context = zmq_ctx_new();
  c->items = calloc((size_t)count, sizeof *c->items);
  CHECK(c->context && c->items, ERR_MEMORY, "cannot make %d clients", count);
  snprintf(endpoint, sizeof endpoint, "ipc://%s", path);
  for (int i = 0; i < count; i++) TRY(client_connect(c, i, endpoint));
  return OK;
}

void net_clients_close(struct net_clients *c)
{
  if (!c) return;
  zmq_msg_close(&c->received);
  for (int i = 0; i < c->count; i++) zmq_close(c->items[i].socket);
  if (c->context) zmq_ctx_term(c->context);
  free(c->items);
  free(c);
}

int net_clients_send(struct net_clients *c, int which, const void *data, size_t bytes, int *is_lost)
{
  int got;
  do got = zmq_send(c->items[which].socket, data, bytes, ZMQ_DONTWAIT);
  while (got < 0 && errno == EINTR);
  *is_lost = got < 0;
  if (got < 0 && errno != EAGAIN) TRY_ZMQ(got, "cannot send");
  return OK;
}

int net_clients_wait(struct net_clients *c, int milliseconds)
{
  int got = zmq_poll(c->items, c->count, milliseconds);
  if (got < 0 && errno != EINTR) TRY_ZMQ(got, "cannot wait for replies");
  return OK;
}

int net_clients_receive(struct net_clients *c, int which, const unsigned char **data, size_t *bytes,
                        int *is_there)
{
  int got;
  *is_there = 0;
  if (!(c->items[which].revents & ZMQ_POLLIN)) return OK;
  do got = zmq_msg_recv(&c->received, c->items[which].socket, ZMQ_DONTWAIT);
  while (got < 0 && errno == EINTR);
  if (got < 0 && errno != EAGAIN) TRY_ZMQ(got, "cannot receive");
  *is_there = got >= 0;
  *data = zmq_msg_data(&c->received);
  *bytes = zmq_msg_size(&c->received);
  return OK;
}

#else

int net_clients_open(struct net_clients **clients, const char *path, int count)
{
  (void)path, (void)count;
  *clients = NULL;
  return net_check();
}

void net_clients_close(struct net_clients *clients)
{
  (void)clients;
}

int net_clients_send(struct net_clients *clients, int which, const void *data, size_t bytes,
                     int *is_lost)
{
  (void)clients, (void)which, (void)data, (void)bytes;
  *is_lost = 1;
  return net_check();
}

int net_clients_wait(struct net_clients *clients, int milliseconds)
{
  (void)clients, (void)milliseconds;
  return net_check();
}

int net_clients_receive(struct net_clients *clients, int which, const unsigned char **data,
                        size_t *bytes, int *is_there)
{
  (void)clients, (void)which, (void)data, (void)bytes;
  *is_there = 0;
  return net_check();
}

#endif
