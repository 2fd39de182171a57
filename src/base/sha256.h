/* SPDX-License-Identifier: BSD-3-Clause
 * SHA-256, by OpenSSL's libcrypto.
 *
 * Floor: base; the only user of OpenSSL. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>

enum { SHA256_BYTES = 32, SHA256_HEX = 2 * SHA256_BYTES + 1 };

/* digest[SHA256_BYTES] <- SHA-256 of the bytes.  ERR_INTERNAL when libcrypto refuses. */
int sha256(const void *bytes, size_t length, unsigned char *digest);

/* The hash of bytes that are added in pieces.  A zeroed struct is a hash that has not begun. */
struct sha256 {
  void *context; /* owned */
};
int sha256_begin(struct sha256 *h);
int sha256_add(struct sha256 *h, const void *bytes, size_t length);
/* digest[SHA256_BYTES] <- SHA-256 of all pieces; frees what h holds. */
int sha256_end(struct sha256 *h, unsigned char *digest);
/* Stop early; safe on a zeroed struct. */
void sha256_free(struct sha256 *h);

/* text[SHA256_HEX] <- lower-case hexadecimal. */
void sha256_hex(const unsigned char *digest, char *text);

#endif
