/* SPDX-License-Identifier: BSD-3-Clause
 * The hash of a list of hashes, as in Certificate Transparency (RFC 6962, 2.1).  Threads and ranks
 * can hash parts of a long text in parallel, and it is possible to find out which part has changed.
 *
 * Floor: base.
 *
 * A leaf is SHA-256 of a zero byte and the bytes of a part; a node is SHA-256 of a byte 1 and two
 * hashes, each a leaf or a node.  The root of one leaf is that leaf.  The root of n > 1 leaves is a
 * node of two roots: the root of the first 2^m leaves, and the root of the others.  2^m is the
 * largest power of two below n.  The root of no leaf is SHA-256 of nothing. */
#ifndef BASE_SHA256_TREE_H
#define BASE_SHA256_TREE_H

#include "base/sha256.h"
#include "base/types.h"

/* The tree of the leaves that were added so far; a zeroed struct has no leaves. */
struct sha256_tree {
  unsigned char nodes[64]
                     /* nodes[b] is used if bit b of `leaves` is set: the root of 2^b leaves */
                     [SHA256_BYTES];
  uint64_t leaves;
};
/* Begin a leaf; give its bytes with sha256_add(). */
int sha256_leaf_begin(struct sha256 *h);
/* leaf[SHA256_BYTES] <- the leaf of a whole part. */
int sha256_leaf(const void *bytes, size_t length, unsigned char *leaf);
/* leaves[count] <- the leaves of parts[count], which have equal lengths.  On processors with SHA
 * instructions, two or three at once take less time than one after another. */
enum { SHA256_ABREAST = 3 };
int sha256_leaves(const unsigned char *const *parts, int count, size_t length,
                  unsigned char *const *leaves);
/* Add the next leaf. */
int sha256_tree_add(struct sha256_tree *tree, const unsigned char *leaf);
/* text[SHA256_HEX] <- the root of the leaves so far. */
int sha256_tree_root(const struct sha256_tree *tree, char *text);

#endif
