/* SPDX-License-Identifier: BSD-3-Clause
 * Opening a handle, with the checks of its options; and encoding rows, LIBRARY_ROWS at a time. */
#include "library/library.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "device/codes.h"
#include "device/route.h"
#include "library/encoded.h"
#include "library/resident.h"
#include "library/routed.h"
#include "model/dictionary.h"
#include "model/rows.h"

int sagitta_abi(void)
{
  return SAGITTA_ABI;
}

const char *sagitta_message(void)
{
  return status_message();
}

static int is_gpu(const struct sagitta_options *o)
{
  return o->device && !strcmp(o->device, "cuda");
}

static int options_check(const struct sagitta_options *o)
{
  CHECK(o->abi == SAGITTA_ABI, ERR_USAGE,
        "libsagitta has ABI %d, and is asked for %d: install the package that belongs to it",
        SAGITTA_ABI, o->abi);
  CHECK(o->k >= 1 && o->p >= 1 && o->atoms, ERR_INPUT,
        "there are %d atoms of %d columns: give one at least", o->k, o->p);
  CHECK(o->threads >= 1, ERR_USAGE, "threads is %d: give 1 or more", o->threads);
  CHECK(o->rho >= 0 && o->rho <= 1e30, ERR_USAGE, "rho is %g: give 0 to 1e30", o->rho);
  CHECK(!o->device || !strcmp(o->device, "cpu") || !strcmp(o->device, "cuda"), ERR_USAGE,
        "device is '%s': give cpu or cuda", o->device);
  CHECK(!o->encoder || !is_gpu(o), ERR_USAGE, "encoders have no handle of a GPU: copy the rows");
  if (o->encoder) return OK;
  idx most = (idx)imin(o->k, MAX_TOP_S);
  CHECK(o->top_s >= 1 && o->top_s <= most, ERR_USAGE,
        "top_s is %d, there are %d atoms: give 1 to %d", o->top_s, o->k, most);
  CHECK(o->rounds >= 1 && o->rounds <= o->top_s, ERR_USAGE, "rounds is %d: give 1 to top_s, %d",
        o->rounds, o->top_s);
  return OK;
}

/* Set the options from which a GPU plans its memory. */
static void gpu_announce(const struct sagitta_options *o, struct device_options *options)
{
  options->kind = "cuda";
  options->local_rank = o->gpu;
  options->top_k = (idx)ceil_div(o->top_s, o->rounds);
  options->route_rows = LIBRARY_ROWS;
  options->codes_rows = o->rounds > 1 ? 0 : LIBRARY_ROWS;
  options->preprocess = 1;
}

/* Check that the device is the GPU that was asked for: device_open() takes another GPU if there are
 * too few GPUs.  Then prepare the operation that centres rows there. */
static int gpu_take(struct sagitta *h)
{
  const struct sagitta_options *o = &h->options;
  const struct preprocess_shape shape = {.p = o->p, .block = LIBRARY_ROWS, .mean = o->mean};
  CHECK(h->device.gpu.number == o->gpu, ERR_USAGE, "there is no GPU %d here", o->gpu);
  return preprocess_open(&h->preprocess, &h->device, &shape);
}

/* Open the device, like device_prepare() of encode/encode.c, and put the atoms or the encoder's
 * matrix on it. */
static int device_prepare(struct sagitta *h)
{
  const struct sagitta_options *o = &h->options;
  /* An encoder's own codes are nonnegative; so are those of active atoms. */
  int is_own = h->has_encoder && !o->solves;
  struct device_options options = {.p = o->p,
                                   .d = 1,
                                   .max_atoms = o->k,
                                   .nonnegative = is_own || o->nonnegative,
                                   .threads = o->threads,
                                   .variant = o->variant ? o->variant : "auto",
                                   .kind = "cpu",
                                   .support = h->has_encoder ? 0 : o->top_s,
                                   .encoder = h->has_encoder,
                                   .filter = o->filter ? o->filter : "auto"};
  if (is_gpu(o)) gpu_announce(o, &options);
  TRY(device_open(&h->device, &options));
  TRY(is_gpu(o) ? gpu_take(h) : device_check_fma());
  gidx bytes = (gidx)o->k * o->p * (gidx)sizeof(float);
  TRY(buffer_wrap(&h->device, &h->table, (void *)(uintptr_t)o->atoms, bytes));
  TRY(device_put(&h->device, &h->table, 0, bytes));
  return h->has_encoder ? encoded_put(h) : device_put_tile(&h->device, o->atoms, o->k, 0);
}

static int open_checked(struct sagitta *h)
{
  const struct sagitta_options *o = &h->options;
  TRY(atoms_check(o->atoms, o->k, 1, o->p, 0, "atoms"));
  h->has_encoder = o->encoder != NULL;
  if (h->has_encoder) TRY(encoded_check(h));
  TRY(device_check_subnormals(o->threads));
  return device_prepare(h);
}

/* End a call: give its threads their floating-point environments back.  Returns the status. */
static int ended(const struct sagitta *h, int status)
{
  device_rounding_give(h->callers, h->options.threads);
  return status;
}

static int handle_open(struct sagitta *h)
{
  TRY(options_check(&h->options));
  TRY(arena_alloc(&h->arena, &h->callers, h->options.threads, sizeof *h->callers));
  device_rounding_take(h->callers, h->options.threads);
  return ended(h, open_checked(h));
}

int sagitta_open(const struct sagitta_options *options, struct sagitta **handle)
{
  status_clear();
  log_setup(LOG_QUIET, 0);
  *handle = NULL;
  struct sagitta *h;
  TRY(struct_alloc(&h, sizeof *h));
  h->options = *options;
  int status = handle_open(h);
  if (status)
    sagitta_close(h);
  else
    *handle = h;
  return status;
}

static void room_free(struct sagitta *h)
{
  if (!h->device.backend) return;
  routed_free(h);
  encoded_free(h);
  buffer_free(&h->device, &h->x);
  arena_free(&h->room);
  h->rows = 0;
}

void sagitta_close(struct sagitta *h)
{
  if (!h) return;
  room_free(h);
  preprocess_close(&h->preprocess);
  if (h->device.backend) buffer_free(&h->device, &h->table);
  device_close(&h->device);
  entries_free(&h->piece);
  entries_free(&h->found);
  free(h->all_start);
  arena_free(&h->arena);
  free(h);
}

/* Make room for at least n rows; after a failure there is room for none. */
static int room_take(struct sagitta *h, idx n)
{
  if (n <= h->rows) return OK;
  room_free(h);
  h->rows = n;
  gidx bytes = (gidx)n * h->options.p * (gidx)sizeof(float);
  int status = buffer_alloc_device(&h->device, &h->x, bytes);
  if (!status) status = arena_alloc(&h->room, &h->start, (gidx)n + 1, sizeof *h->start);
  if (!status) status = h->has_encoder ? encoded_alloc(h) : routed_alloc(h);
  if (status) room_free(h);
  return status;
}

/* Append the results of n rows to h->found.  first: the number of the first of them in the call. */
static int block_encode(struct sagitta *h, const float *x, gidx first, idx n)
{
  size_t bytes = (size_t)n * (size_t)h->options.p * sizeof *x;
  TRY(rows_check(x, n, h->options.p, first, "x"));
  memcpy(h->x.host, x, bytes);
  if (h->has_encoder) memcpy(h->raw.host, x, bytes);
  rows_center(h->x.host, n, h->options.p, h->options.mean);
  TRY(device_put(&h->device, &h->x, 0, (gidx)bytes));
  TRY(h->has_encoder ? encoded_encode(h, first, n) : routed_encode(h, first, n));
  for (idx i = 0; i < n; i++) h->all_start[first + i + 1] = h->found.n + h->start[i + 1];
  CHECK(entries_append(&h->found, &h->piece), ERR_MEMORY, "cannot allocate the codes of %d rows",
        n);
  return OK;
}

static int rows_encode(struct sagitta *h, const float *x, int64_t n, struct sagitta_codes *codes)
{
  CHECK(n >= 0, ERR_USAGE, "there are %lld rows", (long long)n);
  CHECK(!is_gpu(&h->options), ERR_USAGE,
        "rows of a GPU are taken by sagitta_support() only: copy them to the host");
  TRY(device_check_subnormals(h->options.threads));
  TRY(array_reserve(&h->all_start, &h->start_capacity, n + 1, sizeof *h->all_start));
  TRY(room_take(h, (idx)imin(n, LIBRARY_ROWS)));
  h->found.n = h->all_start[0] = 0;
  for (gidx first = 0, m; first < n; first += m) {
    m = imin(n - first, LIBRARY_ROWS);
    TRY(block_encode(h, x + first * h->options.p, first, (idx)m));
  }
  *codes = (struct sagitta_codes){n, h->all_start, h->found.atoms, h->found.score, h->found.codes};
  return OK;
}

int sagitta_encode(struct sagitta *h, const float *x, int64_t n, struct sagitta_codes *codes)
{
  status_clear();
  device_rounding_take(h->callers, h->options.threads);
  return ended(h, rows_encode(h, x, n, codes));
}

static int rows_support(struct sagitta *h, const struct resident *r, int64_t n, void *stream)
{
  CHECK(n >= 0, ERR_USAGE, "there are %lld rows", (long long)n);
  CHECK(!h->has_encoder, ERR_USAGE, "a handle with an encoder takes sagitta_encode() only");
  TRY(device_check_subnormals(h->options.threads));
  TRY(device_follow(&h->device, stream));
  TRY(room_take(h, (idx)imin(n, LIBRARY_ROWS)));
  for (gidx first = 0, m; first < n; first += m) {
    m = imin(n - first, LIBRARY_ROWS);
    TRY(resident_encode(h, r, first, (idx)m));
  }
  return OK;
}

int sagitta_support(struct sagitta *h, const float *x, int64_t n, void *stream, int32_t *atoms,
                    float *codes)
{
  const struct resident r = {x, atoms, codes};
  status_clear();
  device_rounding_take(h->callers, h->options.threads);
  return ended(h, rows_support(h, &r, n, stream));
}

void sagitta_copied(const struct sagitta *h, int64_t *bytes)
{
  bytes[0] = h->device.counts.put;
  bytes[1] = h->device.counts.got;
}
