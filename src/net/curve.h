/* SPDX-License-Identifier: BSD-3-Clause
 * CURVE, which encrypts TCP and identifies both ends by keys; and the gate, which decides which
 * clients may connect.
 *
 * Floor: net.  Texts of keys have KEY_BYTES + 1 bytes.  ERR_DEVICE without a ZeroMQ that has CURVE.
 *
 * ZeroMQ asks at an address inside the process, inproc://zeromq.zap.01, about each client that has
 * proved to have the secret of its key.  If nobody answers there, it lets every client in.  So the
 * gate is opened before the socket, and closed after it. */
#ifndef NET_CURVE_H
#define NET_CURVE_H

#include "net/keys.h"

int curve_check(void);
/* A new pair of keys. */
int curve_make(char *public, char *secret);
/* The public key of a secret key.  ERR_INPUT: it is no key. */
int curve_public(char *public, const char *secret);

/* A key of a client that was known when it was last looked up, or once before. */
enum { GATE_KEYS = 256 };
struct gate_key {
  char key[KEY_BYTES + 1];
  int is_known;
  double looked; /* when it was last looked up, in seconds */
};

struct gate {
  const struct keys *keys; /* borrowed */
  void *socket;
  double warned;    /* when a refusal was last logged; at most once a minute */
  unsigned refused; /* so far */
  struct gate_key recent[GATE_KEYS];
  unsigned n_recent; /* entries are used in turn */
};

/* Answer questions in this context.  Set the socket up as a server with these keys, before it is
 * bound. */
int gate_open(struct gate *gate, void *context, void *socket, const struct keys *keys);
/* Answer the questions that were asked; never waits. */
int gate_answer(struct gate *gate);
void gate_close(struct gate *gate);
/* Is a client's key known?  The lookup is at most a second old.  NULL is no key. */
int gate_knows(struct gate *gate, const char *key);

#endif
