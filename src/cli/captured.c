/* SPDX-License-Identifier: BSD-3-Clause
 * Opens --rows or a capture as a struct rows_input.  For a capture this struct has one file and no
 * shards. */
#include "cli/captured.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"

int captured_device_open(struct device *device, const struct capture_source *capture, idx queries,
                         gidx beside, const struct device_options *options)
{
  struct device_options o = *options;
  o.work += harvest_work(capture);
  TRY(device_open(device, &o));
  int status = harvest_device_check(capture, device, queries, beside);
  if (!status || !o.kind || strcmp(o.kind, "auto") != 0) return status;
  log_info("harvest: no GPU is used: %s", status_message());
  device_close(device);
  status_clear();
  o.kind = "cpu";
  return device_open(device, &o);
}

void captured_device_name(const struct device *device, char *text, size_t capacity)
{
  int is_gpu = device_is_gpu(device);
  snprintf(text, capacity, "%s%s%s", device->kind, is_gpu ? " " : "",
           is_gpu ? device->variant : "");
}

static int capture_open(struct rows_input *rows, struct captured *c, const char *name,
                        const struct device_options *options)
{
  *rows = (struct rows_input){0};
  TRY(device_check_fma());
  TRY(device_check_subnormals(options->threads));
  TRY(capture_input_open(&c->in, name));
  TRY(captured_device_open(&c->device, &c->in.source, 0, 0, options));
  TRY(harvest_rows_open(&rows->source, &c->reader, &c->in.source, &c->device));
  rows->files = malloc(sizeof *rows->files);
  CHECK(rows->files, ERR_MEMORY, "cannot allocate a name");
  rows->files[rows->n_files++] = c->in.path;
  return OK;
}

int rows_or_capture_check(const char *name, const char *capture)
{
  CHECK(name || capture, ERR_USAGE,
        "'--rows' is missing: give the file with the activation rows, or '--capture' to compute "
        "them");
  CHECK(!name || !capture, ERR_USAGE,
        "both '--rows' and '--capture' are given: leave one of them out");
  return OK;
}

int rows_or_capture_open(struct rows_input *rows, struct captured *c, struct comm *ranks,
                         const char *name, const char *capture, const struct device_options *device)
{
  return capture ? capture_open(rows, c, capture, device) : rows_input_open(rows, ranks, name);
}

/* *largest <- the largest value of all ranks; values are at least 0.  each[c->size] is work space.
 * Collective. */
static int value_max(struct comm *c, real value, real *each, real *largest)
{
  TRY(comm_allgather_real(c, value, each));
  *largest = 0;
  for (int r = 0; r < c->size; r++) *largest = fmax(*largest, each[r]);
  return OK;
}

/* The rounding error of a score, a float32 sum of about 128 products, is typically less than 2^-22
 * times the sum of the absolute values of the products. */
enum { SEEN_BITS = 22 };

int captured_report(struct comm *c, const struct capture_input *in)
{
  const struct attention *a = &in->source.attention;
  struct arena arena = {0};
  real *each, q, k = 0, largest = 0;
  TRY(comm_agree(c, arena_alloc(&arena, &each, c->size, sizeof *each)));
  for (idx h = 0, group = a->heads / a->kv_heads; h < a->heads; h++) {
    if (h % group == 0) TRY(value_max(c, in->k_square[h / group], each, &k));
    TRY(value_max(c, in->q_square[h], each, &q));
    largest = fmax(largest, a->scale * sqrt(q) * sqrt(k));
  }
  arena_free(&arena);
  if (ldexp(largest, -SEEN_BITS) > 1e-3)
    log_warn("terms of scores may reach %.2g in size: where terms cancel, rounding in float32 "
             "changes scores, and so lse and weights, by about %.0e (numerics.md, N.27)",
             largest, ldexp(largest, -SEEN_BITS));
  return OK;
}

void captured_close(struct captured *c)
{
  harvest_rows_close(c->reader);
  device_close(&c->device);
  capture_input_close(&c->in);
}
