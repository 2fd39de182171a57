/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: setenv(), putenv() and unsetenv() are ours for libraries too and do what POSIX says, and a
 * thread that reads the environment while another adds to it finds what is there. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "tap.h"

extern char **environ;

enum { READERS = 3, VARIABLES = 20000 };

static atomic_int is_over, missed;

static int is(const char *name, const char *value)
{
  const char *found = getenv(name);
  return value ? found && strcmp(found, value) == 0 : !found;
}

static void *reader(void *unused)
{
  while (!is_over) {
    if (!is("FIRST_OF_ALL", "there")) missed++;
    if (!is("NEVER_SET", NULL)) missed++;
  }
  return unused;
}

static void readers_test(void)
{
  pthread_t threads[READERS];
  char name[32], value[32];
  int wrong = 0;
  setenv("BEFORE_ALL", "", 1);
  setenv("FIRST_OF_ALL", "there", 1);
  unsetenv("BEFORE_ALL"); /* what is behind it moves */
  for (int i = 0; i < READERS; i++) pthread_create(&threads[i], NULL, reader, NULL);
  for (int i = 0; i < VARIABLES; i++) {
    snprintf(name, sizeof name, "V%d", i % 3 ? i : i / 7);
    snprintf(value, sizeof value, "%d", i);
    wrong += setenv(name, value, 1) != 0 || !is(name, value);
    if (i % 50 == 0) wrong += unsetenv(name) != 0 || !is(name, NULL);
  }
  is_over = 1;
  for (int i = 0; i < READERS; i++) pthread_join(threads[i], NULL);
  ok(missed == 0 && wrong == 0,
     "%d threads read while %d variables are set: %d misread, %d not set", READERS, VARIABLES,
     missed, wrong);
}

static void meaning_test(void)
{
  static char own[] = "OWN=first", gone[] = "OWN";
  int right = setenv("A", "1", 0) == 0 && is("A", "1");
  right &= setenv("A", "2", 0) == 0 && is("A", "1");
  right &= setenv("A", "2", 1) == 0 && is("A", "2");
  right &= setenv("AB", "", 1) == 0 && is("AB", "") && is("A", "2");
  ok(right, "setenv() adds, keeps or replaces");
  right = putenv(own) == 0 && is("OWN", "first");
  own[4] = 'F';
  right &= is("OWN", "First") && putenv(gone) == 0 && is("OWN", NULL);
  ok(right, "putenv() takes the text itself, and a name alone removes");
  right = unsetenv("A") == 0 && is("A", NULL) && is("AB", "") && unsetenv("A") == 0;
  ok(right, "unsetenv() removes one, and nothing where it is not there");
  errno = 0;
  right = setenv("", "1", 1) == -1 && errno == EINVAL;
  errno = 0;
  right &= setenv("A=B", "1", 1) == -1 && errno == EINVAL && is("A", NULL);
  errno = 0;
  right &= unsetenv("A=B") == -1 && errno == EINVAL;
  int (*volatile unset)(const char *) = unsetenv; /* declared not to be given NULL */
  errno = 0;
  right &= unset(NULL) == -1 && errno == EINVAL && setenv(NULL, "1", 1) == -1;
  static char nothing[] = "";
  right &= putenv(nothing) == 0;
  ok(right, "what is no name is refused with EINVAL, but by putenv()");
}

/* A program may cut its environment off. */
static void cut_test(void)
{
  setenv("CUT_1", "", 1);
  setenv("CUT_2", "", 1);
  environ[0] = NULL;
  int right = is("CUT_2", NULL) && setenv("A", "3", 1) == 0 && is("A", "3");
  ok(right && is("CUT_1", NULL) && is("CUT_2", NULL) && !environ[1],
     "what was cut off does not come back");
}

int main(void)
{
  ok(environment_is_shared(), "libraries get these functions");
  meaning_test();
  readers_test();
  cut_test();
  clearenv();
  ok(setenv("A", "3", 0) == 0 && is("A", "3") && is("FIRST_OF_ALL", NULL),
     "an environment that was cleared takes variables again");
  return done_testing();
}
