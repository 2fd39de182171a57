/* SPDX-License-Identifier: BSD-3-Clause
 * What a file holds, as the command `inspect` says it to programs; doc/formats.md has its entries.
 *
 * Floor: io.  Not collective. */
#ifndef IO_INSPECT_JSON_H
#define IO_INSPECT_JSON_H

struct json;

/* Add an object about a file to the list that is open: all that file_inspect() shows, in its types.
 * ERR_IO, ERR_INPUT: as of that; the object may then be incomplete. */
int file_json(const char *path, struct json *json);

#endif
