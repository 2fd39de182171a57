/* SPDX-License-Identifier: BSD-3-Clause
 * known_handle() has a case for each kind of message.  The lock is held for fields that other
 * threads use. */
#include "serve/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "serve/report.h"

static const char closing_text[] = "the server is about to end";

/* Send a reply that has no results of rows.  If there is no memory, no reply is sent. */
static int reply_send(struct front *f, const struct net_peer *peer, const struct header *h,
                      const void *content, size_t bytes)
{
  unsigned char *data = message_make(h, content, bytes);
  return data ? front_send(f, peer, data, HEADER_BYTES + bytes, NULL) : OK;
}

static int error_send(struct front *f, const struct net_peer *peer, const struct header *h,
                      enum error_code code, const char *text)
{
  struct header reply = *h;
  reply.kind = KIND_ERROR;
  reply.flags = (uint16_t)code;
  pthread_mutex_lock(&f->lock);
  f->counts.refused[code]++;
  pthread_mutex_unlock(&f->lock);
  return reply_send(f, peer, &reply, text, strlen(text));
}

static int status_send(struct front *f, const struct net_peer *peer, const struct header *h)
{
  char *text = NULL;
  size_t bytes = 0;
  struct header reply = *h;
  reply.kind += REPLY;
  int status = front_status(f, &text, &bytes);
  if (!status) status = reply_send(f, peer, &reply, text, bytes);
  free(text);
  return status;
}

/* Mark the request that the message names, if it is in a queue.  The main thread then gives it
 * up. */
static int cancel(struct front *f, const struct net_peer *peer, const struct header *h)
{
  struct header reply = *h;
  const struct request_queue *queues[] = {&f->live, &f->bulk, &f->held};
  pthread_mutex_lock(&f->lock);
  for (int q = 0; q < LENGTH(queues); q++)
    for (struct request *r = queues[q]->first; r; r = r->next)
      if (r->header.number == h->number && r->peer.bytes == peer->bytes &&
          !memcmp(r->peer.name, peer->name, peer->bytes))
        r->is_cancelled = 1;
  pthread_cond_signal(&f->changed);
  pthread_mutex_unlock(&f->lock);
  reply.kind += REPLY;
  return reply_send(f, peer, &reply, NULL, 0);
}

static int watch(struct front *f, struct client *client, const struct header *h,
                 const unsigned char *data)
{
  struct header reply = *h;
  idx *atoms = malloc((size_t)h->rows * sizeof *atoms + 1);
  CHECK(atoms, ERR_MEMORY, "cannot allocate %u atoms", h->rows);
  int status = message_atoms(h, data, f->limits.k, atoms);
  if (status) {
    free(atoms);
    return status;
  }
  free(client->watched);
  client->watched = atoms;
  client->n_watched = (idx)h->rows;
  reply.kind += REPLY;
  return reply_send(f, &client->peer, &reply, NULL, 0);
}

/* *rows <- the rows of a message.  If it has tokens: *tokens <- the tokens, and *rows <- memory for
 * the rows that the mixer makes from them.  The caller owns both, also after a failure. */
static int rows_read(const struct message_limits *m, const struct header *h,
                     const unsigned char *data, float **rows, float **tokens)
{
  size_t bytes = (size_t)h->rows * h->columns * sizeof **rows;
  int is_mixed = h->kind == KIND_MIXER;
  *rows = malloc(is_mixed ? (size_t)h->rows * (size_t)m->p * sizeof **rows + 1 : bytes + 1);
  *tokens = is_mixed ? malloc(bytes + 1) : NULL;
  if (!*rows || (is_mixed && !*tokens)) return ERR_MEMORY;
  return is_mixed ? message_tokens(h, data, m->mixer, *tokens) : message_rows(h, data, *rows);
}

/* *r <- a request with the rows of a message. */
static int request_read(const struct message_limits *m, const struct client *client,
                        const struct header *h, const unsigned char *data, struct request **r)
{
  int is_watched = (h->flags & FLAG_WATCHED) != 0;
  CHECK(!is_watched || client->watched, ERR_INPUT,
        "only watched atoms are asked for, and no list of them was sent: send kind 5 first");
  size_t watched = is_watched ? (size_t)client->n_watched * sizeof(idx) : 0;
  float *rows, *tokens;
  idx *atoms = is_watched ? malloc(watched + 1) : NULL;
  int status = rows_read(m, h, data, &rows, &tokens);
  if (!status && is_watched && !atoms) status = ERR_MEMORY;
  if (!status && is_watched) memcpy(atoms, client->watched, watched);
  *r = status ? NULL : request_make(&client->peer, h, rows, atoms, client->n_watched);
  if (*r) {
    (*r)->tokens = tokens;
    return OK;
  }
  free(rows);
  free(tokens);
  free(atoms);
  return status ? status : ERR_MEMORY;
}

/* Would this reply exceed the limit on bytes of replies that this client has not taken, or the
 * limit for all clients together?  Replies to waiting requests count, too. */
static int is_unread(const struct front *f, const struct client *client, gidx reply)
{
  enum { CLIENTS = 4 }; /* the limit for all clients together is CLIENTS times that for one */
  gidx own = client->owed + unread_bytes(client->unread);
  gidx all = f->owed + unread_bytes(f->clients.unread);
  if (own == 0) return 0; /* one reply per client is always allowed */
  return own + reply > f->unread_bytes || all + reply > CLIENTS * f->unread_bytes;
}

/* Returns NULL if the server can accept a request of `bytes` bytes whose reply has `reply` bytes.
 * Otherwise returns the reason why not, and *code <- the error code. */
static const char *refusal(struct front *f, const struct client *client, gidx bytes, gidx reply,
                           enum error_code *code)
{
  pthread_mutex_lock(&f->lock);
  int is_closing = f->is_closing, is_full = f->bytes > 0 && f->bytes + bytes > f->queue_bytes;
  pthread_mutex_unlock(&f->lock);
  *code = is_closing ? ERROR_CLOSING : ERROR_BUSY;
  if (is_closing) return closing_text;
  if (client->waiting + unread_replies(client->unread) >= f->credit)
    return "too many requests of this client wait: read replies first";
  if (is_unread(f, client, reply))
    return "too many bytes of replies wait to be read: read those of this client first";
  return is_full ? "too many rows wait: try again later" : NULL;
}

/* Queue a request.  *code <- 0: it is queued.  Otherwise *code and *why tell the error: the server
 * began to close after the call of refusal(), or stream_accept() refused the request. */
static void request_add(struct front *f, struct request *r, enum error_code *code, const char **why)
{
  int live = r->header.class == CLASS_LIVE;
  pthread_mutex_lock(&f->lock);
  *code = f->is_closing ? ERROR_CLOSING : 0;
  *why = closing_text;
  if (!*code && r->tokens) stream_accept(&f->streams, r, code, why);
  if (!*code) {
    f->bytes += request_bytes(r, f->limits.p);
    if (live) f->live_seen = r->arrived;
    queue_add(r->tokens ? &f->held : live ? &f->live : &f->bulk, r);
    pthread_cond_signal(&f->changed);
  }
  pthread_mutex_unlock(&f->lock);
}

/* A mixer request without tokens: the client ends the stream. */
static int stream_close(struct front *f, const struct net_peer *peer, const struct header *h)
{
  struct header reply = *h;
  reply.kind += REPLY;
  reply.columns = 0;
  pthread_mutex_lock(&f->lock);
  stream_end(&f->streams, peer, h->step);
  pthread_mutex_unlock(&f->lock);
  return reply_send(f, peer, &reply, NULL, 0);
}

static int encode(struct front *f, struct client *client, const struct header *h,
                  const unsigned char *data)
{
  struct request *r = NULL;
  enum error_code code;
  int is_watched = (h->flags & FLAG_WATCHED) != 0;
  gidx bytes = request_bytes(&(const struct request){.header = *h}, f->limits.p);
  gidx reply = reply_bytes(h, is_watched ? client->n_watched : -1, &f->limits);
  const char *why = refusal(f, client, bytes, reply, &code);
  if (why) return error_send(f, &client->peer, h, code, why);
  int status = request_read(&f->limits, client, h, data, &r);
  if (status == ERR_MEMORY) {
    status_clear();
    return error_send(f, &client->peer, h, ERROR_BUSY, "memory is short: try again later");
  }
  TRY(status);
  r->reply_bytes = reply;
  request_add(f, r, &code, &why);
  if (!code) {
    client->waiting++;
    client->owed += reply;
    f->owed += reply;
    return OK;
  }
  request_free(r);
  return error_send(f, &client->peer, h, code, why);
}

static int known_handle(struct front *f, struct client *client, const struct header *h,
                        const unsigned char *data)
{
  struct header reply = *h;
  reply.kind += REPLY;
  switch (h->kind) {
  case KIND_HELLO:
    return reply_send(f, &client->peer, &reply, f->hello, strlen(f->hello));
  case KIND_STATUS:
    return status_send(f, &client->peer, h);
  case KIND_CANCEL:
    return cancel(f, &client->peer, h);
  case KIND_WATCH:
    return watch(f, client, h, data);
  case KIND_MIXER:
    if (!h->rows) return stream_close(f, &client->peer, h);
    return encode(f, client, h, data);
  default:
    return encode(f, client, h, data);
  }
}

int message_handle(struct front *f, const struct net_message *m)
{
  struct header h = {0};
  int status = OK;
  if (m->frames != 1)
    status =
        status_fail(ERR_INPUT, __FILE__, __LINE__, "a message of %d frames, not of one", m->frames);
  if (!status) status = message_parse(m->data, m->bytes, &f->limits, &h);
  if (m->is_refused) {
    status_clear();
    status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                         "the server does not know the key of this client any more");
  }
  struct client *client = status ? NULL : clients_find(&f->clients, &m->peer);
  if (!status && !client)
    return error_send(f, &m->peer, &h, ERROR_BUSY, "there are too many clients: try again later");
  if (!status) status = known_handle(f, client, &h, m->data + HEADER_BYTES);
  if (status != ERR_INPUT) return status;
  char text[256];
  snprintf(text, sizeof text, "%s", status_message());
  status_clear();
  return error_send(f, &m->peer, &h, ERROR_BAD, text);
}
