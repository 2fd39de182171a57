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

/* text[SHA256_HEX] <- lower-case hexadecimal. */
void sha256_hex(const unsigned char *digest, char *text);

#endif
