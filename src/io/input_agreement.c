/* SPDX-License-Identifier: BSD-3-Clause
 * Ranks compare a hash of their marks.  Marks are exchanged only if the hashes differ. */
#include "io/input_agreement.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/memory.h"
#include "base/status.h"
#include "io/input_file.h"

/* Fail with the first file whose mark on this rank differs from its mark on rank 0, in
 * first[count]. */
static int marks_fail(int rank, const struct input_mark *mine, const struct input_mark *first,
                      gidx count)
{
  char text[256];
  const char *path;
  CHECK(!input_marks_differ(first, mine, count, text, sizeof text, &path), ERR_INPUT,
        "rank %d sees another '%s' than rank 0: %s", rank, path, text);
  return OK;
}

static int marks_count(int rank, gidx count, gidx first)
{
  CHECK(count == first, ERR_INPUT, "rank %d sees other inputs than rank 0: %lld inputs, not %lld",
        rank, (long long)count, (long long)first);
  return OK;
}

/* Call this if the hashes differ: find the file.  There may be very many files, so only rank 0
 * sends its marks.  Collective. */
static int marks_compare(struct comm *c, const struct input_mark *mine, gidx count)
{
  gidx n = count;
  TRY(comm_broadcast(c, &n, 1, sizeof n));
  TRY(comm_agree(c, marks_count(c->rank, count, n)));
  struct input_mark *first;
  TRY(comm_agree(c, struct_alloc(&first, ((size_t)count + 1) * sizeof *first)));
  if (c->rank == 0 && count) memcpy(first, mine, (size_t)count * sizeof *first);
  TRY(comm_broadcast(c, first, count, sizeof *first));
  int status = marks_fail(c->rank, mine, first, count);
  free(first);
  return comm_agree(c, status);
}

/* Compare the marks of the inputs.  All ranks return the same status. */
static int marks_agree(struct comm *c)
{
  struct input_mark *mine;
  gidx count;
  int same;
  TRY(comm_agree(c, input_files_mark(&mine, &count)));
  TRY(comm_is_same(c, hash64(mine, (size_t)count * sizeof *mine) + (uint64_t)count, &same));
  int status = same ? OK : marks_compare(c, mine, count);
  free(mine);
  return status;
}

int inputs_agree(struct comm *c, int status)
{
  TRY(comm_agree(c, status));
  if (c->size > 1) TRY(marks_agree(c));
  input_files_compared();
  return OK;
}

int inputs_confirm(struct comm *c)
{
  TRY(comm_agree(c, input_files_recheck()));
  return OK;
}
