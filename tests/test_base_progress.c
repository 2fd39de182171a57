/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a line of progress tells how much of the whole job is done, including the part of an
 * earlier run, and how fast this run is.  A file gets a line after ten seconds, a terminal after
 * half a second. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tap.h"

/* The text that was written to a file since the last call. */
static const char *said(int from)
{
  static char text[4096];
  ssize_t length = read(from, text, sizeof text - 1);
  text[length < 0 ? 0 : length] = '\0';
  return text;
}

/* The text that was written to a terminal since the last call.  The kernel passes text on with a
 * delay, so this reads until nothing comes for 100 ms.  milliseconds: how long to wait for the
 * first text. */
static const char *said_there(int from, int milliseconds)
{
  static char text[4096];
  size_t length = 0;
  struct pollfd one = {.fd = from, .events = POLLIN};
  while (length + 1 < sizeof text && poll(&one, 1, length ? 100 : milliseconds) > 0) {
    ssize_t got = read(from, text + length, sizeof text - 1 - length);
    if (got <= 0) break;
    length += (size_t)got;
  }
  text[length] = '\0';
  return text;
}

/* Redirect stderr to a file.  Returns 0 on success. */
static int stderr_to(int file)
{
  fflush(stderr);
  return dup2(file, STDERR_FILENO) < 0;
}

/* Move the times of p back, as if `seconds` had passed. */
static void wait_for(struct progress *p, double seconds)
{
  p->start -= seconds;
  p->shown -= seconds;
}

/* Is `line` the only line of a text, after its time stamp? */
static int is_line(const char *text, const char *line)
{
  const char *at = strstr(text, "] ");
  size_t length = strlen(line);
  return at && !strncmp(at + 2, line, length) && !strcmp(at + 2 + length, "\n");
}

/* Rates and remaining times are small numbers, so that a short pause of the machine changes none of
 * their digits. */
static void file_check(int from, int log)
{
  struct progress p;
  progress_start(&p, "encode", "rows", 240);
  wait_for(&p, 8);
  progress_show(&p, 60);
  ok(!*said(from), "no line in the first eight seconds");
  wait_for(&p, 12);
  progress_show(&p, 200);
  const char *text = said(from);
  ok(is_line(text, "encode   200 of 240 rows (83 %), 10 rows/s, 4 s left"), "%s", text);
  text = said(log);
  ok(is_line(text, "encode   200 of 240 rows (83 %), 10 rows/s, 4 s left"), "log: %s", text);
  progress_start(&p, "encode", "rows", 1000);
  p.before = 800;
  wait_for(&p, 20);
  progress_show(&p, 960);
  text = said(from);
  ok(is_line(text, "encode   960 of 1000 rows (96 %), 8 rows/s, 5 s left"), "%s", text);
  wait_for(&p, 20);
  progress_show(&p, 980);
  text = said(from);
  ok(is_line(text, "encode   980 of 1000 rows (98 %), 4 rows/s, 4 s left"), "%s", text);
  said(log);
  log_setup(LOG_QUIET, 0);
  wait_for(&p, 20);
  progress_show(&p, 990);
  ok(!*said(from) && !*said(log), "no line with --quiet");
  log_setup(LOG_NORMAL, 0);
}

static void terminal_check(int from, int log)
{
  struct progress p;
  progress_start(&p, "solve", "systems", 100);
  p.before = 40;
  wait_for(&p, 10);
  progress_show(&p, 90);
  const char *text = said_there(from, 10000);
  ok(!strcmp(text, "\rsolve   90 of 100 systems (90 %), 5 systems/s, 2 s left"), "%s", text);
  p.shown += 60; /* so that half a second since the last line has not passed */
  progress_show(&p, 95);
  ok(!*said_there(from, 100), "no second line within half a second");
  progress_show(&p, 100);
  text = said_there(from, 10000);
  ok(strstr(text, "100 of 100 systems (100 %)") && !strcmp(text + strlen(text) - 2, " \r"),
     "the last line is printed, and erased: %s", text);
  ok(!*said(log), "the log has no line of progress");
}

int main(void)
{
  char name[] = "/tmp/sagitta-progress.XXXXXX", other[] = "/tmp/sagitta-progress.XXXXXX";
  int kept = dup(STDERR_FILENO), file = mkstemp(name), log = mkstemp(other);
  int from = open(name, O_RDONLY);
  log_setup(LOG_NORMAL, 0);
  log_attach(fopen(other, "w"));
  claim_begin("progress in a file and in the log is printed line by line");
  ok(file >= 0 && log >= 0 && from >= 0 && !stderr_to(file), "files");
  file_check(from, log);
  claim_end();
  claim_begin("progress on a terminal is one line, which is overwritten");
  int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  int is_there = terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal);
  int end = is_there ? open(ptsname(terminal), O_RDWR | O_NOCTTY) : -1;
  if (end < 0)
    skip("a pseudo-terminal cannot be opened");
  else if (ok(!stderr_to(end), "a terminal"))
    terminal_check(terminal, log);
  claim_end();
  stderr_to(kept);
  log_close();
  unlink(name);
  unlink(other);
  return done_testing();
}
