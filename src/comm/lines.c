/* SPDX-License-Identifier: BSD-3-Clause
 * Hashes of the texts are compared.  If they differ, rank 0 broadcasts its text, in a message of a
 * fixed size. */
#include "comm/lines.h"

#include <stdio.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/key_lines.h"
#include "base/status.h"

/* Fail with the first line in which mine, of this rank, differs from first, of rank 0. */
static int lines_fail(int rank, const char *mine, const char *first)
{
  struct key_line own, other, same;
  do {
    mine = key_line_take(mine, &own);
    first = key_line_take(first, &other);
  } while (mine && first && strcmp(own.key, other.key) == 0 &&
           key_line_is(&own, other.value, other.length));
  CHECK(mine || first, ERR_INPUT,
        "rank %d was given other options than rank 0: start all by one command", rank);
  CHECK(!mine || !first || strcmp(own.key, other.key) != 0, ERR_INPUT,
        "rank %d was given another '%s' than rank 0: '%.*s', not '%.*s'", rank, own.key, own.length,
        own.value, other.length, other.value);
  int is_extra = mine && (!first || !key_line_find(first, own.key, &same));
  FAIL(ERR_INPUT, "rank %d was %s '%s', rank 0 was%s", rank, is_extra ? "given" : "not given",
       is_extra ? own.key : other.key, is_extra ? " not" : "");
}

int comm_lines_agree(struct comm *c, const char *text)
{
  static char first[COMM_LINES_MOST];
  int same = 1;
  if (c->size > 1) TRY(comm_is_same(c, hash64(text, strlen(text)), &same));
  if (same) return OK;
  snprintf(first, sizeof first, "%s", text);
  TRY(comm_broadcast(c, first, sizeof first, 1));
  return comm_agree(c, strcmp(text, first) ? lines_fail(c->rank, text, first) : OK);
}
