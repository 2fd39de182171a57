/* SPDX-License-Identifier: BSD-3-Clause
 * What can be wrong with the lines of a backlog, before anything is computed.
 *
 * Floor: encoding.  One rank. */
#ifndef ENCODING_BACKLOG_CHECK_H
#define ENCODING_BACKLOG_CHECK_H

#include "encoding/backlog_list.h"

struct backlog;

/* Open the rows of all lines, note all inputs in the list, and look at the results.  The message
 * names the line. */
int backlog_check(struct backlog *b);

/* ERR_CREATE when the result of a line would replace an input that is in the list. */
int backlog_output_check(const struct backlog_list *list, const struct backlog_entry *entry);

#endif
