/* SPDX-License-Identifier: BSD-3-Clause
 * Where `sagitta serve` listens, and who may connect.
 *
 * Floor: encoding.  Rank 0, but for serve_access_check(). */
#ifndef ENCODING_SERVE_ACCESS_H
#define ENCODING_SERVE_ACCESS_H

#include "net/address.h"
#include "net/keys.h"

struct serve_access {
  char address[2 * ADDRESS_BYTES];
  int lock; /* descriptor of the lock of a path; -1: none */
  struct keys keys;
};

/* Check the options.  ERR_USAGE: keys for a path, or a port without keys.  --no-keys allows that
 * only for addresses of this machine, and then all its users can connect. */
int serve_access_check(const char *listen, const char *keys, int no_keys);
/* Find the address, lock it if it is a path, and read the keys.  keys: may be NULL. */
int serve_access_open(struct serve_access *a, const char *listen, const char *keys);
void serve_access_close(struct serve_access *a);

/* Call this when clients are accepted.  file: written with the address, and complete when it
 * appears; NULL: none. */
int serve_access_ready(struct serve_access *a, const char *address, const char *file);

/* Make keys in a new folder.  The log says how to use them. */
int serve_keys_make(const char *folder);

#endif
