/* SPDX-License-Identifier: BSD-3-Clause
 * A question has seven frames: version, number, domain, address, name, mechanism, and the key of 32
 * bytes; an answer has six (ZeroMQ's RFC 27). */
#include "net/curve.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "net/net.h"
#include "net/zeromq.h"

#ifdef NET_HAS_ZEROMQ

enum { FRAMES = 7, FRAME_BYTES = 256, RAW_BYTES = 32, AT_ONCE = 64 };
enum { PAUSE = 60, FRESH = 1 /* s */ };

int curve_check(void)
{
  CHECK(zmq_has("curve"), ERR_DEVICE,
        "this ZeroMQ has no CURVE, by which keys are checked: install one that was built with "
        "libsodium, or serve at a path");
  return OK;
}

int curve_make(char *public, char *secret)
{
  TRY_ZMQ(zmq_curve_keypair(public, secret), "cannot make keys");
  return OK;
}

int curve_public(char *public, const char *secret)
{
  CHECK(zmq_curve_public(public, secret) == 0, ERR_INPUT, "a secret key has wrong characters");
  return OK;
}

int gate_open(struct gate *gate, void *context, void *socket, const struct keys *keys)
{
  static const char domain[] = "sagitta";
  const int yes = 1;
  gate->keys = keys;
  gate->warned = -PAUSE;
  gate->socket = zmq_socket(context, ZMQ_REP);
  CHECK(gate->socket, ERR_MEMORY, "cannot make a socket: %s", zmq_strerror(errno));
  TRY_ZMQ(zmq_bind(gate->socket, "inproc://zeromq.zap.01"), "cannot check keys");
  TRY_ZMQ(zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &yes, sizeof yes), "cannot set up a server");
  TRY_ZMQ(zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys->secret, KEY_BYTES + 1),
          "cannot set the server's key");
  TRY_ZMQ(zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, domain, strlen(domain)), "cannot check keys");
  return OK;
}

void gate_close(struct gate *gate)
{
  if (gate->socket) zmq_close(gate->socket);
}

struct question {
  char frames[FRAMES][FRAME_BYTES];
  int bytes[FRAMES];
  int count;
};

/* *is_there <- 0: no question was asked. */
static int question_receive(struct gate *gate, struct question *q, int *is_there)
{
  int more = 1;
  size_t size = sizeof more;
  for (q->count = 0; more; q->count++) {
    int i = q->count < FRAMES ? q->count : FRAMES - 1;
    int n = zmq_recv(gate->socket, q->frames[i], FRAME_BYTES - 1, ZMQ_DONTWAIT);
    *is_there = n >= 0;
    if (n < 0 && q->count == 0 && (errno == EAGAIN || errno == EINTR)) return OK;
    TRY_ZMQ(n, "cannot hear whose key to check");
    q->bytes[i] = n < FRAME_BYTES ? n : FRAME_BYTES - 1;
    q->frames[i][q->bytes[i]] = 0;
    TRY_ZMQ(zmq_getsockopt(gate->socket, ZMQ_RCVMORE, &more, &size), "cannot check keys");
  }
  return OK;
}

/* The entry of a key; NULL if it has none. */
static struct gate_key *recent_find(struct gate *gate, const char *key)
{
  for (int i = 0; i < GATE_KEYS; i++)
    if (!strcmp(gate->recent[i].key, key)) return &gate->recent[i];
  return NULL;
}

/* A key that cannot be looked up is refused.  A key that was never known gets no entry, so that a
 * stranger with many keys cannot replace the entries of known clients. */
static int key_check(struct gate *gate, const char *key)
{
  int is_known = 0;
  if (keys_find(gate->keys, key, &is_known)) {
    log_warn("%s", status_message());
    status_clear();
  }
  struct gate_key *line = recent_find(gate, key);
  if (!line && !is_known) return 0;
  if (!line) line = &gate->recent[gate->n_recent++ % GATE_KEYS];
  *line = (struct gate_key){.is_known = is_known, .looked = log_seconds()};
  snprintf(line->key, sizeof line->key, "%s", key);
  return is_known;
}

int gate_knows(struct gate *gate, const char *key)
{
  if (!key || strlen(key) != KEY_BYTES) return 0;
  const struct gate_key *line = recent_find(gate, key);
  if (line && log_seconds() - line->looked < FRESH) return line->is_known;
  return key_check(gate, key);
}

/* key <- the key of a client as text; empty: it has none.  The key is looked up when a client
 * connects. */
static int is_allowed(struct gate *gate, const struct question *q, char key[KEY_BYTES + 1])
{
  key[0] = 0;
  if (q->count != FRAMES || strcmp(q->frames[5], "CURVE") || q->bytes[6] != RAW_BYTES) return 0;
  zmq_z85_encode(key, (const unsigned char *)q->frames[6], RAW_BYTES);
  return key_check(gate, key);
}

static void refusal_log(struct gate *gate, const struct question *q)
{
  double now = log_seconds();
  gate->refused++;
  if (now - gate->warned < PAUSE) return;
  gate->warned = now;
  log_warn("refused a client at '%s': its key is in no NAME.pub of '%s/clients'; %u refused so far",
           q->count > 3 ? q->frames[3] : "", gate->keys->folder, gate->refused);
}

/* If the client is allowed, its later messages carry its key. */
static int answer_send(struct gate *gate, const struct question *q, const char *key, int allowed)
{
  const char *const texts[] = {
      "1.0", q->frames[1], allowed ? "200" : "400", allowed ? "OK" : "unknown key", key, ""};
  for (int i = 0; i < LENGTH(texts); i++) {
    size_t n = i == 1 ? (size_t)q->bytes[1] : strlen(texts[i]);
    TRY_ZMQ(zmq_send(gate->socket, texts[i], n, i + 1 < LENGTH(texts) ? ZMQ_SNDMORE : 0),
            "cannot say whose key is known");
  }
  return OK;
}

int gate_answer(struct gate *gate)
{
  for (int i = 0; i < AT_ONCE; i++) {
    struct question q = {0};
    char key[KEY_BYTES + 1];
    int is_there;
    TRY(question_receive(gate, &q, &is_there));
    if (!is_there) return OK;
    int allowed = is_allowed(gate, &q, key);
    if (!allowed) refusal_log(gate, &q);
    TRY(answer_send(gate, &q, key, allowed));
  }
  return OK;
}

#else

int curve_check(void)
{
  return net_check();
}

int curve_make(char *public, char *secret)
{
  (void)public, (void)secret;
  return net_check();
}

int curve_public(char *public, const char *secret)
{
  (void)public, (void)secret;
  return net_check();
}

#endif
