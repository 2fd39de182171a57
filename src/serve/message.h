/* SPDX-License-Identifier: BSD-3-Clause
 * What clients and `sagitta serve` say to each other: a header of 64 bytes, then arrays.
 *
 * Floor: serve.  doc/live.md has the protocol.  All numbers are little-endian. */
#ifndef SERVE_MESSAGE_H
#define SERVE_MESSAGE_H

#include "base/types.h"
#include "model/gated_delta.h"

enum { MESSAGE_MAGIC = 0x564c4753, MESSAGE_VERSION = 1, HEADER_BYTES = 64 };

/* Of a reply it is that of the request plus REPLY, or KIND_ERROR. */
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

/* Of an error, in the place of flags; what follows the header is its text. */
enum error_code { ERROR_BAD = 1, ERROR_BUSY, ERROR_LATE, ERROR_CLOSING, ERROR_CANCELLED };

enum { MAX_WATCHED = 4096 };

struct header {
  uint32_t magic;
  uint16_t version, kind;
  uint64_t number; /* the client's, which the reply repeats */
  uint32_t rows, columns;
  uint8_t type, class;
  uint16_t flags;
  uint32_t top;      /* entries of a row at most; 0: all */
  uint64_t deadline; /* ns after arrival, 0: none; of a reply: ns from arrival to reply */
  uint64_t step;  /* of a reply to encode: the step that had its last row; of mixer: the stream */
  uint64_t bytes; /* behind the header */
  uint64_t position; /* of mixer: of its first token in the stream */
};

/* What a server takes; text of --help. */
struct message_limits {
  idx k, p, s, d;
  gidx live_rows, bulk_rows;
  int has_codes;
  const struct gated_delta *mixer; /* that makes rows of tokens; NULL: none; borrowed */
};

/* Numbers of a token: its channels, the logarithms of its decays, and beta. */
gidx token_numbers(const struct gated_delta *m);

/* *h <- the header of data[bytes], which is all of a message.  ERR_INPUT says what is wrong; what
 * could be read of the header is there even so, else zeros. */
int message_parse(const unsigned char *data, size_t bytes, const struct message_limits *limits,
                  struct header *h);

/* x[rows][columns] <- the values of an encode request, widened exactly.  ERR_INPUT names one that
 * is not finite, or a row of a norm above LANE_NORM.  ERR_MEMORY. */
int message_rows(const struct header *h, const unsigned char *data, float *x);

/* x[rows][channels], g[rows][heads decays], beta[rows][heads], one behind another, <- those of a
 * mixer request.  ERR_INPUT names one that is out of range. */
int message_tokens(const struct header *h, const unsigned char *data, const struct gated_delta *m,
                   float *tokens);
/* ERR_INPUT unless a row is finite, and of a norm that a lane takes; row: for the message. */
int row_check(const float *x, gidx row, idx p);

/* atoms[rows], ascending, <- those of a watch request.  ERR_INPUT. */
int message_atoms(const struct header *h, const unsigned char *data, idx k, idx *atoms);

/* A message of malloc() with this header, whose magic, version and bytes are filled in, and `bytes`
 * of content, copied unless it is NULL.  NULL where there is no memory. */
unsigned char *message_make(const struct header *h, const void *content, size_t bytes);

#endif
