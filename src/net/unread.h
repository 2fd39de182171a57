/* SPDX-License-Identifier: BSD-3-Clause
 * Counts of replies that the transport was given and still holds, such as replies to a client that
 * does not read.
 *
 * Floor: net.  Any thread may call these functions; the transport's threads do. */
#ifndef NET_UNREAD_H
#define NET_UNREAD_H

#include "base/types.h"

struct unread; /* unread.c */

/* A count for one client.  If `all` is not NULL, its replies also count in `all`, which must
 * outlive it.  Returns NULL if there is no memory. */
struct unread *unread_make(struct unread *all);
/* The owner no longer needs the count.  It is freed as soon as no reply counts in it.  NULL is
 * allowed. */
void unread_free(struct unread *u);

/* unread_add(): a reply of `bytes` bytes is handed to the transport.  unread_remove(): the
 * transport has sent or lost it. */
void unread_add(struct unread *u, gidx bytes);
void unread_remove(struct unread *u, gidx bytes);

gidx unread_bytes(const struct unread *u);
gidx unread_replies(const struct unread *u);

#endif
