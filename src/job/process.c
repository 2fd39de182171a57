/* SPDX-License-Identifier: BSD-3-Clause
 * The deadline is first read from the command line itself, because MPI is started before a deck is
 * read. */
#include "job/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "base/watchdog.h"
#include "io/outputs.h"

/* A closed stream becomes one that cannot be used: reading stdin, or writing the others, fails with
 * EBADF. */
static void streams_open(void)
{
  for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
    if (fcntl(i, F_GETFD) < 0 && errno == EBADF) {
      int opened = open("/dev/null", i == STDIN_FILENO ? O_WRONLY : O_RDONLY);
      if (opened >= 0 && opened != i) close(opened);
    }
}

/* --deadline SECONDS or --deadline=SECONDS; the option table checks the value later. */
static void deadline_read(int argc, char **argv)
{
  static const char key[] = "--deadline";
  size_t length = sizeof key - 1;
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], key, length) != 0) continue;
    const char *value = argv[i][length] == '=' ? argv[i] + length + 1
                        : argv[i][length]      ? NULL
                        : i + 1 < argc         ? argv[i + 1]
                                               : NULL;
    double seconds = value ? strtod(value, NULL) : 0;
    if (seconds >= 0.1 && seconds <= 1e6) watchdog_deadline_set(seconds);
  }
}

int process_begin(int argc, char **argv)
{
  streams_open();
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_DFL);
  deadline_read(argc, argv);
  watchdog_discard(result_discard);
  return watchdog_start();
}

void pipes_survive(void)
{
  signal(SIGPIPE, SIG_IGN);
}

static int has_reader(int file)
{
  struct pollfd look = {.fd = file, .events = POLLOUT};
  return poll(&look, 1, 0) < 1 || !(look.revents & POLLERR);
}

/* As for stderr (base/log.c), the watchdog watches writes to a file only, since the reader of a
 * pipe may be slow. */
int stdout_flush(int *unread)
{
  struct stat facts;
  int is_file = fstat(STDOUT_FILENO, &facts) == 0 && S_ISREG(facts.st_mode), step = 0;
  if (is_file) step = watchdog_begin(ERR_IO, "writing to standard output", NULL);
  int failed = fflush(stdout) != 0 || ferror(stdout), error = errno;
  if (is_file) watchdog_end(step);
  *unread = failed && !has_reader(STDOUT_FILENO);
  CHECK(!failed || *unread, ERR_IO, "cannot write to standard output: %s", strerror(error));
  return OK;
}

int process_end(int unread)
{
  watchdog_begin(ERR_IO, "ending the program", NULL);
  if (!unread) return OK;
  result_discard();
  signal(SIGPIPE, SIG_DFL);
  raise(SIGPIPE);
  return OK;
}
