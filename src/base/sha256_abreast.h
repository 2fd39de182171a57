/* SPDX-License-Identifier: BSD-3-Clause
 * Hash two or three parts of equal length to leaves (sha256_tree.h) at the same time, by SHA
 * instructions of the processor.  In one hash each instruction waits for the one before it.  So two
 * or three interleaved hashes take little longer than one.
 *
 * Floor: base; included by sha256_tree.c and a test. */
#ifndef BASE_SHA256_ABREAST_H
#define BASE_SHA256_ABREAST_H

#include <stddef.h>

enum { SHA256_ABREAST_LEAST = 64 }; /* the smallest length of a part, in bytes */

/* Does the processor have these instructions, and was this program built with them? */
int sha256_abreast_has(void);
/* leaves[count][SHA256_BYTES] <- the leaves of parts[count][length].  count is 2 or 3; length is at
 * least SHA256_ABREAST_LEAST.  Call it only if sha256_abreast_has(). */
void sha256_abreast(const unsigned char *const *parts, int count, size_t length,
                    unsigned char *const *leaves);

#endif
