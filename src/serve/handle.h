/* SPDX-License-Identifier: BSD-3-Clause
 * What becomes of a message that came.
 *
 * Floor: serve.  Of the thread of the sockets. */
#ifndef SERVE_HANDLE_H
#define SERVE_HANDLE_H

#include "serve/front.h"

/* Answer it, or queue its rows.  What a client did wrong is its own failure, and it is told; any
 * other ends the server. */
int message_handle(struct front *f, const struct net_message *message);

#endif
