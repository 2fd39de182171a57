/* SPDX-License-Identifier: BSD-3-Clause
 * What a server says of itself.
 *
 * Floor: serve.  Used by the thread of the sockets. */
#ifndef SERVE_REPORT_H
#define SERVE_REPORT_H

#include "base/json.h"
#include "serve/front.h"

/* *text[*bytes] <- JSON, of malloc(), which is the caller's.  ERR_MEMORY. */
int front_status(struct front *f, char **text, size_t *bytes);
/* Its entries, for an object that is open. */
void front_json(struct front *f, struct json *j);
/* A request is answered. */
void front_count(struct front *f, const struct request *r);

#endif
