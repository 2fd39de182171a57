/* SPDX-License-Identifier: BSD-3-Clause
 * The text of each atom is hashed; the hashes are sorted, and their list is hashed. */
#include "model/artifact.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static const char title[] = "sagitta-dictionary-artifact-v1\n";
enum { TITLE_BYTES = sizeof title - 1 };

size_t artifact_atom_bytes(idx d, idx p)
{
  return (size_t)snprintf(NULL, 0, "%d|%d|", d, p) + 4 * (size_t)d * (size_t)p;
}

/* Is the entry of largest magnitude negative?  Then the sign is changed. */
static int is_negative(const float *values, gidx count)
{
  gidx best = 0;
  for (gidx i = 1; i < count; i++)
    if (fabsf(values[i]) >= fabsf(values[best])) best = i;
  return values[best] < 0;
}

void artifact_atom(const float *frame, idx d, idx p, unsigned char *out)
{
  gidx count = (gidx)d * p;
  int negate = is_negative(frame, count);
  char head[32];
  int length = snprintf(head, sizeof head, "%d|%d|", d, p);
  memcpy(out, head, (size_t)length);
  out += length;
  for (gidx i = 0; i < count; i++, out += 4) {
    float value = frame[i] == 0 ? 0 : negate ? -frame[i] : frame[i];
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int b = 0; b < 4; b++) out[b] = (unsigned char)(bits >> (8 * b));
  }
}

static int hash_compare(const void *a, const void *b)
{
  return memcmp(a, b, SHA256_BYTES);
}

int artifact_alloc(struct artifact *a, idx k, idx d, idx p, unsigned char **atom)
{
  a->bytes = TITLE_BYTES + (size_t)k * SHA256_BYTES;
  TRY(arena_alloc(&a->arena, &a->text, (gidx)a->bytes, 1));
  return arena_alloc(&a->arena, atom, (gidx)artifact_atom_bytes(d, p), 1);
}

int artifact_make(struct artifact *a, const float *atoms, idx k, idx d, idx p)
{
  unsigned char digest[SHA256_BYTES], *text;
  size_t atom_bytes = artifact_atom_bytes(d, p);
  *a = (struct artifact){0};
  TRY(artifact_alloc(a, k, d, p, &text));
  memcpy(a->text, title, TITLE_BYTES);
  unsigned char *hashes = a->text + TITLE_BYTES;
  for (idx i = 0; i < k; i++) {
    artifact_atom(atoms + (gidx)i * d * p, d, p, text);
    TRY(sha256(text, atom_bytes, hashes + (gidx)i * SHA256_BYTES));
  }
  qsort(hashes, (size_t)k, SHA256_BYTES, hash_compare);
  TRY(sha256(a->text, a->bytes, digest));
  sha256_hex(digest, a->sha256);
  return OK;
}

void artifact_words(const char *sha256, gidx *words)
{
  for (int i = 0; i < HASH_WORDS; i++) {
    uint64_t word = 0;
    for (int j = 0; j < 16; j++) {
      char digit = sha256[16 * i + j];
      word = 16 * word + (uint64_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    memcpy(words + i, &word, sizeof word);
  }
}

void artifact_free(struct artifact *a)
{
  arena_free(&a->arena);
  *a = (struct artifact){0};
}
