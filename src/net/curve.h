/* SPDX-License-Identifier: BSD-3-Clause
 * CURVE, which encrypts TCP and knows both ends by keys; and who decides which clients may connect.
 *
 * Floor: net.  Texts of keys have KEY_BYTES + 1 bytes.  ERR_DEVICE without a ZeroMQ that has CURVE.
 *
 * ZeroMQ asks at an address inside the process, inproc://zeromq.zap.01, about each client that has
 * proved to have the secret of its key.  It lets everybody in where nobody answers there: so the
 * gate is opened before the socket, and closed behind it. */
#ifndef NET_CURVE_H
#define NET_CURVE_H

#include "net/keys.h"

int curve_check(void);
/* A new pair. */
int curve_make(char *public, char *secret);
/* The public key of a secret one.  ERR_INPUT: it is none. */
int curve_public(char *public, const char *secret);

/* A key that a client has proved to have. */
enum { GATE_KEYS = 256 };
struct gate_key {
  char key[KEY_BYTES + 1];
  int is_known;
  double looked; /* s: when it was looked up */
};

struct gate {
  const struct keys *keys; /* borrowed */
  void *socket;
  double warned; /* when a refusal was logged, which is once a minute */
  struct gate_key recent[GATE_KEYS];
  unsigned n_recent; /* lines of it are used in turn */
};

/* Answer in this context.  socket: set it up as a server with these keys, before it is bound. */
int gate_open(struct gate *gate, void *context, void *socket, const struct keys *keys);
/* Answer what was asked; never waits. */
int gate_answer(struct gate *gate);
void gate_close(struct gate *gate);
/* Is a client's key known, by a look that is a second old at most?  NULL is no key. */
int gate_knows(struct gate *gate, const char *key);

#endif
