/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a line of progress tells what is done of the whole job, also of one that an earlier run
 * has begun, and how fast this run is: in a file after ten seconds, on a terminal after half of
 * one. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tap.h"

/* What was written since the last call. */
static const char *said(int from)
{
  static char text[4096];
  ssize_t length = read(from, text, sizeof text - 1);
  text[length < 0 ? 0 : length] = '\0';
  return text;
}

/* Let stderr be a file; returns one to read it. */
static int stderr_to(int file)
{
  fflush(stderr);
  return dup2(file, STDERR_FILENO) < 0;
}

/* As if so many seconds had passed. */
static void wait_for(struct progress *p, double seconds)
{
  p->start -= seconds;
  p->shown -= seconds;
}

/* Is this the one line of a text, behind its time? */
static int is_line(const char *text, const char *line)
{
  const char *at = strstr(text, "] ");
  size_t length = strlen(line);
  return at && !strncmp(at + 2, line, length) && !strcmp(at + 2 + length, "\n");
}

static void file_check(int from, int log)
{
  struct progress p;
  progress_start(&p, "encode", "rows", 12000);
  wait_for(&p, 9);
  progress_show(&p, 3000);
  ok(!*said(from), "nothing after nine seconds");
  wait_for(&p, 11);
  progress_show(&p, 3000);
  const char *text = said(from);
  ok(is_line(text, "encode   3000 of 12000 rows (25 %), 150 rows/s, 60 s left"), "%s", text);
  text = said(log);
  ok(is_line(text, "encode   3000 of 12000 rows (25 %), 150 rows/s, 60 s left"), "log: %s", text);
  progress_start(&p, "encode", "rows", 12000);
  p.before = 8000;
  wait_for(&p, 20);
  progress_show(&p, 9000);
  text = said(from);
  ok(is_line(text, "encode   9000 of 12000 rows (75 %), 50 rows/s, 60 s left"), "%s", text);
  wait_for(&p, 20);
  progress_show(&p, 10000);
  text = said(from);
  ok(is_line(text, "encode   10000 of 12000 rows (83 %), 50 rows/s, 40 s left"), "%s", text);
  said(log);
  log_setup(LOG_QUIET, 0);
  wait_for(&p, 20);
  progress_show(&p, 11000);
  ok(!*said(from) && !*said(log), "nothing with --quiet");
  log_setup(LOG_NORMAL, 0);
}

static void terminal_check(int from, int log)
{
  struct progress p;
  progress_start(&p, "solve", "systems", 100);
  p.before = 40;
  wait_for(&p, 1);
  progress_show(&p, 70);
  const char *text = said(from);
  ok(!strcmp(text, "\rsolve   70 of 100 systems (70 %), 30 systems/s, 1 s left"), "%s", text);
  progress_show(&p, 80);
  ok(!*said(from), "nothing within half a second");
  progress_show(&p, 100);
  text = said(from);
  ok(strstr(text, "100 of 100 systems (100 %)") && !strcmp(text + strlen(text) - 2, " \r"),
     "the last one is there, and goes: %s", text);
  ok(!*said(log), "the log has none of it");
}

int main(void)
{
  char name[] = "/tmp/sagitta-progress.XXXXXX", other[] = "/tmp/sagitta-progress.XXXXXX";
  int kept = dup(STDERR_FILENO), file = mkstemp(name), log = mkstemp(other);
  int from = open(name, O_RDONLY);
  log_setup(LOG_NORMAL, 0);
  log_attach(fopen(other, "w"));
  claim_begin("lines in a file, and in the log");
  ok(file >= 0 && log >= 0 && from >= 0 && !stderr_to(file), "files");
  file_check(from, log);
  claim_end();
  claim_begin("a line on a terminal");
  int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  int is_there = terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal);
  int end = is_there ? open(ptsname(terminal), O_RDWR | O_NOCTTY) : -1;
  if (end < 0)
    skip("there are no terminals");
  else if (ok(!stderr_to(end), "a terminal"))
    terminal_check(terminal, log);
  claim_end();
  stderr_to(kept);
  log_close();
  unlink(name);
  unlink(other);
  return done_testing();
}
