/* SPDX-License-Identifier: BSD-3-Clause
 * Texts and files are compared by hashes, whose bits are joined over the ranks.  Only if these
 * differ are texts exchanged.  What is joined has one size, whatever the ranks' options are. */
#include "job/agreement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/key_lines.h"
#include "base/memory.h"
#include "base/options_config.h"
#include "base/options_write.h"
#include "base/status.h"
#include "io/input_file.h"

enum { MAX_LINES = 1 << 16 }; /* most bytes of a text that is compared */

/* Rank 0 reads the deck, and every rank applies it.  Collective; returns this rank's status. */
static int config_broadcast(struct run *run, const char *name)
{
  static char text[MAX_DECK];
  struct comm *c = &run->comm;
  size_t bytes = 0;
  TRY(comm_agree(c, c->rank ? OK : config_read(name, text, &bytes)));
  gidx length = (gidx)bytes;
  TRY(comm_broadcast(c, &length, 1, sizeof length));
  TRY(comm_broadcast(c, text, length, 1));
  return options_config(name, text, (size_t)length);
}

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

/* Is a value the same on all ranks?  A bit that differs is then set in both words. */
static int is_same(struct comm *c, uint64_t value, int *same)
{
  uint64_t bits[] = {value, ~value};
  TRY(comm_or(c, bits, LENGTH(bits)));
  *same = (bits[0] & bits[1]) == 0;
  return OK;
}

/* Check that text, lines of "key = value", is the same on all ranks.  Collective. */
static int lines_agree(struct comm *c, const char *text)
{
  static char first[MAX_LINES];
  int same = 1;
  if (c->size > 1) TRY(is_same(c, hash64(text, strlen(text)), &same));
  if (same) return OK;
  snprintf(first, sizeof first, "%s", text);
  TRY(comm_broadcast(c, first, sizeof first, 1));
  return comm_agree(c, strcmp(text, first) ? lines_fail(c->rank, text, first) : OK);
}

/* text[MAX_LINES] <- the options that must be the same. */
static int options_text(const struct run *run, char *text)
{
  FILE *memory = fmemopen(text, MAX_LINES, "w");
  CHECK(memory, ERR_MEMORY, "cannot allocate a text of options");
  options_lines(run->command->options, run->options, OPTION_PER_RANK, memory);
  int full = fclose(memory) != 0;
  text[MAX_LINES - 1] = '\0';
  CHECK(!full && strlen(text) < MAX_LINES - 1, ERR_USAGE, "the options have more than %d bytes",
        MAX_LINES);
  return OK;
}

int options_agree(struct run *run, const char **arguments, int status)
{
  static char text[MAX_LINES];
  const char *deck = options_config_of(run->command->options, arguments);
  snprintf(text, sizeof text, "program = %s %s %s\ncommand = %s\n%s%s%s", run->program->name,
           run->program->version, run->program->revision, run->command->name, deck ? "deck = " : "",
           deck ? deck : "", deck ? "\n" : "");
  TRY(comm_agree(&run->comm, status));
  TRY(lines_agree(&run->comm, text));
  if (deck) status = config_broadcast(run, deck);
  if (!status) status = options_text(run, text);
  TRY(comm_agree(&run->comm, status));
  return lines_agree(&run->comm, text);
}

/* Fail with the first file whose mark on this rank differs from first[count], those of rank 0. */
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

/* The hashes differ: find the file.  There may be very many, so only rank 0 sends its marks.
 * Collective. */
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

/* Compare the marks of the inputs.  Every rank finds the same difference. */
static int marks_agree(struct comm *c)
{
  struct input_mark *mine;
  gidx count;
  int same;
  TRY(comm_agree(c, input_files_mark(&mine, &count)));
  TRY(is_same(c, hash64(mine, (size_t)count * sizeof *mine) + (uint64_t)count, &same));
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
