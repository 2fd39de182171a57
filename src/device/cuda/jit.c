/* SPDX-License-Identifier: BSD-3-Clause
 * NVRTC compiles one .cu, with all headers of kernels/ available; several threads may do so at
 * once. */
#include "device/cuda/jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "device/cuda/nvrtc.h"

/* The texts of all kernel files: those built in, or those read from a folder. */
struct texts {
  const char **name, **text;
  int count;
  struct arena arena;
};

static int text_read(struct texts *t, const char *folder, const char *name)
{
  char path[4096], *text;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  CHECK(file, ERR_IO, "cannot open '%s'", path);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  int status = size < 0 ? status_fail(ERR_IO, __FILE__, __LINE__, "cannot read '%s'", path)
                        : arena_alloc(&t->arena, &text, size + 1, 1);
  size_t got = status ? 0 : fread(text, 1, (size_t)size, file);
  fclose(file);
  TRY(status);
  CHECK(got == (size_t)size, ERR_IO, "cannot read '%s'", path);
  t->text[t->count] = text;
  return OK;
}

/* Is this a header that launchers are compiled with, too?  Then it must be the built-in one. */
static int is_agreed(const char *name)
{
  size_t length = strlen(name), end = strlen("types.h");
  return !strcmp(name, "forms.h") || (length >= end && !strcmp(name + length - end, "types.h"));
}

static int texts_collect(struct texts *t, const char *folder)
{
  int count = 0;
  while (kernel_texts[count].name) count++;
  TRY(arena_alloc(&t->arena, &t->name, count, sizeof *t->name));
  TRY(arena_alloc(&t->arena, &t->text, count, sizeof *t->text));
  for (const struct kernel_text *k = kernel_texts; k->name; k++) {
    t->text[t->count] = k->text;
    if (folder) TRY(text_read(t, folder, k->name));
    CHECK(!is_agreed(k->name) || !strcmp(t->text[t->count], k->text), ERR_INPUT,
          "'%s/%s' is not what this program was built with, so its launchers do not fit: take "
          "kernels of the same build, or build the program with these kernels",
          folder, k->name);
    t->name[t->count++] = k->name;
  }
  return OK;
}

static const char *text_named(const struct texts *t, const char *name)
{
  for (int i = 0; i < t->count; i++)
    if (!strcmp(t->name[i], name)) return t->text[i];
  return NULL;
}

static int nvrtc_fail(nvrtcResult result, const char *file, int line)
{
  return status_fail(ERR_DEVICE, file, line, "NVRTC failed: %s", nvrtcGetErrorString(result));
}

#define TRY_NVRTC(call)                                                                            \
  do {                                                                                             \
    nvrtcResult nvrtc_ = (call);                                                                   \
    if (nvrtc_) return nvrtc_fail(nvrtc_, __FILE__, __LINE__);                                     \
  } while (0)

/* options[..] <- all compile options of a recipe; returns their number.  No other place adds
 * any. */
enum { MAX_OPTIONS = MAX_DEFINES + 8 };
static int options_list(const struct kernel_recipe *recipe, int architecture, char *target,
                        size_t capacity, const char **options)
{
  int n = 0, major = 0, minor = 0;
  snprintf(target, capacity, "--gpu-architecture=sm_%d%s", architecture,
           architecture >= 90 ? "a" : "");
  options[n++] = target;
  options[n++] = "--fmad=false";
  options[n++] = "--std=c++17";
  options[n++] = "--ptxas-options=-v";
  options[n++] = "--modify-stack-limit=false"; /* the limit is one for all threads */
  /* NVRTC 12.9 and newer has a cache of its own, which would suppress the log. */
  nvrtcVersion(&major, &minor);
  if (major * 100 + minor >= 1209) options[n++] = "--no-cache";
  for (int i = 0; i < recipe->n_defines; i++) options[n++] = recipe->defines[i];
  return n;
}

static int program_compile(nvrtcProgram program, const struct kernel_recipe *recipe,
                           int architecture, struct kernel_image *image, char **log)
{
  const char *options[MAX_OPTIONS];
  char target[64];
  int n = options_list(recipe, architecture, target, sizeof target, options);
  nvrtcResult result = nvrtcCompileProgram(program, n, options);
  size_t size = 0;
  TRY_NVRTC(nvrtcGetProgramLogSize(program, &size));
  char *said = calloc(1, size + 1);
  CHECK(said, ERR_MEMORY, "cannot allocate the compiler's log");
  nvrtcGetProgramLog(program, said);
  if (result) {
    int status =
        status_fail(ERR_INTERNAL, __FILE__, __LINE__, "cannot compile %s for sm_%d: %s\n%s",
                    recipe->file, architecture, nvrtcGetErrorString(result), said);
    free(said);
    return status;
  }
  if (log)
    *log = said;
  else
    free(said);
  TRY_NVRTC(nvrtcGetCUBINSize(program, &image->size));
  image->bytes = malloc(image->size);
  CHECK(image->bytes, ERR_MEMORY, "cannot allocate a kernel of %zu bytes", image->size);
  result = nvrtcGetCUBIN(program, image->bytes);
  if (result) {
    free(image->bytes);
    image->bytes = NULL;
  }
  TRY_NVRTC(result);
  return OK;
}

static int texts_compile(const struct texts *t, const struct kernel_recipe *recipe,
                         int architecture, struct kernel_image *image, char **log)
{
  nvrtcProgram program;
  const char *text = text_named(t, recipe->file);
  CHECK(text, ERR_INTERNAL, "there is no kernel file '%s'", recipe->file);
  TRY_NVRTC(nvrtcCreateProgram(&program, text, recipe->file, t->count, t->text, t->name));
  int status = program_compile(program, recipe, architecture, image, log);
  nvrtcDestroyProgram(&program);
  return status;
}

int kernel_compile(const struct kernel_recipe *recipe, int architecture, const char *folder,
                   struct kernel_image *image, char **log)
{
  struct texts texts = {0};
  *image = (struct kernel_image){0};
  int status = texts_collect(&texts, folder);
  if (!status) status = texts_compile(&texts, recipe, architecture, image, log);
  arena_free(&texts.arena);
  return status;
}

/* *key (owned) <- everything on which the image depends: NVRTC's version, options, sources. */
static int key_make(const struct texts *t, const struct kernel_recipe *recipe, int architecture,
                    char **key)
{
  const char *options[MAX_OPTIONS];
  char target[64];
  int major = 0, minor = 0;
  int n = options_list(recipe, architecture, target, sizeof target, options);
  size_t size = 0;
  FILE *out;
  TRY(text_open(&out, key, &size, "the key of a kernel"));
  nvrtcVersion(&major, &minor);
  fprintf(out, "%s NVRTC %d.%d", recipe->file, major, minor);
  for (int i = 0; i < n; i++) fprintf(out, " %s", options[i]);
  for (int i = 0; i < t->count; i++) {
    const char *end = strrchr(t->name[i], '.');
    if (!strcmp(end, ".h") || !strcmp(t->name[i], recipe->file))
      fprintf(out, "\n%s\n%s", t->name[i], t->text[i]);
  }
  return text_close(out, "the key of a kernel");
}

int kernel_image_get(const struct kernel_recipe *recipe, int architecture, const char *folder,
                     struct kernel_image *image)
{
  struct texts texts = {0};
  char *key = NULL;
  *image = (struct kernel_image){0};
  int status = texts_collect(&texts, folder);
  if (!status) status = key_make(&texts, recipe, architecture, &key);
  if (!status && !cache_find(key, image)) {
    double begun = log_seconds();
    status = texts_compile(&texts, recipe, architecture, image, NULL);
    if (!status) cache_store(key, image);
    log_debug("compiled %s for sm_%d in %.2f s", recipe->file, architecture, log_seconds() - begun);
  }
  free(key);
  arena_free(&texts.arena);
  return status;
}
