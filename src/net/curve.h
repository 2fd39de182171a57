/* SPDX-License-Identifier: BSD-3-Clause
 * CURVE, which encrypts TCP and identifies both ends by keys; and the gate, which decides which
 * clients may connect.
 *
 * Floor: net.  Texts of keys have KEY_BYTES + 1 bytes.  ERR_DEVICE without a ZeroMQ that has CURVE.
 *
 * ZeroMQ asks at an address inside the process, inproc://zeromq.zap.01, about each client that has
 * proved that it has the secret of its key.  If nothing listens there, ZeroMQ lets every client in.
 * So the gate is opened before the socket is bound, and closed after the socket. */
#ifndef NET_CURVE_H
#define NET_CURVE_H

#include "net/keys.h"

int curve_check(void);
/* A new pair of keys. */
int curve_make(char *public, char *secret);
/* The public key of a secret key.  ERR_INPUT: it is no key. */
int curve_public(char *public, const char *secret);

/* The result of looking up a client's key.  Only keys that were known at least once have an
 * entry. */
enum { GATE_KEYS = 256 };
struct gate_key {
  char key[KEY_BYTES + 1];
  int is_known;
  double looked; /* time of the last lookup, in seconds */
};

struct gate {
  const struct keys *keys; /* borrowed */
  void *socket;
  double warned;    /* time of the last logged refusal; at most one per minute is logged */
  unsigned refused; /* number of refusals so far */
  struct gate_key recent[GATE_KEYS];
  unsigned n_recent; /* number of entries that were made; old entries are replaced in turn */
};

/* Prepare to answer ZeroMQ's questions in `context`, and make `socket` a CURVE server with these
 * keys.  Call it before the socket is bound. */
int gate_open(struct gate *gate, void *context, void *socket, const struct keys *keys);
/* Answer questions that were asked, at most 64 of them; never waits. */
int gate_answer(struct gate *gate);
void gate_close(struct gate *gate);
/* Is a client's key known?  A lookup is used for at most a second.  Returns 0 if key is NULL. */
int gate_knows(struct gate *gate, const char *key);

#endif
