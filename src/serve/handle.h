/* SPDX-License-Identifier: BSD-3-Clause
 * Handle a message from a client.
 *
 * Floor: serve.  Called by the thread of the sockets. */
#ifndef SERVE_HANDLE_H
#define SERVE_HANDLE_H

#include "serve/front.h"

/* Answer a message, or queue its rows.  A client is told about its own errors; the status is OK
 * then.  Any other error ends the server. */
int message_handle(struct front *f, const struct net_message *message);

#endif
