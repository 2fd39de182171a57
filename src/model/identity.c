/* SPDX-License-Identifier: BSD-3-Clause
 * Codes and scores of an entry have the same position.  So the terms of codes have another factor;
 * then the hash changes if codes and scores are exchanged. */
#include "model/identity.h"

#include "base/fingerprint.h"
#include "base/status.h"

enum { FOUR = 4, ROW_SHIFT = 16 }; /* each row has 2^16 positions for its atoms */

uint64_t items_terms(const float *values, gidx n, gidx width, gidx first)
{
  gidx each = width % FOUR == 0 ? FOUR : 1, terms = width / each;
  return fingerprint(values, n * terms, (int)(each * sizeof *values), first * terms);
}

uint64_t support_terms(const idx *atoms, gidx n, idx s, gidx first_row)
{
  uint64_t sum = 0;
  for (gidx i = 0; i < n; i++)
    sum += fingerprint(atoms + i * s, s, sizeof *atoms, (first_row + i) << ROW_SHIFT);
  return sum;
}

uint64_t codes_terms(const float *score, const float *codes, gidx count, idx d, gidx first)
{
  return fingerprint(score, count, sizeof *score, first) +
         3 * fingerprint(codes, count * d, sizeof *codes, first * d);
}

uint64_t content_hash(uint64_t sum, gidx n, gidx width, gidx depth)
{
  gidx shape[] = {n, width, depth};
  uint64_t hash = sum + hash64(shape, sizeof shape);
  return hash ? hash : 1;
}

uint64_t mean_hash(const real *mean, idx p)
{
  return mean ? content_hash(fingerprint(mean, p, sizeof *mean, 0), p, 1, 1) : 0;
}

int identity_rows_check(const char *codes, uint64_t named, const char *rows, uint64_t found)
{
  CHECK(!named || named == found, ERR_INPUT,
        "the codes of '%s' are for other rows than '%s': rows_hash %016llx, not %016llx; give the "
        "rows that were encoded",
        codes, rows, (unsigned long long)named, (unsigned long long)found);
  return OK;
}

int identity_dictionary_check(const char *codes, uint64_t named, const char *dictionary,
                              uint64_t found)
{
  CHECK(!named || named == found, ERR_INPUT,
        "the codes of '%s' are for another dictionary than '%s': dictionary_hash %016llx, not "
        "%016llx; give the dictionary that the rows were encoded with",
        codes, dictionary, (unsigned long long)named, (unsigned long long)found);
  return OK;
}

uint64_t classes_hash(const idx *color, idx k)
{
  return content_hash(fingerprint(color, k, sizeof *color, 0), k, 1, 1);
}
