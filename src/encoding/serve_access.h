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
  int lock; /* of a path; -1: none */
  struct keys keys;
};

/* Options that do not fit: all users of a machine reach a port, and so do others than its own. */
int serve_access_check(const char *listen, const char *keys, int no_keys);
/* Find the address, lock a path, read keys, which may be NULL. */
int serve_access_open(struct serve_access *a, const char *listen, const char *keys);
void serve_access_close(struct serve_access *a);

/* Clients are accepted here: FILE, unless it is NULL, appears when it is complete. */
int serve_access_ready(struct serve_access *a, const char *address, const char *file);

/* Keys in a new folder, and in the log what is done with them. */
int serve_keys_make(const char *folder);

#endif
