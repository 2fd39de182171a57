/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: products and gradients by the matrix unit of a GPU, with wgmma and with mma.sync, round
 * operands as the model does, have sums near those in f64, and have bits that do not depend on
 * neighbouring rows and columns.  With SMALL=1, for sanitizers, there are few shapes. */
#include "triad_case.h"

static const struct device_test mma = {.mma = 1};
static const struct how hows[] = {{.kind = "cuda", .variant = "auto", .threads = 1},
                                  {.kind = "cuda", .variant = "auto", .threads = 1, .test = &mma}};
static const enum precision precisions[] = {PRECISION_BF16, PRECISION_F16, PRECISION_TF32};

/* Is a chain of `terms` terms near to the f64 value?  sizes: the sum of the terms' magnitudes
 * (N.45). */
static int is_near(double got, double wanted, double sizes, idx terms)
{
  return fabs(got - wanted) <= (terms + 1) * 0x1p-23 * sizes;
}

static float *rounded(struct triad_case *c, const float *x, gidx n, enum precision precision)
{
  float *values;
  if (arena_alloc(&c->arena, &values, n, sizeof *values)) return NULL;
  for (gidx i = 0; i < n; i++) values[i] = precision_round(x[i], precision);
  return values;
}

/* Is an output near to the f64 inner product of x and y at these strides? */
static int output_near(const float *x, gidx x_hop, const float *y, gidx y_hop, idx terms,
                       double start, float got)
{
  double sum = start, sizes = fabs(start);
  for (idx i = 0; i < terms; i++) {
    double product = (double)x[i * x_hop] * (double)y[i * y_hop];
    sum += product;
    sizes += fabs(product);
  }
  return is_near(got, sum, sizes, terms);
}

/* every: one of `every` outputs is checked. */
static void shape_check(struct device *dev, enum precision precision, struct triad_shape z,
                        int every)
{
  struct triad_case c;
  const idx m = z.m, k = z.k, n = z.n;
  triad_case_make(&c, z, VALUES_NORMAL);
  const float *x = rounded(&c, c.x, (gidx)m * k, precision);
  const float *w = rounded(&c, c.w, (gidx)k * n, precision);
  const float *dy = rounded(&c, c.dy, (gidx)m * n, precision);
  const char *name = precision_name(precision);
  struct triad_product p = triad_forward_of(&c, c.bias, c.got);
  int near = 1, status = side_product(dev, precision, &p);
  for (gidx i = 0; i < (gidx)m * n; i += every)
    near &= output_near(x + i / n * k, 1, w + i % n, n, k, c.bias[i % n], c.got[i]);
  ok(!status && near, "%s forward: %d x %d x %d: %s", name, m, k, n, status_message());
  p = triad_back_of(&c, c.got);
  near = 1, status = side_product(dev, precision, &p);
  for (gidx i = 0; i < (gidx)m * k; i += every)
    near &= output_near(dy + i / k * n, 1, w + i % k * n, 1, n, 0, c.got[i]);
  ok(!status && near, "%s back: %d x %d x %d: %s", name, m, k, n, status_message());
  struct triad_gradient g = triad_gradient_of(&c, c.got);
  near = 1, status = side_gradient(dev, precision, &g);
  for (gidx i = 0; i < (gidx)k * n; i += every)
    near &= output_near(x + i / n, k, dy + i % n, n, m, c.start[i], c.got[i]);
  ok(!status && near, "%s gradient: %d x %d x %d: %s", name, m, k, n, status_message());
  status_clear();
  arena_free(&c.arena);
}

static void check_shapes(struct device *dev, enum precision precision)
{
  static const idx sizes[] = {1, 2, 3, 31, 32, 33, 127, 128, 129};
  static const struct triad_shape more[] = {{1000, 1000, 129}, {250, 1000, 1}, {1, 1000, 1000},
                                            {2730, 33, 65},    {1025, 1, 33},  {4097, 5, 7}};
  enum { SIZES = LENGTH(sizes) };
  const int each = is_small() ? 91 : 1; /* with 91 each side still has every size */
  claim_begin("%s: sums are near those in f64", precision_name(precision));
  for (int i = 0; i < SIZES * SIZES * SIZES; i += each) {
    struct triad_shape z = {sizes[i % SIZES], sizes[i / SIZES % SIZES], sizes[i / SIZES / SIZES]};
    shape_check(dev, precision, z, 1);
  }
  for (int i = 0; i < LENGTH(more) && !is_small(); i++) shape_check(dev, precision, more[i], 7);
  if (!is_small()) shape_check(dev, precision, (struct triad_shape){2048, 768, 3072}, 4099);
  claim_end();
}

/* A product with 1 gives the rounded operand. */
static void check_rounding(struct device *dev, enum precision precision)
{
  enum { M = 60000 };
  struct triad_case c;
  int same = 1;
  triad_case_make(&c, (struct triad_shape){M, 1, 1}, VALUES_WILD);
  for (idx i = 0; i < M; i++) /* ties too, and numbers around the largest */
    if (i % 3 == 0) c.x[i] = ldexpf((float)(i % 4096 + 2048) / 4096, i / 3 % 40 - 20);
  for (idx i = 0; i < 64; i++) c.x[i] = 65472 + (float)i;
  c.w[0] = 1;
  struct triad_product p = triad_forward_of(&c, NULL, c.got);
  int status = side_product(dev, precision, &p);
  claim_begin("%s: operands are rounded as the model rounds them", precision_name(precision));
  for (idx i = 0; i < M; i++) {
    float wanted = precision_round(c.x[i], precision), got = c.got[i];
    int is_same = wanted == got || (wanted != wanted && got != got);
    if (!is_same && same) printf("# %a became %a, not %a\n", c.x[i], got, wanted);
    same &= is_same;
  }
  ok(!status && same, "%s", status_message());
  claim_end();
  status_clear();
  arena_free(&c.arena);
}

/* The first rows have the same bits, however many rows follow them.  The first columns have the
 * same bits, however many columns follow them. */
static void check_beside(struct device *dev, enum precision precision)
{
  enum { FIRST = 64, K = 96, N = 530 };
  static const idx counts[] = {1, 16, 31, 32, 64, 256, 1024, 1025, 2048, 2730, 2731, 4096};
  static const idx widths[] = {1, 7, 128, 129, 256, 257, N};
  struct triad_case c;
  triad_case_make(&c, (struct triad_shape){4096, K, N}, VALUES_NORMAL);
  claim_begin("%s: bits do not depend on the rows and columns beside them",
              precision_name(precision));
  struct triad_product p = triad_forward_of(&c, c.bias, c.wanted);
  ok(side_product(dev, precision, &p) == OK, "%s", status_message());
  p.y = c.got;
  for (int i = 0; i < LENGTH(counts); i++) {
    p.m = counts[i];
    memset(c.got, 0, 4096 * N * sizeof *c.got);
    int status = side_product(dev, precision, &p);
    ok(!status && !memcmp(c.got, c.wanted, (size_t)imin(p.m, FIRST) * N * sizeof *c.got),
       "rows 0..63 of %d: %s", p.m, status_message());
  }
  for (int i = 0; i < LENGTH(widths); i++) {
    int same = 1;
    p.m = 300, p.n = widths[i];
    int status = side_product(dev, precision, &p);
    for (idx r = 0; r < p.m; r++)
      same &= !memcmp(c.got + (gidx)r * N, c.wanted + (gidx)r * N, (size_t)p.n * sizeof *c.got);
    ok(!status && same, "%d columns: %s", p.n, status_message());
  }
  claim_end();
  arena_free(&c.arena);
}

/* A matrix and its transpose, read with exchanged strides, give the same product.  Parts of a
 * gradient have the bits of the whole. */
static void check_layouts(struct device *dev, enum precision precision)
{
  enum { M = 1500, K = 137, N = 270, CUT = 131 };
  struct triad_case c;
  float *turned, *cut;
  triad_case_make(&c, (struct triad_shape){M, K, N}, VALUES_NORMAL);
  ok(!arena_alloc(&c.arena, &turned, N * K, sizeof *turned) &&
         !arena_alloc(&c.arena, &cut, N * K, sizeof *cut),
     "memory");
  for (idx i = 0; i < K; i++)
    for (idx j = 0; j < N; j++) turned[j * K + i] = c.w[i * N + j];
  struct triad_product p = triad_forward_of(&c, NULL, c.wanted);
  claim_begin("%s: a matrix that is transposed in memory, or a gradient in parts, changes no bit",
              precision_name(precision));
  int status = side_product(dev, precision, &p);
  p.y = c.got;
  p.w = (struct triad_weights){turned, 1, K};
  if (!status) status = side_product(dev, precision, &p);
  ok(!status && !memcmp(c.wanted, c.got, (size_t)M * N * sizeof *c.got), "%s", status_message());
  struct triad_gradient g = triad_gradient_of(&c, c.wanted);
  status = side_gradient(dev, precision, &g);
  g = triad_gradient_of(&c, c.got);
  memcpy(cut, c.got, (size_t)N * K * sizeof *cut);
  g.dw = cut;
  g.k = CUT;
  if (!status) status = side_gradient(dev, precision, &g);
  g.x += CUT, g.dw += CUT * N, g.k = K - CUT;
  if (!status) status = side_gradient(dev, precision, &g);
  ok(!status && !memcmp(c.wanted, cut, (size_t)K * N * sizeof *c.got), "%s", status_message());
  claim_end();
  arena_free(&c.arena);
}

/* The trial of the matrix unit gives a fingerprint, and a second trial gives the same
 * fingerprint. */
static void check_unit(struct device *dev, enum precision precision)
{
  uint64_t unit = 0, again = 0;
  claim_begin("%s: the matrix unit passes its trial, twice with one fingerprint",
              precision_name(precision));
  int status = device_tensor_probe(dev, precision, &unit);
  if (!status) status = device_tensor_probe(dev, precision, &again);
  printf("# %s: unit %016llx\n", dev->variant, (unsigned long long)unit);
  ok(!status && unit && unit == again, "%s", status_message());
  claim_end();
  status_clear();
}

static void check_form(const struct how *how)
{
  struct device dev = {0};
  struct device_options options = how_options(how, 1, 1, 0);
  ok(device_open(&dev, &options) == OK, "a GPU: %s", status_message());
  printf("# %s\n", how->test ? "mma.sync" : "the kernels that jobs run");
  for (int i = 0; i < LENGTH(precisions); i++) {
    check_unit(&dev, precisions[i]);
    if (!is_small()) check_rounding(&dev, precisions[i]);
    if (!is_small()) check_beside(&dev, precisions[i]);
    check_layouts(&dev, precisions[i]);
    check_shapes(&dev, precisions[i]);
  }
  ok(device_tensor_has(&dev, PRECISION_F32) == ERR_INTERNAL, "a matrix unit refuses f32");
  status_clear();
  device_close(&dev);
}

int main(void)
{
  if (!gpu_present()) return done_testing();
  for (int i = 0; i < LENGTH(hows); i++) check_form(&hows[i]);
  return done_testing();
}
