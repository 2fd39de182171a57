/* SPDX-License-Identifier: BSD-3-Clause
 * Leaves of parts of one length (sha256_tree.h), hashed abreast by instructions of the processor:
 * in one hash each waits for the one before it, so that two or three take little longer than one.
 *
 * Floor: base; included by sha256_tree.c and a test. */
#ifndef BASE_SHA256_ABREAST_H
#define BASE_SHA256_ABREAST_H

#include <stddef.h>

enum { SHA256_ABREAST_LEAST = 64 }; /* bytes of a part */

/* Has the processor these instructions, and this program a use of them? */
int sha256_abreast_has(void);
/* leaves[2 or 3][SHA256_BYTES] <- those of parts[as many] of so many bytes. */
void sha256_abreast(const unsigned char *const *parts, int count, size_t length,
                    unsigned char *const *leaves);

#endif
