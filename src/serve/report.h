/* SPDX-License-Identifier: BSD-3-Clause
 * The status report of a server.
 *
 * Floor: serve.  Used by the thread of the sockets; after it has ended, by the main thread. */
#ifndef SERVE_REPORT_H
#define SERVE_REPORT_H

#include "base/json.h"
#include "serve/front.h"

/* *text[*bytes] <- the report as JSON, from malloc(), owned by the caller.  ERR_MEMORY. */
int front_status(struct front *f, char **text, size_t *bytes);
/* Add the entries of the report to an open JSON object. */
void front_json(struct front *f, struct json *j);
/* Count a request that is answered, with results or with an error.  Its bytes no longer wait. */
void front_count(struct front *f, const struct request *r);

#endif
