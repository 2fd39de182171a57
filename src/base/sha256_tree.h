/* SPDX-License-Identifier: BSD-3-Clause
 * The hash of a list of hashes, as in Certificate Transparency (RFC 6962, 2.1): threads and ranks
 * hash parts of what is long side by side, and what was changed is found part by part.
 *
 * Floor: base.
 *
 * A leaf is SHA-256 of a zero byte and the bytes of a part; a node SHA-256 of a byte 1 and two
 * nodes.  The root of one leaf is that leaf, of more the node of the first 2^m leaves and of the
 * others, 2^m the largest power of two below their number; of none it is SHA-256 of nothing. */
#ifndef BASE_SHA256_TREE_H
#define BASE_SHA256_TREE_H

#include "base/sha256.h"
#include "base/types.h"

/* Leaves that come one after another; zeroed: none yet. */
struct sha256_tree {
  unsigned char nodes[64]
                     [SHA256_BYTES]; /* of a bit of `leaves` that is set: that of 2^bit leaves */
  uint64_t leaves;
};
/* Begin a leaf, whose bytes are given by sha256_add(). */
int sha256_leaf_begin(struct sha256 *h);
/* leaf[SHA256_BYTES] <- that of the bytes of a whole part. */
int sha256_leaf(const void *bytes, size_t length, unsigned char *leaf);
/* The next leaf. */
int sha256_tree_add(struct sha256_tree *tree, const unsigned char *leaf);
/* text[SHA256_HEX] <- the root of the leaves so far. */
int sha256_tree_root(const struct sha256_tree *tree, char *text);

#endif
