/* SPDX-License-Identifier: BSD-3-Clause
 * A reader walks an array of texts that ends with NULL, without a lock.  So an array that was once
 * the environment stays, a text is put behind the last one, or in the place of another, with one
 * store, and what grows beyond the room of its array goes on in a new one. */
#include "base/environment.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

enum { FIRST_ROOM = 64 };

/* Memory that some thread may look at for as long as the program lives. */
struct kept {
  struct kept *before;
};
static struct kept *kept;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char **entries; /* of ours */
static size_t room;    /* of them, the last of which is NULL */

static void *keep(size_t bytes)
{
  struct kept *k = calloc(1, sizeof *k + bytes);
  if (!k) return NULL;
  k->before = kept;
  kept = k;
  return k + 1;
}

static size_t entries_count(void)
{
  size_t n = 0;
  while (environ && environ[n]) n++;
  return n;
}

/* The place of a variable whose name has so many bytes, NULL if it is not there. */
static char **entry_find(const char *name, size_t length)
{
  for (char **at = environ; at && *at; at++)
    if (strncmp(*at, name, length) == 0 && (*at)[length] == '=') return at;
  return NULL;
}

/* The environment <- its entries in a new array, with room for more. */
static int entries_renew(size_t count)
{
  size_t wanted = count + 2 <= FIRST_ROOM ? FIRST_ROOM : 2 * (count + 2);
  char **larger = keep(wanted * sizeof *larger);
  if (!larger) return -1;
  for (size_t i = 0; i < count; i++) larger[i] = environ[i];
  entries = larger;
  room = wanted;
  __atomic_store_n(&environ, larger, __ATOMIC_RELEASE);
  return 0;
}

/* An array of ours with room behind its `count` entries, of which nothing was cut off, is the
 * environment. */
static int entries_reserve(size_t count)
{
  int has_room = environ == entries && entries && count + 2 <= room && !entries[count + 1];
  return has_room ? 0 : entries_renew(count);
}

/* Set "name=value", whose name has so many bytes; the text is kept by the caller. */
static int entry_put(char *text, size_t length)
{
  char **at = entry_find(text, length);
  if (!at) {
    size_t count = entries_count();
    if (entries_reserve(count)) return -1;
    at = &environ[count];
  }
  __atomic_store_n(at, text, __ATOMIC_RELEASE);
  return 0;
}

/* Those behind it move up, one after another: a reader may miss one of them, once. */
static void entry_remove(const char *name, size_t length)
{
  for (char **at; (at = entry_find(name, length));)
    for (; *at; at++) __atomic_store_n(at, at[1], __ATOMIC_RELEASE);
}

/* It may be NULL, which the C library's declarations deny. */
static int is_name(const char *volatile name)
{
  if (name && *name && !strchr(name, '=')) return 1;
  errno = EINVAL;
  return 0;
}

static int variable_set(const char *name, const char *value)
{
  size_t length = strlen(name), more = strlen(value);
  char *text = keep(length + more + 2);
  if (!text) return -1;
  memcpy(text, name, length);
  text[length] = '=';
  memcpy(text + length + 1, value, more + 1);
  return entry_put(text, length);
}

int setenv(const char *name, const char *value, int replace)
{
  if (!is_name(name)) return -1;
  pthread_mutex_lock(&mutex);
  int failed = replace || !entry_find(name, strlen(name)) ? variable_set(name, value) : 0;
  pthread_mutex_unlock(&mutex);
  return failed;
}

int putenv(char *text)
{
  const char *end = strchr(text, '=');
  if (!end) { /* as the C library does */
    unsetenv(text);
    return 0;
  }
  pthread_mutex_lock(&mutex);
  int failed = entry_put(text, (size_t)(end - text));
  pthread_mutex_unlock(&mutex);
  return failed;
}

int unsetenv(const char *name)
{
  if (!is_name(name)) return -1;
  pthread_mutex_lock(&mutex);
  entry_remove(name, strlen(name));
  pthread_mutex_unlock(&mutex);
  return 0;
}

int environment_is_shared(void)
{
  int (*ours)(const char *, const char *, int) = setenv;
  void *program = dlopen(NULL, RTLD_LAZY), *theirs = program ? dlsym(program, "setenv") : NULL;
  if (program) dlclose(program);
  return theirs && memcmp(&ours, &theirs, sizeof theirs) == 0;
}
