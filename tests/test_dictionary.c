/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: atoms_check(), which checks four frames at a time, names the first wrong atom and what is
 * wrong with it, whatever its position.  If atoms_normalize(), which scales four atoms at a time,
 * reports that all atoms could be scaled, atoms_check() finds nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/status.h"
#include "model/dictionary.h"
#include "tap.h"

enum { P = 21, FIRST = 100 };

/* Draw `count` orthonormal frames. */
static void frames_fill(float *atoms, idx count, idx d)
{
  real frame[MAX_FRAME * P];
  for (idx a = 0; a < count; a++) {
    for (idx i = 0; i < d * P; i++)
      frame[i] = random_normal(5, 1, (uint64_t)a * MAX_FRAME * P + (uint64_t)i);
    frame_orthonormalize(frame, d, P);
    for (idx i = 0; i < d * P; i++) atoms[a * d * P + i] = (float)frame[i];
  }
}

/* Faults of a vector of a frame.  SLANTED: a part of another vector is added to it. */
enum fault { NOT_A_NUMBER, INFINITE, LONG, SHORT, ZERO, SLANTED, FAULTS };
static const char *const words[FAULTS] = {"is nan",          "is inf",     "has norm 1.0002",
                                          "has norm 0.9998", "has norm 0", "have cosine 0.000"};
static void fault_put(float *vector, const float *other, enum fault fault)
{
  if (fault == NOT_A_NUMBER) vector[P - 1] = NAN;
  if (fault == INFINITE) vector[P - 1] = INFINITY;
  for (idx c = 0; c < P; c++) {
    if (fault == LONG) vector[c] *= 1.0002f;
    if (fault == SHORT) vector[c] *= 0.9998f;
    if (fault == ZERO) vector[c] = 0;
    if (fault == SLANTED) vector[c] += 2e-4f * other[c];
  }
}

static int is_named(const float *atoms, idx count, idx d, idx atom, const char *text)
{
  char number[32];
  snprintf(number, sizeof number, " %d", FIRST + atom);
  int status = atoms_check(atoms, count, d, P, FIRST, "a.h5");
  int named = status == ERR_INPUT && strstr(status_message(), number) &&
              strstr(status_message(), text) && strstr(status_message(), "'a.h5'");
  status_clear();
  return named;
}

/* Put each fault into each vector of an atom's frame; SLANTED with each other vector.  The atom
 * must be named.  Returns how many faults are not named. */
static int faults_missed(float *atoms, idx count, idx d, idx atom)
{
  int missed = 0;
  float *frame = atoms + atom * d * P, kept[MAX_FRAME * P];
  memcpy(kept, frame, (size_t)(d * P) * sizeof *kept);
  for (int fault = 0; fault < FAULTS; fault++)
    for (idx m = 0; m < d; m++)
      for (idx l = 0; l < (fault == SLANTED ? d : 1); l++) {
        if (fault == SLANTED && l == m) continue;
        fault_put(frame + m * P, frame + l * P, fault);
        if (!is_named(atoms, count, d, atom, words[fault])) {
          printf("# not named: vector %d that %s (%d)\n", m, words[fault], l);
          missed++;
        }
        memcpy(frame, kept, (size_t)(d * P) * sizeof *kept);
      }
  return missed;
}

static void faults_are_named(idx count, idx d)
{
  float *atoms = calloc((size_t)(count * d * P), sizeof *atoms), kept[MAX_FRAME * P];
  size_t bytes = (size_t)(d * P) * sizeof *atoms;
  frames_fill(atoms, count, d);
  ok(atoms_check(atoms, count, d, P, FIRST, "a.h5") == OK, "%d frames of %d pass", count, d);
  int missed = 0;
  for (idx a = 0; a < count; a++) missed += faults_missed(atoms, count, d, a);
  ok(missed == 0, "%d frames of %d: each fault in each is named", count, d);
  for (idx later = 1; later < count; later++) { /* a second fault, in a later frame */
    memcpy(kept, atoms + later * d * P, bytes);
    fault_put(atoms + later * d * P, NULL, NOT_A_NUMBER);
    for (idx a = 0; a < later; a++) missed += faults_missed(atoms, count, d, a);
    memcpy(atoms + later * d * P, kept, bytes);
  }
  if (count > 1) ok(missed == 0, "%d frames of %d: of two faults the first is named", count, d);
  free(atoms);
}

/* Atoms of all sizes of f32 are scaled together as they are one by one.  An atom that cannot be
 * scaled is reported. */
static void sizes_are_scaled(idx count)
{
  enum { MOST = 9 };
  static const float faults[] = {0, NAN, INFINITY};
  float atoms[MOST * P], alone[MOST * P], before[MOST * P];
  for (idx i = 0; i < count * P; i++)
    atoms[i] = (float)(random_normal(6, 1, (uint64_t)i) * exp2(-149 + 34 * (i / P)));
  for (idx a = 0; a < count; a++) atoms[a * P] = a ? atoms[a * P] : 0x1p-149f;
  memcpy(alone, atoms, sizeof alone);
  memcpy(before, atoms, sizeof before);
  int good = 1;
  for (idx a = 0; a < count; a++) good &= atoms_normalize(alone + a * P, 1, 1, P);
  good &= atoms_normalize(atoms, count, 1, P);
  ok(good && !memcmp(atoms, alone, (size_t)(count * P) * sizeof *atoms) &&
         !atoms_check(atoms, count, 1, P, FIRST, "a.h5"),
     "%d atoms from 2^-149 on: %s", count, status_message());
  for (idx a = 0; a < count; a++)
    for (int f = 0; f < LENGTH(faults); f++) {
      memcpy(atoms, before, sizeof atoms);
      for (idx c = 0; c < P; c++) atoms[a * P + c] = c && f ? 1 : faults[f];
      good &= !atoms_normalize(atoms, count, 1, P) &&
              atoms_check(atoms, count, 1, P, FIRST, "a.h5") == ERR_INPUT;
      status_clear();
    }
  ok(good, "%d atoms, one of which cannot be scaled", count);
}

int main(void)
{
  claim_begin("atoms of any size are scaled, and one that cannot be scaled is reported");
  for (idx count = 1; count <= 9; count++) sizes_are_scaled(count);
  claim_end();
  for (idx d = 1; d <= 3; d++) {
    claim_begin("frames of %d: sound ones pass, and of several faults the first is named", d);
    for (idx count = 1; count <= 9; count += d == 2 ? 1 : 4) faults_are_named(count, d);
    claim_end();
  }
  return done_testing();
}
