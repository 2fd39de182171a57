/* SPDX-License-Identifier: BSD-3-Clause
 * A folder of keys: they identify a server, and the clients that may connect by TCP.
 *
 * Floor: net.  Keys are those of CURVE (curve.h).  Each file has one key, as a line of 40
 * characters:
 *
 *     server.secret     of the server
 *     server.pub        of the server; clients identify it by this key
 *     client.secret     of a client
 *     clients/NAME.pub  of a client that may connect; keys_make() makes client.pub
 *
 * Only the owner of the folder may enter it and read secrets. */
#ifndef NET_KEYS_H
#define NET_KEYS_H

enum { KEY_BYTES = 40 }; /* of a key as text, Z85, without the final zero */

struct keys {
  const char *folder; /* borrowed; NULL: there are no keys */
  char secret[KEY_BYTES + 1];
};

/* Make the folder, with keys of a server and of one client.  ERR_CREATE if it exists. */
int keys_make(const char *folder);

/* Read the server's keys.  ERR_INPUT: others may read or change them, they do not belong together,
 * a file is no key, or no client may connect.  ERR_IO: a file cannot be read. */
int keys_read(struct keys *keys, const char *folder);

/* *is_known <- 1 if a file of clients/ has the key now.  The folder is read in each call, so
 * clients can be added and removed while the server runs. */
int keys_find(const struct keys *keys, const char *client, int *is_known);

#endif
