/* SPDX-License-Identifier: BSD-3-Clause
 * Check the lines of a backlog before anything is computed.
 *
 * Floor: encoding.  One rank. */
#ifndef ENCODING_BACKLOG_CHECK_H
#define ENCODING_BACKLOG_CHECK_H

#include "encoding/backlog_list.h"

struct backlog;

/* Open the rows of each line, add all inputs to the list, and check that the results may be
 * written.  The message names the line. */
int backlog_check(struct backlog *b);

/* ERR_CREATE: the result of the line would replace an input that is in the list. */
int backlog_output_check(const struct backlog_list *list, const struct backlog_entry *entry);

#endif
