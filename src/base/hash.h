/* SPDX-License-Identifier: BSD-3-Clause
 * SHA-256, by OpenSSL's libcrypto.
 *
 * Floor: base; the only user of openssl. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>

enum { HASH_BYTES = 32, HASH_TEXT = 2 * HASH_BYTES + 1 };

/* digest[HASH_BYTES] <- SHA-256 of the bytes.  ERR_INTERNAL when libcrypto refuses. */
int hash_bytes(const void *bytes, size_t length, unsigned char *digest);

/* text[HASH_TEXT] <- lower-case hexadecimal. */
void hash_text(const unsigned char *digest, char *text);

#endif
