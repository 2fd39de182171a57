/* SPDX-License-Identifier: BSD-3-Clause
 * Files are made with O_EXCL.  The rights of a secret are checked on the opened file, those of the
 * folder by its name. */
#include "net/keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "net/curve.h"

enum { PATH_BYTES = 4096 };

static int path_join(char path[PATH_BYTES], const char *folder, const char *name)
{
  CHECK(snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES, ERR_USAGE,
        "the path of '%s' is too long", name);
  return OK;
}

static int folder_make(const char *folder)
{
  CHECK(mkdir(folder, 0700) == 0, ERR_CREATE, "cannot create '%s': %s: keys want a new folder",
        folder, strerror(errno));
  return OK;
}

static int key_write(const char *folder, const char *name, const char *key)
{
  char path[PATH_BYTES];
  TRY(path_join(path, folder, name));
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  CHECK(file >= 0, ERR_CREATE, "cannot create '%s': %s", path, strerror(errno));
  int failed = dprintf(file, "%s\n", key) != KEY_BYTES + 1;
  failed = close(file) || failed;
  CHECK(!failed, ERR_IO, "cannot write '%s': %s", path, strerror(errno));
  return OK;
}

int keys_make(const char *folder)
{
  char public[KEY_BYTES + 1], secret[KEY_BYTES + 1], clients[PATH_BYTES];
  TRY(curve_check());
  TRY(path_join(clients, folder, "clients"));
  TRY(folder_make(folder));
  TRY(folder_make(clients));
  TRY(curve_make(public, secret));
  TRY(key_write(folder, "server.pub", public));
  TRY(key_write(folder, "server.secret", secret));
  TRY(curve_make(public, secret));
  TRY(key_write(clients, "client.pub", public));
  return key_write(folder, "client.secret", secret);
}

/* Check that the file or folder is this user's, and that others have no rights to it. */
static int private_check(const char *path, const struct stat *s)
{
  CHECK(s->st_uid == geteuid(), ERR_INPUT,
        "'%s' is of user %u, not this one: make keys of your own", path, (unsigned)s->st_uid);
  CHECK(!(s->st_mode & 077), ERR_INPUT,
        "'%s' has the mode %04o, so that others may have its keys: make new ones, or `chmod -R go= "
        "%s`",
        path, (unsigned)s->st_mode & 07777, path);
  return OK;
}

/* key <- the line of a file.  *is_key <- 0: it is no key. */
static int key_load(const char *path, int is_secret, char key[KEY_BYTES + 1], int *is_key)
{
  char text[KEY_BYTES + 2] = "";
  struct stat s;
  /* O_NONBLOCK: open() does not wait if the file is a pipe */
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  CHECK(file >= 0, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
  ssize_t n = read(file, text, sizeof text);
  int failed = fstat(file, &s) != 0;
  close(file);
  CHECK(n >= 0 && !failed, ERR_IO, "cannot read '%s'", path);
  if (is_secret) TRY(private_check(path, &s));
  *is_key = n >= KEY_BYTES && (n == KEY_BYTES || text[KEY_BYTES] == '\n');
  memcpy(key, text, KEY_BYTES);
  key[KEY_BYTES] = 0;
  *is_key = *is_key && strlen(key) == KEY_BYTES;
  return OK;
}

static int key_read(const char *folder, const char *name, int is_secret, char key[KEY_BYTES + 1])
{
  char path[PATH_BYTES];
  int is_key = 0;
  TRY(path_join(path, folder, name));
  TRY(key_load(path, is_secret, key, &is_key));
  CHECK(is_key, ERR_INPUT, "'%s' is no key: a key is one line of %d characters", path, KEY_BYTES);
  return OK;
}

static int is_public(const char *name)
{
  size_t n = strlen(name);
  return n > 4 && name[0] != '.' && strcmp(name + n - 4, ".pub") == 0;
}

/* Read all files of clients' keys.  wanted NULL: *count <- the number of keys; a file that cannot
 * be read or has no key is an error.  Otherwise *count <- the number of keys that equal `wanted`; a
 * file that cannot be read or has no key is skipped. */
static int clients_read(const char *clients, DIR *all, const char *wanted, int *count)
{
  const struct dirent *entry;
  char key[KEY_BYTES + 1];
  for (*count = 0; (entry = readdir(all));) {
    if (!is_public(entry->d_name)) continue;
    int status = key_read(clients, entry->d_name, 0, key);
    if (!wanted) TRY(status);
    if (status)
      status_clear();
    else
      *count += !wanted || strcmp(key, wanted) == 0;
  }
  return OK;
}

/* *count <- the number of clients' keys; if wanted is not NULL, the number of keys that equal
 * `wanted`. */
static int clients_count(const char *folder, const char *wanted, int *count)
{
  char clients[PATH_BYTES];
  TRY(path_join(clients, folder, "clients"));
  DIR *all = opendir(clients);
  CHECK(all, ERR_IO, "cannot open '%s': %s", clients, strerror(errno));
  int status = clients_read(clients, all, wanted, count);
  closedir(all);
  return status;
}

int keys_read(struct keys *keys, const char *folder)
{
  char public[KEY_BYTES + 1], own[KEY_BYTES + 1];
  struct stat s;
  int count;
  TRY(curve_check());
  CHECK(stat(folder, &s) == 0, ERR_IO,
        "cannot open '%s': %s: `sagitta serve --make-keys %s` makes keys", folder, strerror(errno),
        folder);
  TRY(private_check(folder, &s));
  TRY(key_read(folder, "server.secret", 1, keys->secret));
  TRY(key_read(folder, "server.pub", 0, public));
  TRY(curve_public(own, keys->secret));
  CHECK(strcmp(own, public) == 0, ERR_INPUT,
        "server.pub and server.secret of '%s' are not of one pair: bring back both, or make new "
        "keys",
        folder);
  TRY(clients_count(folder, NULL, &count));
  CHECK(count > 0, ERR_INPUT, "'%s/clients' has no NAME.pub: no client may connect", folder);
  keys->folder = folder;
  return OK;
}

int keys_find(const struct keys *keys, const char *client, int *is_known)
{
  *is_known = 0;
  TRY(clients_count(keys->folder, client, is_known));
  return OK;
}
