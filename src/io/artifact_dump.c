/* SPDX-License-Identifier: BSD-3-Clause
 * Both files are written under temporary names and renamed when they are complete. */
#include "io/artifact_dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/watchdog.h"

/* The names of a dump: the artifact's text, the atoms' texts. */
struct dump_names {
  char path[2][4096], temporary[2][4096];
};

/* Fill in the names; the files are written under temporary ones and renamed. */
static int dump_name(struct dump_names *names, const char *path)
{
  CHECK(strlen(path) > 0 && strlen(path) + 16 < sizeof names->path[0], ERR_CREATE,
        "the name '%s' of the dump is empty or too long", path);
  for (int i = 0; i < 2; i++) {
    const char *end = i ? ".atoms" : "";
    snprintf(names->path[i], sizeof names->path[i], "%.4070s%s", path, end);
    snprintf(names->temporary[i], sizeof names->temporary[i], "%.4070s%s.tmp", path, end);
  }
  return OK;
}

static FILE *file_open(const char *path)
{
  int step = watchdog_begin(ERR_IO, "opening", path);
  FILE *file = fopen(path, "wb");
  watchdog_end(step);
  return file;
}

/* Write, as one step of the watchdog; 1 when it went well. */
static int text_write(const void *text, size_t bytes, FILE *file)
{
  int step = watchdog_begin(ERR_IO, "writing the artifact", NULL);
  int good = fwrite(text, 1, bytes, file) == bytes;
  watchdog_end(step);
  return good;
}

int artifact_dump_check(const char *path, int force)
{
  struct dump_names names;
  TRY(dump_name(&names, path));
  for (int i = 0; i < 2; i++) {
    struct stat facts;
    int there = lstat(names.path[i], &facts) == 0;
    CHECK(!there || S_ISREG(facts.st_mode), ERR_CREATE, "cannot create '%s': it is not a file",
          names.path[i]);
    CHECK(!there || force, ERR_CREATE, "'%s' is there already: add --force to replace it",
          names.path[i]);
    FILE *file = file_open(names.temporary[i]);
    CHECK(file, ERR_CREATE, "cannot create '%s': %s", names.temporary[i], strerror(errno));
    fclose(file);
    unlink(names.temporary[i]);
  }
  return OK;
}

/* Write both texts to open files. */
static int dump_fill(FILE **file, const struct artifact *a, const float *atoms, idx k, idx d, idx p)
{
  struct arena arena = {0};
  size_t bytes = artifact_atom_bytes(d, p);
  unsigned char *text = NULL;
  TRY(arena_alloc(&arena, &text, (gidx)bytes, 1));
  int good = text_write(a->text, a->bytes, file[0]);
  for (idx i = 0; i < k && good; i++) {
    artifact_atom(atoms + (gidx)i * d * p, d, p, text);
    good = text_write(text, bytes, file[1]);
  }
  arena_free(&arena);
  CHECK(good, ERR_IO, "%s", strerror(errno));
  return OK;
}

static int dump_publish(const struct dump_names *names, const struct artifact *a,
                        const float *atoms, idx k, idx d, idx p)
{
  FILE *file[2] = {file_open(names->temporary[0]), file_open(names->temporary[1])};
  int status = file[0] && file[1] ? dump_fill(file, a, atoms, k, d, p) : ERR_IO;
  for (int i = 0; i < 2; i++) {
    int step = watchdog_begin(ERR_IO, "bringing to the disk", names->temporary[i]);
    if (file[i] && (fflush(file[i]) | fsync(fileno(file[i])) | fclose(file[i]))) status = ERR_IO;
    watchdog_end(step);
  }
  for (int i = 0; i < 2 && status == OK; i++) {
    int step = watchdog_begin(ERR_IO, "renaming", names->temporary[i]);
    if (rename(names->temporary[i], names->path[i])) status = ERR_IO;
    watchdog_end(step);
  }
  return status;
}

int artifact_dump(const char *path, const struct artifact *a, const float *atoms, idx k, idx d,
                  idx p)
{
  struct dump_names names;
  TRY(dump_name(&names, path));
  int status = dump_publish(&names, a, atoms, k, d, p), error = errno;
  for (int i = 0; i < 2 && status; i++) unlink(names.temporary[i]);
  CHECK(!status, status == ERR_MEMORY ? ERR_MEMORY : ERR_IO, "cannot write '%s' and '%s': %s",
        names.path[0], names.path[1], strerror(error));
  return OK;
}
