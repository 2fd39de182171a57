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

/* The field `flags` of an error reply.  The text of the error follows the header. */
enum error_code { ERROR_BAD = 1, ERROR_BUSY, ERROR_LATE, ERROR_CLOSING, ERROR_CANCELLED };

enum { MAX_WATCHED = 4096 };

struct header {
  uint32_t magic;
  uint16_t version, kind;
  uint64_t number; /* chosen by the client; the reply repeats it */
  uint32_t rows, columns;
  uint8_t type, class;
  uint16_t flags;
  uint32_t top;      /* most entries per row of the reply; 0: all */
  uint64_t deadline; /* request: ns after arrival, 0: none; reply: ns from arrival to reply */
  /* Reply to encode or mixer: the number of the server's step that had the last row of the request.
   * Request for the mixer: the number that the client chose for the stream. */
  uint64_t step;
  uint64_t bytes;    /* bytes after the header */
  uint64_t position; /* mixer: position of its first token in the stream */
};

/* Sizes of the server's dictionary, and limits of its requests. */
struct message_limits {
  idx k, p, s, d;                  /* atoms, columns, most atoms of a row, vectors of an atom */
  gidx live_rows, bulk_rows;       /* most rows of a request */
  int has_codes;                   /* replies have codes */
  const struct gated_delta *mixer; /* makes rows from tokens; NULL: none; borrowed */
};

/* How many numbers a token has: its channels, and for each head the logarithms of its decays and
 * beta. */
gidx token_numbers(const struct gated_delta *m);

/* *h <- the header of the message data[bytes].  ERR_INPUT says what is wrong; *h then has the
 * fields as they were sent, or zeros if the message is shorter than a header. */
int message_parse(const unsigned char *data, size_t bytes, const struct message_limits *limits,
                  struct header *h);

/* x[rows][columns] <- the values of an encode request, widened exactly.  ERR_INPUT names a value
 * that is not finite, or a row whose norm is above LANE_NORM.  ERR_MEMORY. */
int message_rows(const struct header *h, const unsigned char *data, float *x);

/* tokens <- the arrays of a mixer request, one after another: x[rows][channels], g[rows][heads *
 * decays], beta[rows][heads].  ERR_INPUT names a value that is out of range or not finite. */
int message_tokens(const struct header *h, const unsigned char *data, const struct gated_delta *m,
                   float *tokens);
/* ERR_INPUT: a value of x[p] is not finite, or the norm of x is above LANE_NORM.  row: the number
 * of the row, for the message. */
int row_check(const float *x, gidx row, idx p);

/* atoms[rows] <- the atoms of a watch request.  ERR_INPUT: an atom is not in 0 .. k - 1, or the
 * atoms do not ascend. */
int message_atoms(const struct header *h, const unsigned char *data, idx k, idx *atoms);

/* Make a message with malloc(): this header, then `bytes` bytes, which are copied from content
 * unless that is NULL.  The members magic, version and bytes of the header are filled in.  Returns
 * NULL if there is no memory. */
unsigned char *message_make(const struct header *h, const void *content, size_t bytes);

#endif
