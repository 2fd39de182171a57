/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: atoms_check, which looks at four frames at a time, names the first atom at fault and what
 * is wrong with it, wherever it stands; and memory_zeroed gives zeros, aligned, after other use. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/status.h"
#include "model/dictionary.h"
#include "tap.h"

enum { P = 21, FIRST = 100 };

/* count orthonormal frames. */
static void frames_fill(float *atoms, idx count, idx d)
{
  real frame[FRAME_MOST * P];
  for (idx a = 0; a < count; a++) {
    for (idx i = 0; i < d * P; i++)
      frame[i] = random_normal(5, 1, (uint64_t)a * FRAME_MOST * P + (uint64_t)i);
    frame_orthonormalize(frame, d, P);
    for (idx i = 0; i < d * P; i++) atoms[a * d * P + i] = (float)frame[i];
  }
}

/* frame[d][P] <- with such a fault, in its last vector. */
enum fault { NOT_A_NUMBER, INFINITE, LONG, SHORT, ZERO, SLANTED, FAULTS };
static const char *const words[FAULTS] = {"is nan",          "is inf",     "has norm 1.0002",
                                          "has norm 0.9998", "has norm 0", "have cosine 0.000"};
static void fault_put(float *frame, idx d, enum fault fault)
{
  float *last = frame + (d - 1) * P;
  if (fault == NOT_A_NUMBER) last[P - 1] = NAN;
  if (fault == INFINITE) last[P - 1] = INFINITY;
  for (idx c = 0; c < P; c++) {
    if (fault == LONG) last[c] *= 1.0002f;
    if (fault == SHORT) last[c] *= 0.9998f;
    if (fault == ZERO) last[c] = 0;
    if (fault == SLANTED) last[c] += 2e-4f * frame[c];
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

/* A fault in each atom in turn, and a NaN in each later atom beside it. */
static void faults_are_named(idx count, idx d)
{
  float *atoms = memory_zeroed((size_t)(count * d * P) * sizeof *atoms);
  int named[FAULTS] = {0}, first = 0, wanted = 0;
  frames_fill(atoms, count, d);
  ok(atoms_check(atoms, count, d, P, FIRST, "a.h5") == OK, "%d frames of %d pass", count, d);
  for (int fault = 0; fault < FAULTS; fault++)
    for (idx a = 0; a < count; a++) {
      if (fault == SLANTED && d == 1) continue;
      fault_put(atoms + a * d * P, d, fault);
      named[fault] += is_named(atoms, count, d, a, words[fault]);
      for (idx later = a + 1; later < count; later++, wanted++) {
        fault_put(atoms + later * d * P, d, NOT_A_NUMBER);
        first += is_named(atoms, count, d, a, words[fault]);
        frames_fill(atoms, count, d);
        fault_put(atoms + a * d * P, d, fault);
      }
      frames_fill(atoms, count, d);
    }
  for (int fault = 0; fault < FAULTS; fault++)
    if (fault != SLANTED || d > 1)
      ok(named[fault] == count, "%d frames of %d: an atom that %s is named", count, d,
         words[fault]);
  ok(first == wanted, "%d frames of %d: of two faults, the first is named", count, d);
  free(atoms);
}

static int are_zero(const unsigned char *bytes, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (bytes[i]) return 0;
  return 1;
}

static void zeros_are_zero(size_t bytes)
{
  int zero = 1;
  for (int turn = 0; turn < 3; turn++) {
    unsigned char *at = memory_zeroed(bytes);
    zero &= at && (uintptr_t)at % 64 == 0 && are_zero(at, bytes);
    memset(at, 255, bytes); /* what the next one may get */
    free(at);
  }
  ok(zero, "%zu bytes of zeros on a 64-byte boundary", bytes);
}

int main(void)
{
  for (idx d = 1; d <= 3; d++)
    for (idx count = 1; count <= 9; count += d == 2 ? 1 : 4) faults_are_named(count, d);
  size_t sizes[] = {0, 1, 4095, (4 << 20) - 1, 4 << 20, (9 << 20) + 5};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) zeros_are_zero(sizes[i]);
  return done_testing();
}
