/* SPDX-License-Identifier: BSD-3-Clause
 * The name of a dictionary: a SHA-256 that does not depend on the order of the atoms nor on an
 * atom's overall sign, and changes with anything else.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * An atom's text is "d|P|" in decimal, then its values row by row, little-endian f32, with the sign
 * that makes the entry of largest magnitude (the last one on ties) positive, every zero +0.
 * The artifact's text is "sagitta-dictionary-artifact-v1", a newline, then the SHA-256 of the
 * atoms' texts, 32 bytes each, in ascending order. */
#ifndef MODEL_ARTIFACT_H
#define MODEL_ARTIFACT_H

#include "base/hash.h"
#include "base/memory.h"
#include "base/types.h"

/* Bytes of an atom's text, and the text: out[artifact_atom_bytes()]. */
size_t artifact_atom_bytes(idx d, idx p);
void artifact_atom(const float *frame, idx d, idx p, unsigned char *out);

struct artifact {
  unsigned char *text; /* [bytes] what was hashed */
  size_t bytes;
  char sha256[HASH_TEXT];
  struct arena arena; /* holds the text */
};
/* Of atoms[k][d][p].  ERR_MEMORY. */
int artifact_make(struct artifact *a, const float *atoms, idx k, idx d, idx p);
void artifact_free(struct artifact *a);

/* words[HASH_WORDS] <- the hash's text as numbers: text in a file has no checksum, they have. */
enum { HASH_WORDS = HASH_BYTES / 8 };
void artifact_words(const char *sha256, gidx *words);

#endif
