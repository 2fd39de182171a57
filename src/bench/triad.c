/* SPDX-License-Identifier: BSD-3-Clause
 * Times back product, gradient and forward product of one matrix in turn, and on a CPU first sgemm
 * of OpenBLAS.  Prints medians. */
#include "bench/triad.h"

#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "bench/peer.h"
#include "device/tensor.h"

enum triad_case { CASE_PEER, CASE_FORWARD, CASE_BACK, CASE_GRADIENT, CASES };
static const char *const case_names[CASES] = {"sgemm", "forward", "back", "gradient"};
enum { MAX_REPEATS = 1000 };

struct bench {
  const struct bench_route_options *o;
  const struct bench_common *common;
  struct device device;
  struct buffer x, w, y, product; /* [m][k], [n][k], [m][n]; CPU only: sgemm's [PEER_ROWS][n] */
  struct buffer dx, dw;           /* [m][k], [n][k] */
  struct buffer work;             /* work space of products and gradients */
  enum precision precision;
  struct tensor_stored stored;
  double seconds[CASES][MAX_REPEATS];
};

/* Bytes of a number in all matrices except dw and product, which are f32. */
static gidx item_of(const struct bench *b)
{
  return b->stored.left ? (gidx)sizeof(uint16_t) : (gidx)sizeof(float);
}

static int buffer_fill(struct bench *b, struct buffer *to, gidx count, uint64_t stream)
{
  enum { DRAWN = 1 << 20 }; /* numbers that are drawn; a larger matrix repeats them */
  gidx item = item_of(b);
  TRY(buffer_alloc(&b->device, to, count * item));
  for (gidx i = 0; i < imin(count, DRAWN); i++) {
    float value = (float)random_normal(1, stream, (uint64_t)i);
    if (!b->stored.left)
      ((float *)to->host)[i] = value;
    else if (b->precision == PRECISION_BF16)
      ((uint16_t *)to->host)[i] = bf16_bits(precision_round(value, b->precision));
    else
      ((uint16_t *)to->host)[i] = f16_bits(precision_round(value, b->precision));
  }
  for (gidx i = DRAWN; i < count; i += DRAWN)
    memcpy((char *)to->host + i * item, to->host, (size_t)(imin(count - i, DRAWN) * item));
  return device_put(&b->device, to, 0, to->bytes);
}

static int buffers_open(struct bench *b)
{
  struct device *dev = &b->device;
  gidx m = b->o->n_rows, k = b->o->columns, n = b->o->atoms, item = sizeof(float);
  TRY(buffer_fill(b, &b->x, m * k, 1));
  TRY(buffer_fill(b, &b->w, n * k, 2));
  TRY(buffer_fill(b, &b->y, m * n, 3));
  TRY(buffer_alloc_device(dev, &b->dx, m * k * item_of(b)));
  TRY(buffer_alloc_device(dev, &b->dw, n * k * item));
  return device_is_gpu(dev) ? OK : buffer_alloc(dev, &b->product, PEER_ROWS * n * item);
}

/* The matrix w has a row for each output, as the matrix of an encoder.  Its gradient is dy'x; y
 * also serves as dy, the gradient of the outputs. */
static struct triad_product forward_of(const struct bench *b)
{
  idx m = b->o->n_rows, k = b->o->columns, n = b->o->atoms;
  return (struct triad_product){b->x.device, {b->w.device, 1, k}, NULL, b->y.device, k, n, m, k, n};
}

static struct triad_product back_of(const struct bench *b)
{
  idx m = b->o->n_rows, k = b->o->columns, n = b->o->atoms;
  return (struct triad_product){
      b->y.device, {b->w.device, k, 1}, NULL, b->dx.device, n, k, m, n, k};
}

static struct triad_gradient gradient_of(const struct bench *b)
{
  idx m = b->o->n_rows, k = b->o->columns, n = b->o->atoms;
  return (struct triad_gradient){b->y.device, b->x.device, b->dw.device, n, k, k, m, n, k};
}

static struct tensor_stored gradient_stored(const struct bench *b)
{
  return (struct tensor_stored){b->stored.left, b->stored.right, 0};
}

static gidx product_bytes(const struct bench *b, const struct triad_product *p)
{
  return b->stored.left ? device_tensor_product_bytes(&b->device, b->precision, p, b->stored)
                        : device_triad_product_bytes(&b->device, b->precision, p);
}

/* Allocate the work space that the largest of the three operations needs. */
static int work_open(struct bench *b)
{
  struct device *dev = &b->device;
  struct triad_product forward = forward_of(b), back = back_of(b);
  struct triad_gradient gradient = gradient_of(b);
  gidx most = b->stored.left
                  ? device_tensor_gradient_bytes(dev, b->precision, &gradient, gradient_stored(b))
                  : device_triad_gradient_bytes(dev, b->precision, &gradient);
  most = imax(most, product_bytes(b, &forward));
  most = imax(most, product_bytes(b, &back));
  return most ? buffer_alloc_device(dev, &b->work, most) : OK;
}

static int product_run(struct bench *b, const struct triad_product *p)
{
  return b->stored.left
             ? device_tensor_product(&b->device, b->precision, p, b->stored, b->work.device)
             : device_triad_product(&b->device, b->precision, p, b->work.device);
}

static int gradient_run(struct bench *b, const struct triad_gradient *g)
{
  struct device *dev = &b->device;
  return b->stored.left
             ? device_tensor_gradient(dev, b->precision, g, gradient_stored(b), b->work.device)
             : device_triad_gradient(dev, b->precision, g, b->work.device);
}

static int repeat_run(struct bench *b, int turn)
{
  struct device *dev = &b->device;
  idx m = b->o->n_rows, k = b->o->columns, n = b->o->atoms;
  struct triad_product forward = forward_of(b), back = back_of(b);
  struct triad_gradient gradient = gradient_of(b);
  double *at[CASES], begun;
  for (int i = 0; i < CASES; i++) at[i] = &b->seconds[i][turn];
  *at[CASE_PEER] = device_is_gpu(dev) ? 0
                                      : peer_sgemm(b->x.host, b->w.host, m, n, k, b->product.host,
                                                   b->common->threads);
  begun = log_seconds();
  TRY(product_run(b, &back));
  *at[CASE_BACK] = log_seconds() - begun;
  begun = log_seconds();
  TRY(gradient_run(b, &gradient));
  *at[CASE_GRADIENT] = log_seconds() - begun;
  begun = log_seconds();
  TRY(product_run(b, &forward));
  *at[CASE_FORWARD] = log_seconds() - begun;
  return OK;
}

/* Print a line.  peak: the peak rate of the device, in fused multiply-adds per second. */
static void line_print(struct bench *b, int which, double peak)
{
  const struct bench_route_options *o = b->o;
  struct json *j = b->common->json;
  double middle = median(b->seconds[which], b->common->repeats);
  double rate = (double)o->n_rows * o->columns * o->atoms / middle;
  if (j) {
    json_object(j, NULL);
    json_text(j, "name", case_names[which]);
    json_real(j, "seconds", middle);
    json_real(j, "gfmas", 1e-9 * rate);
    json_real(j, "of_peak", rate / peak);
    json_end(j);
    return;
  }
  printf("%-10s %10.3f %10.1f %9.1f%%\n", case_names[which], 1e3 * middle, 1e-9 * rate,
         100 * rate / peak);
}

static void table_print(struct bench *b)
{
  const struct bench_route_options *o = b->o;
  struct json *j = b->common->json;
  /* device_peak() counts a multiply and an add as two instructions */
  double peak = b->precision == PRECISION_F32 ? 2 * device_peak(&b->device, 0.05)
                                              : device_tensor_peak(&b->device, b->precision);
  if (!device_is_gpu(&b->device)) peak *= b->common->threads;
  if (j) {
    json_long(j, "rows", o->n_rows);
    json_long(j, "columns", o->columns);
    json_long(j, "atoms", o->atoms);
    json_text(j, "precision", o->precision);
    json_flag(j, "stored", o->stored);
    json_text(j, "variant", b->device.variant);
    json_real(j, "peak_gfmas", 1e-9 * peak);
    json_array(j, "lines");
  } else {
    printf(
        "%d rows, %d inputs, %d outputs, precision=%s%s threads=%d variant=%s, peak %.1f Gfma/s, "
        "medians of %d runs\n",
        o->n_rows, o->columns, o->atoms, o->precision, o->stored ? " stored" : "",
        b->common->threads, b->device.variant, 1e-9 * peak, b->common->repeats);
    printf("%-10s %10s %10s %10s\n", "", "ms", "Gfma/s", "of peak");
  }
  for (int which = 0; which < CASES; which++)
    if (b->seconds[which][0] > 0) line_print(b, which, peak);
  if (j) json_end(j);
}

int bench_triad(const struct bench_route_options *o, const struct bench_common *common)
{
  static struct bench b;
  b = (struct bench){.o = o, .common = common, .precision = precision_of(o->precision)};
  CHECK(!o->stored || b.precision == PRECISION_BF16 || b.precision == PRECISION_F16, ERR_USAGE,
        "'--stored' goes only with '--precision bf16' or 'f16': %s is f32 in memory", o->precision);
  b.stored = (struct tensor_stored){o->stored, o->stored, o->stored};
  struct device_options options = bench_device(common, o->columns, 0);
  TRY(device_open(&b.device, &options));
  if (b.precision != PRECISION_F32) TRY(device_tensor_has(&b.device, b.precision));
  TRY(buffers_open(&b));
  TRY(work_open(&b));
  TRY(repeat_run(&b, 0)); /* may compile kernels */
  for (int r = 0; r < common->repeats; r++) TRY(repeat_run(&b, r));
  table_print(&b);
  struct buffer *const all[] = {&b.x, &b.w, &b.y, &b.product, &b.dx, &b.dw, &b.work};
  for (int i = 0; i < LENGTH(all); i++) buffer_free(&b.device, all[i]);
  device_close(&b.device);
  return OK;
}
