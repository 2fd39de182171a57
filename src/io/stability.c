/* SPDX-License-Identifier: BSD-3-Clause
 * The file is read like any other input.  So its name may also be a folder, or FILE:/PATH. */
#include "io/stability.h"

#include "base/status.h"
#include "io/identity.h"
#include "io/inputs.h"

static int pairs_read(const struct input_array *in, idx k, struct arena *arena, float **cosine,
                      uint64_t *dictionary)
{
  struct identity first = {0};
  CHECK(in->format == INPUT_H5 && in->rank == 1, ERR_INPUT,
        "'%s' is not the comparison.h5 that `sagitta compare` writes", in->name);
  CHECK(in->shape[0] == k, ERR_INPUT,
        "'%s' compares a dictionary of %lld atoms, and this one has %d: give it to `compare` as "
        "the first one",
        in->name, (long long)in->shape[0], k);
  TRY(identity_read(&in->h5, INPUTS_GROUP "/first", &first));
  *dictionary = first.dictionary;
  TRY(arena_alloc(arena, cosine, k, sizeof **cosine));
  return input_array_read(in, 0, k, *cosine);
}

int stability_read(const char *name, idx k, struct arena *arena, float **cosine,
                   uint64_t *dictionary)
{
  const struct input_standard standard = {.object = "/pairs/cosine", .file = "comparison.h5"};
  struct input_array *in = NULL;
  int status = input_array_open(&in, name, &standard);
  if (!status) status = pairs_read(in, k, arena, cosine, dictionary);
  input_array_close(&in);
  return status;
}
