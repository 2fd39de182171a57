/* SPDX-License-Identifier: BSD-3-Clause
 * The name of a dictionary: a SHA-256 of its atoms.  It does not depend on the order of the atoms,
 * or on the overall sign of an atom.  Any other change gives another name.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * The text of an atom is "d|P|" in decimal, then its values vector by vector in little-endian
 * float32.  The sign is the one that makes the entry of largest magnitude (the last of several)
 * positive, and every zero is +0.  The text of the artifact is "sagitta-dictionary-artifact-v1", a
 * newline, then the SHA-256 of the atoms' texts, 32 bytes each, in ascending order. */
#ifndef MODEL_ARTIFACT_H
#define MODEL_ARTIFACT_H

#include "base/sha256.h"
#include "base/memory.h"
#include "base/types.h"

/* The number of bytes of an atom's text; and out[artifact_atom_bytes(d, p)] <- the text of
 * frame[d][p]. */
size_t artifact_atom_bytes(idx d, idx p);
void artifact_atom(const float *frame, idx d, idx p, unsigned char *out);

struct artifact {
  unsigned char *text; /* [bytes] what was hashed */
  size_t bytes;
  char sha256[SHA256_HEX];
  struct arena arena; /* holds the text */
};
/* Compute the artifact of atoms[k][d][p].  ERR_MEMORY. */
int artifact_make(struct artifact *a, const float *atoms, idx k, idx d, idx p);
void artifact_free(struct artifact *a);
/* Allocate the memory of artifact_make(): the text of the artifact, and
 * *atom[artifact_atom_bytes(d, p)].  a->arena may be dry. */
int artifact_alloc(struct artifact *a, idx k, idx d, idx p, unsigned char **atom);

/* words[HASH_WORDS] <- the hash as numbers.  Files have the hash as numbers, too, since arrays of
 * numbers have a checksum in files and texts have none. */
enum { HASH_WORDS = SHA256_BYTES / 8 };
void artifact_words(const char *sha256, gidx *words);

#endif
