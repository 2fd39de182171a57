/* SPDX-License-Identifier: BSD-3-Clause
 * A capture stands for an input of rows that has one file and no shards. */
#include "cli/captured.h"

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
        "'--rows' is missing: the file with the activation rows, or '--capture' to compute them");
  CHECK(!name || !capture, ERR_USAGE,
        "both '--rows' and '--capture' are given: rows come from one of them");
  return OK;
}

int rows_or_capture_open(struct rows_input *rows, struct captured *c, const char *name,
                         const char *capture, const struct device_options *device)
{
  return capture ? capture_open(rows, c, capture, device) : rows_input_open(rows, name);
}

void captured_close(struct captured *c)
{
  harvest_rows_close(c->reader);
  device_close(&c->device);
  capture_input_close(&c->in);
}
