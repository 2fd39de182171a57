/* SPDX-License-Identifier: BSD-3-Clause
 * Compiled kernels on disk: a file each, named after a hash of its key, which it repeats whole.
 *
 * An entry is "sagitta kernel 1\n", sizes and hash of the image, the key, the image.  It is written
 * under another name and renamed, so that readers see all of it or nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "device/cuda_kernels.h"

struct header {
  char magic[24];
  uint64_t key_size, image_size, image_hash;
};
static const char magic[24] = "sagitta kernel 1\n";

/* path <- the entry's place; the folder is made.  0 where there is none. */
static int entry_path(const char *key, char *path, size_t room)
{
  const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char folder[3072];
  int length = base && *base   ? snprintf(folder, sizeof folder, "%s", base)
               : home && *home ? snprintf(folder, sizeof folder, "%s/.cache", home)
                               : 0;
  if (length <= 0 || length >= (int)sizeof folder - 16) return 0;
  mkdir(folder, 0777);
  strcat(folder, "/sagitta");
  if (mkdir(folder, 0777) && errno != EEXIST) return 0;
  snprintf(path, room, "%s/%016llx.cubin", folder,
           (unsigned long long)bytes_hash(key, strlen(key)));
  return 1;
}

static int entry_read(FILE *file, const char *key, struct kernel_image *image)
{
  struct header head;
  size_t size = strlen(key);
  if (fread(&head, sizeof head, 1, file) != 1 || memcmp(head.magic, magic, sizeof magic)) return 0;
  if (head.key_size != size || head.image_size > (uint64_t)1 << 30) return 0;
  char *own = malloc(size + 1);
  image->size = (size_t)head.image_size;
  image->bytes = malloc(image->size + 1);
  int whole = own && image->bytes && fread(own, 1, size, file) == size && !memcmp(own, key, size) &&
              fread(image->bytes, 1, image->size, file) == image->size &&
              bytes_hash(image->bytes, image->size) == head.image_hash;
  free(own);
  return whole;
}

int cache_find(const char *key, struct kernel_image *image)
{
  char path[4096];
  *image = (struct kernel_image){0};
  if (!entry_path(key, path, sizeof path)) return 0;
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  int whole = entry_read(file, key, image);
  fclose(file);
  if (whole) return 1;
  log_debug("'%s' is damaged or another kernel's, it is made again", path);
  free(image->bytes);
  *image = (struct kernel_image){0};
  return 0;
}

void cache_store(const char *key, const struct kernel_image *image)
{
  char path[4096], temporary[4160];
  struct header head = {.key_size = strlen(key), .image_size = image->size};
  memcpy(head.magic, magic, sizeof magic);
  head.image_hash = bytes_hash(image->bytes, image->size);
  if (!entry_path(key, path, sizeof path)) {
    log_debug("no folder to keep compiled kernels in");
    return;
  }
  snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
  FILE *file = fopen(temporary, "wb");
  int good = file && fwrite(&head, sizeof head, 1, file) == 1 &&
             fwrite(key, 1, head.key_size, file) == head.key_size &&
             fwrite(image->bytes, 1, image->size, file) == image->size;
  if (file && fclose(file)) good = 0;
  if (!good || rename(temporary, path)) {
    log_debug("cannot keep a compiled kernel as '%s': %s", path, strerror(errno));
    unlink(temporary);
  }
}
