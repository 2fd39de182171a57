/* SPDX-License-Identifier: BSD-3-Clause
 * Counts of replies that were sent, but that the transport still holds because their client does
 * not read.
 *
 * Floor: net.  Any thread may call these functions; the transport's threads do. */
#ifndef NET_UNREAD_H
#define NET_UNREAD_H

#include "base/types.h"

struct unread; /* unread.c */

/* A count for one client.  Its replies also count in `all`, which must outlive it, unless that is
 * NULL.  Returns NULL if there is no memory. */
struct unread *unread_make(struct unread *all);
/* The owner needs it no longer: it is freed when no reply counts in it.  NULL is allowed. */
void unread_free(struct unread *u);

/* A reply is sent; a reply was read, or lost. */
void unread_add(struct unread *u, gidx bytes);
void unread_remove(struct unread *u, gidx bytes);

gidx unread_bytes(const struct unread *u);
gidx unread_replies(const struct unread *u);

#endif
