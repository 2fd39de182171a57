/* SPDX-License-Identifier: BSD-3-Clause
 * Each struct counts replies, and users: its owner, and each reply.  The last user frees it. */
#include "net/unread.h"

#include <stdatomic.h>
#include <stdlib.h>

struct unread {
  struct unread *all;
  atomic_llong bytes, replies, users;
};

struct unread *unread_make(struct unread *all)
{
  struct unread *u = calloc(1, sizeof *u);
  if (!u) return NULL;
  u->all = all;
  atomic_init(&u->users, 1);
  return u;
}

void unread_free(struct unread *u)
{
  if (u && atomic_fetch_sub(&u->users, 1) == 1) free(u);
}

void unread_add(struct unread *u, gidx bytes)
{
  if (u->all) unread_add(u->all, bytes);
  atomic_fetch_add(&u->users, 1);
  atomic_fetch_add(&u->replies, 1);
  atomic_fetch_add(&u->bytes, bytes);
}

void unread_remove(struct unread *u, gidx bytes)
{
  struct unread *all = u->all;
  atomic_fetch_sub(&u->bytes, bytes);
  atomic_fetch_sub(&u->replies, 1);
  unread_free(u);
  if (all) unread_remove(all, bytes);
}

gidx unread_bytes(const struct unread *u)
{
  return atomic_load(&u->bytes);
}

gidx unread_replies(const struct unread *u)
{
  return atomic_load(&u->replies);
}
