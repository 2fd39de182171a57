/* SPDX-License-Identifier: BSD-3-Clause
 * The arrays are opened a second time for hashing, since a struct h5_array that hashes may be used
 * by only one thread at a time.  An array that cannot be hashed in this way is read again. */
#include "io/entry_hashes.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

static const char *const paths[ENTRY_ARRAYS] = {"/supports/indices", "/supports/data",
                                                "/supports/score", "/supports/codes"};

int entry_hashes_have(const char *path)
{
  for (int i = 0; i < ENTRY_ARRAYS; i++)
    if (!strcmp(path, paths[i])) return 1;
  return 0;
}

int entry_hashes_open(struct entry_hashes *h, const struct verify *v)
{
  *h = (struct entry_hashes){.v = v};
  for (int i = 0; i < ENTRY_ARRAYS && v->leaves; i++) {
    struct entry_hash *of = &h->of[h->count];
    int there;
    TRY(h5_exists(v->file, paths[i], &there));
    if (!there) continue;
    v->file->is_hashed = 0;
    int status = h5_array_open(v->file, paths[i], &of->array);
    v->file->is_hashed = 1;
    TRY(status);
    of->which = i;
    h->count++;
  }
  return OK;
}

void entry_hashes_close(struct entry_hashes *h)
{
  for (int i = 0; i < ENTRY_ARRAYS; i++) h5_array_close(&h->of[i].array);
}

void entry_hashes_add(struct entry_hashes *h, gidx i)
{
  struct entry_hash *of = &h->of[i];
  if (!h->entries || of->status || !of->array.is_native) return;
  of->status = h5_array_hash(&of->array, h->first, h->entries, of->values);
  if (!of->status) return;
  status_take(of->message, sizeof of->message); /* the message belongs to this thread */
}

int entry_hashes_status(const struct entry_hashes *h)
{
  for (int i = 0; i < h->count; i++)
    if (h->of[i].status) return status_set(h->of[i].status, h->of[i].message);
  return OK;
}

void entry_hashes_next(struct entry_hashes *h, gidx first, gidx entries,
                       const void *const values[ENTRY_ARRAYS])
{
  h->first = first;
  h->entries = entries;
  for (int i = 0; i < h->count; i++) h->of[i].values = values[h->of[i].which];
}

int entry_hashes_end(struct entry_hashes *h)
{
  TRY(entry_hashes_status(h));
  for (int i = 0; i < h->count; i++) {
    if (h5_array_is_hashed(&h->of[i].array)) continue;
    h->v->file->is_hashed = 0;
    int status = h5_array_confirm(h->v->file, paths[h->of[i].which]);
    h->v->file->is_hashed = 1;
    TRY(status);
  }
  return OK;
}
