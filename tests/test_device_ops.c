/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: routing on the CPU gives the bits of its reference, for every variant, thread count, tile
 * width and order of tiles.  A missing operation is reported, and the peak rate is measured. */
#include "device/backend.h"
#include "device_route.h"

static const struct how variants[] = {{.kind = "cpu", .variant = "baseline", .threads = 2},
                                      {.kind = "cpu", .variant = "avx2", .threads = 2},
                                      {.kind = "cpu", .variant = "avx512vl", .threads = 2},
                                      {.kind = "cpu", .variant = "avx512", .threads = 2}};

/* those[] <- the variants that this processor has.  Returns their number. */
static int variants_present(struct how *those)
{
  int count = 0;
  for (int v = 0; v < LENGTH(variants); v++)
    if (how_present(&variants[v])) those[count++] = variants[v];
  return count;
}

static void check_peak(void)
{
  for (int v = 0; v < LENGTH(variants); v++) {
    struct device dev = {0};
    struct device_options options = how_options(&variants[v], 1, 1, 0);
    if (!how_present(&variants[v])) {
      skip("this processor lacks %s", variants[v].variant);
      continue;
    }
    ok(!device_open(&dev, &options) && !strcmp(dev.variant, variants[v].variant) &&
           device_peak(&dev, 0.01) > 1e6,
       "peak of %s", variants[v].variant);
    device_close(&dev);
  }
}

static void check_choice(void)
{
  struct device dev = {0};
  struct how automatic = {.kind = "auto", .variant = "auto", .threads = 1};
  struct device_options options = how_options(&automatic, 1, 1, 0);
  ok(!device_open(&dev, &options) && !strcmp(dev.kind, "cpu"), "auto is the CPU for little work");
  device_close(&dev);
  options.variant = "sse9";
  ok(device_open(&dev, &options) == ERR_USAGE, "an unknown variant is a usage error");
  status_clear();
}

/* A backend without an operation reports this, with the name of the operation and its own kind. */
static void lack_check(void)
{
  const struct backend none = {.kind = "none"};
  struct device dev = {.backend = &none, .kind = none.kind};
  struct route_job route = {.n = 1, .top_k = 1};
  struct arrow_job arrow = {.count = 1};
  const struct codes_job codes = {.n = 1};
  const float atom = 1;
  ok(device_route(&dev, &route) == ERR_DEVICE && strstr(status_message(), "'route'") &&
         strstr(status_message(), "'none'"),
     "route on a device without it: %s", status_message());
  status_clear();
  ok(device_put_tile(&dev, &atom, 0, 0) == ERR_DEVICE && strstr(status_message(), "'put_tile'"),
     "put_tile: %s", status_message());
  status_clear();
  ok(device_codes(&dev, &codes) == ERR_DEVICE && strstr(status_message(), "'codes'"), "codes: %s",
     status_message());
  status_clear();
  ok(device_arrow(&dev, &arrow) == ERR_DEVICE && strstr(status_message(), "'arrow'"), "arrow: %s",
     status_message());
  status_clear();
}

int main(void)
{
  struct how those[LENGTH(variants)];
  int count = variants_present(those);
  ok(device_check_subnormals(2) == OK, "threads keep subnormal numbers");
  claim_begin("a device without an operation names the operation in an error");
  lack_check();
  claim_end();
  check_choice();
  claim_begin("the peak of each variant is measured");
  check_peak();
  claim_end();
  int some = is_small() ? 1 : count;
  claim_begin("shapes: the reference's bits, for every variant and thread count");
  check_shapes(those + count - some, some);
  claim_end();
  claim_begin("kinds of data: the reference's bits");
  check_kinds(those + count - some, some);
  claim_end();
  return done_testing();
}
