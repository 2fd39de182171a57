/* SPDX-License-Identifier: BSD-3-Clause
 * Where `sagitta serve` listens, and who may connect.
 *
 * Floor: encoding.  On rank 0; serve_access_check() on any rank. */
#ifndef ENCODING_SERVE_ACCESS_H
#define ENCODING_SERVE_ACCESS_H

#include "net/address.h"
#include "net/keys.h"

struct serve_access {
  char address[2 * ADDRESS_BYTES];
  int lock; /* descriptor of the lock of a path; -1: none */
  struct keys keys;
};

/* Check the options.  ERR_USAGE: keys or --no-keys for a path; a port with both or neither.
 * --no-keys allows a port without keys, at an address of this machine only; then all users of the
 * machine can connect. */
int serve_access_check(const char *listen, const char *keys, int no_keys);
/* Find the address, lock it if it is a path, and read the keys.  keys: may be NULL. */
int serve_access_open(struct serve_access *a, const char *listen, const char *keys);
void serve_access_close(struct serve_access *a);

/* Call this when clients are accepted.  file, unless it is NULL, gets the address and the process
 * id; it is complete when it appears. */
int serve_access_ready(struct serve_access *a, const char *address, const char *file);

/* Make keys in a new folder.  The log says how to use them. */
int serve_keys_make(const char *folder);

#endif
