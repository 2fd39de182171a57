/* SPDX-License-Identifier: BSD-3-Clause
 * The list is searched linearly.  Comparing all names takes less time than handling a message. */
#include "serve/clients.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

int clients_init(struct clients *c)
{
  *c = (struct clients){.all = calloc(MAX_CLIENTS, sizeof *c->all), .unread = unread_make(NULL)};
  CHECK(c->all && c->unread, ERR_MEMORY, "cannot allocate %d clients", MAX_CLIENTS);
  return OK;
}

void clients_free(struct clients *c)
{
  for (int i = 0; i < c->count; i++) {
    free(c->all[i].watched);
    unread_free(c->all[i].unread);
  }
  free(c->all);
  unread_free(c->unread);
  *c = (struct clients){0};
}

struct client *clients_known(struct clients *c, const struct net_peer *peer)
{
  for (int i = 0; i < c->count; i++) {
    const struct net_peer *own = &c->all[i].peer;
    if (own->bytes == peer->bytes && !memcmp(own->name, peer->name, peer->bytes)) return &c->all[i];
  }
  return NULL;
}

/* Where a new client is stored: a free place, or the place of the client that it replaces.  NULL:
 * no client can be replaced. */
static struct client *client_room(struct clients *c)
{
  struct client *oldest = NULL;
  if (c->count < MAX_CLIENTS) return &c->all[c->count];
  for (int i = 0; i < c->count; i++) {
    struct client *one = &c->all[i];
    if (one->waiting == 0 && unread_replies(one->unread) == 0 &&
        (!oldest || one->heard < oldest->heard))
      oldest = one;
  }
  return oldest;
}

struct client *clients_find(struct clients *c, const struct net_peer *peer)
{
  struct client *one = clients_known(c, peer);
  c->messages++;
  if (!one) {
    one = client_room(c);
    struct unread *unread = one ? unread_make(c->unread) : NULL;
    if (!unread) return NULL;
    c->count += one == &c->all[c->count];
    free(one->watched);
    unread_free(one->unread);
    *one = (struct client){.peer = *peer, .unread = unread};
  }
  one->heard = c->messages;
  return one;
}
