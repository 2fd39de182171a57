/* SPDX-License-Identifier: BSD-3-Clause
 * Messages between clients and `sagitta serve`: a header of 64 bytes, then arrays.
 *
 * Floor: serve.  doc/live.md has the protocol.  All numbers are little-endian. */
#ifndef SERVE_MESSAGE_H
#define SERVE_MESSAGE_H

#include "base/types.h"
#include "model/gated_delta.h"

enum { MESSAGE_MAGIC = 0x564c4753, MESSAGE_VERSION = 1, HEADER_BYTES = 64 };

/* The kind of a reply is the kind of its request plus REPLY, or KIND_ERROR. */
enum message_kind {
  KIND_HELLO = 1,
  KIND_ENCODE = 2,
  KIND_STATUS = 3,
  KIND_CANCEL = 4,
  KIND_WATCH = 5,
  KIND_MIXER = 6,
  REPLY = 128,
  KIND_ERROR = 255
};
enum row_type { ROW_F32 = 1, ROW_F16 = 2, ROW_BF16 = 3 };
enum request_class { CLASS_LIVE = 0, CLASS_BULK = 1 };
enum message_flag { FLAG_SCORES = 1, FLAG_WATCHED = 2 };

/* Codes of an error reply, in the field `flags`; the text of the error follows the header. */
enum error_code { ERROR_BAD = 1, ERROR_BUSY, ERROR_LATE, ERROR_CLOSING, ERROR_CANCELLED };

enum { MAX_WATCHED = 4096 };

struct header {
  uint32_t magic;
  uint16_t version, kind;
  uint64_t number; /* chosen by the client; the reply repeats it */
  uint32_t rows, columns;
  uint8_t type, class;
  uint16_t flags;
  uint32_t top;      /* most entries of a row; 0: all */
  uint64_t deadline; /* request: ns after arrival, 0: none; reply: ns from arrival to reply */
  uint64_t step;     /* reply to encode: the step that had its last row; mixer: the stream */
  uint64_t bytes;    /* after the header */
  uint64_t position; /* mixer: position of its first token in the stream */
};

/* What a server takes; text of --help. */
struct message_limits {
  idx k, p, s, d;
  gidx live_rows, bulk_rows;
  int has_codes;
  const struct gated_delta *mixer; /* makes rows of tokens; NULL: none; borrowed */
};

/* How many numbers a token has: its channels, the logarithms of its decays, and beta. */
gidx token_numbers(const struct gated_delta *m);

/* *h <- the header of the message data[bytes].  ERR_INPUT says what is wrong; *h then has the
 * fields that could be read, and zeros otherwise. */
int message_parse(const unsigned char *data, size_t bytes, const struct message_limits *limits,
                  struct header *h);

/* x[rows][columns] <- the values of an encode request, widened exactly.  ERR_INPUT names a value
 * that is not finite, or a row whose norm is above LANE_NORM.  ERR_MEMORY. */
int message_rows(const struct header *h, const unsigned char *data, float *x);

/* tokens <- the arrays of a mixer request, one after another: x[rows][channels], g[rows][heads *
 * decays], beta[rows][heads].  ERR_INPUT names a value that is out of range. */
int message_tokens(const struct header *h, const unsigned char *data, const struct gated_delta *m,
                   float *tokens);
/* ERR_INPUT: a value of the row x[p] is not finite, or its norm is above LANE_NORM.  row: its
 * number, for the message. */
int row_check(const float *x, gidx row, idx p);

/* atoms[rows] <- the atoms of a watch request, ascending.  ERR_INPUT. */
int message_atoms(const struct header *h, const unsigned char *data, idx k, idx *atoms);

/* Make a message with malloc(): this header, with magic, version and bytes filled in, then `bytes`
 * of content, which are copied unless content is NULL.  NULL: there is no memory. */
unsigned char *message_make(const struct header *h, const void *content, size_t bytes);

#endif
