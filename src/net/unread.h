/* SPDX-License-Identifier: BSD-3-Clause
 * Replies that were sent and that the transport still keeps, because their client does not read.
 *
 * Floor: net.  Any thread may use these, and the transport's do. */
#ifndef NET_UNREAD_H
#define NET_UNREAD_H

#include "base/types.h"

struct unread; /* unread.c */

/* Of one client; what it has counts in `all` too, which outlives it, unless that is NULL.  NULL
 * where there is no memory. */
struct unread *unread_make(struct unread *all);
/* Its owner is done with it: it is freed when no reply counts in it any more.  NULL is none. */
void unread_free(struct unread *u);

/* A reply is sent; one is read, or lost. */
void unread_add(struct unread *u, gidx bytes);
void unread_remove(struct unread *u, gidx bytes);

gidx unread_bytes(const struct unread *u);
gidx unread_replies(const struct unread *u);

#endif
