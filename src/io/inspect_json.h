/* SPDX-License-Identifier: BSD-3-Clause
 * The contents of a file as JSON, for `inspect --json`; doc/json.md lists the entries.
 *
 * Floor: io.  Not collective. */
#ifndef IO_INSPECT_JSON_H
#define IO_INSPECT_JSON_H

struct json;

/* Add an object about a file to the open JSON list.  It has all that file_inspect() shows; numbers
 * stay numbers.  ERR_IO, ERR_INPUT: as for file_inspect(); the object may then be incomplete. */
int file_json(const char *path, struct json *json);

#endif
