/* SPDX-License-Identifier: BSD-3-Clause
 * Each task of h5_leaves_agree() computes one leaf, so a thread holds at most one chunk. */
#include "io/h5/leaves.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/team.h"

enum { WORDS = SHA256_BYTES / 8 };
/* The largest number of leaves that are compared here; 10^9 rows of 64 codes have only 244,141. */
enum { LEAVES_MOST = 1 << 24 };

static int name_write(const char *object, char *name, size_t capacity)
{
  int length = snprintf(name, capacity, "%s%s%s", H5_LEAVES, *object == '/' ? "" : "/", object);
  CHECK((size_t)length < capacity, ERR_INTERNAL, "the name '%s' is too long", object);
  return OK;
}

int h5_is_leaves(const struct h5_file *f, const char *object)
{
  size_t n = strlen(H5_LEAVES);
  return f->version >= H5_TREE_FROM && strncmp(object, H5_LEAVES, n) == 0 &&
         (object[n] == '/' || !object[n]);
}

static int leaves_put(const struct h5_file *f, const char *name, const struct h5_digest *digest)
{
  struct h5_array a;
  gidx n = (gidx)digest->tree.leaves, shape[2] = {n, WORDS};
  int status = h5_array_create(f, name, TYPE_I64, 2, shape, &a);
  h5_digest_free(&a.digest);
  if (status == OK) status = h5_array_write(&a, 0, n, digest->leaves);
  int closed = h5_array_close(&a);
  return status ? status : closed;
}

int h5_leaves_write(const struct h5_digest *digest, const char *path, const char *object,
                    int64_t dataset)
{
  char name[sizeof((struct h5_array *)0)->object];
  if (digest->tree.leaves < 2) return OK;
  TRY(name_write(object, name, sizeof name));
  struct h5_file f = {.id = H5Iget_file_id(dataset), .path = path};
  TRY_H5(f.id, ERR_IO, "cannot write '%s' of '%s'", name, path);
  int status = leaves_put(&f, name, digest);
  H5Fclose(f.id);
  return status;
}

/* leaf <- the bytes of a root, which is the only leaf. */
static int root_parse(const struct h5_file *f, const char *object, const char *text,
                      unsigned char *leaf)
{
  int good = 1;
  for (int i = 0; i < SHA256_BYTES && good; i++)
    good = sscanf(text + 2 * i, "%2hhx", leaf + i) == 1;
  CHECK(good, ERR_INPUT, "'%s' of '%s' has the hash '%s'" ANEW, object, f->path, text);
  return OK;
}

static int root_check(const struct h5_file *f, const char *object, const struct h5_digest *digest,
                      const unsigned char *leaves)
{
  struct sha256_tree tree = {.leaves = 0};
  char found[SHA256_HEX];
  for (gidx i = 0; i < h5_digest_leaves(digest); i++)
    TRY(sha256_tree_add(&tree, leaves + i * SHA256_BYTES));
  TRY(sha256_tree_root(&tree, found));
  CHECK(
      strcmp(found, digest->wanted) == 0, ERR_INPUT,
      "the hashes of '%s' of '%s' in '%s' are not what was written: their root is %s, not %s" ANEW,
      object, f->path, H5_LEAVES, found, digest->wanted);
  return OK;
}

/* leaves[n] <- the hashes in a dataset of leaves. */
static int leaves_load(const struct h5_file *f, const char *name, gidx n, unsigned char *leaves)
{
  struct h5_array a;
  TRY(h5_array_open(f, name, &a));
  int is_right =
      a.type == TYPE_I64 && a.rank == 2 && a.shape[0] == n && a.shape[1] == WORDS && a.is_native;
  int status = is_right ? h5_array_read(&a, 0, n, TYPE_I64, leaves)
                        : status_fail(ERR_INPUT, __FILE__, __LINE__,
                                      "'%s' of '%s' does not have %lld hashes" ANEW, name, f->path,
                                      (long long)n);
  int closed = h5_array_close(&a);
  return status ? status : closed;
}

static int leaves_fill(const struct h5_file *f, const char *object, const struct h5_digest *digest,
                       unsigned char *leaves)
{
  char name[sizeof((struct h5_array *)0)->object];
  gidx n = h5_digest_leaves(digest);
  if (n == 1) return root_parse(f, object, digest->wanted, leaves);
  TRY(name_write(object, name, sizeof name));
  if (n) TRY(leaves_load(f, name, n, leaves));
  return root_check(f, object, digest, leaves);
}

int h5_leaves_read(const struct h5_file *f, const char *object, const struct h5_digest *digest,
                   unsigned char **leaves)
{
  gidx n = h5_digest_leaves(digest);
  *leaves = malloc((size_t)n * SHA256_BYTES + 1);
  CHECK(*leaves, ERR_MEMORY, "cannot allocate %lld hashes", (long long)n);
  int status = leaves_fill(f, object, digest, *leaves);
  if (status) free(*leaves), *leaves = NULL;
  return status;
}

struct leaves_read {
  struct h5_chunks *chunks;
  int64_t dataset;
  unsigned char *leaves;
  _Atomic int failed;
};

static void leaf_read(void *self, gidx i)
{
  struct leaves_read *r = self;
  const struct h5_chunks *c = r->chunks;
  gidx first = i * c->rows, n = imin(c->rows, c->end - first);
  size_t row = c->bytes / (size_t)c->rows;
  unsigned char *bytes = r->failed ? NULL : malloc(c->bytes);
  if (!bytes || h5_chunks_read(r->chunks, r->dataset, first, n, bytes) != n ||
      sha256_leaf(bytes, (size_t)n * row, r->leaves + i * SHA256_BYTES))
    r->failed = 1;
  free(bytes);
  status_clear(); /* of this thread */
}

int h5_leaves_agree(const struct h5_digest *digest, struct h5_chunks *chunks, int64_t dataset)
{
  if (!chunks || !h5_digest_hashes(digest) || !digest->is_tree) return 0;
  gidx n = h5_digest_leaves(digest), rows = ceil_div(chunks->end, chunks->rows);
  if (n != rows || n == 0 || n > LEAVES_MOST) return 0;
  struct leaves_read r = {chunks, dataset, malloc((size_t)n * SHA256_BYTES), 0};
  struct sha256_tree tree = {.leaves = 0};
  char found[SHA256_HEX] = "";
  if (r.leaves) spare_run(n, leaf_read, &r);
  int is_done = r.leaves && !r.failed;
  for (gidx i = 0; i < n && is_done; i++)
    is_done = sha256_tree_add(&tree, r.leaves + i * SHA256_BYTES) == OK;
  is_done = is_done && sha256_tree_root(&tree, found) == OK;
  free(r.leaves);
  if (!is_done) status_clear();
  return is_done && strcmp(found, digest->wanted) == 0;
}
