/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: lines of numbers come back from a table as they were, except for members that have no
 * column in the table.  In JSON these members are null for lines that come from a table.  A table
 * whose integers are none is refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/lines.h"
#include "base/num.h"
#include "base/status.h"
#include "tap.h"

struct sample {
  gidx step;
  real worth;
  idx atoms;
  real seconds;
};
#define MEMBER(key, type, name, column) LINE_MEMBER(struct sample, key, type, name, column)
static const struct line_member members[] = {
    MEMBER("step", LINE_LONG, step, 1),
    MEMBER("atoms", LINE_INDEX, atoms, 3),
    MEMBER("worth", LINE_REAL, worth, 2),
    MEMBER("seconds", LINE_REAL, seconds, 0),
};
static const struct line_form form = {sizeof(struct sample), 3, 4, members, NULL};
static const struct sample lines[] = {{1, 0.5, 7, 2.5}, {-3, 0.25, 8, 3.5}};

static void test_table(void)
{
  static const real wanted[] = {1, 0.5, 7, -3, 0.25, 8};
  real table[6];
  struct sample back[2];
  lines_pack(&form, lines, 2, table);
  ok(memcmp(table, wanted, sizeof table) == 0, "members are in the columns that they name");
  ok(lines_unpack(&form, table, 2, back), "a table is unpacked");
  ok(back[1].step == -3 && back[1].worth == 0.25 && back[1].atoms == 8 && back[0].atoms == 7,
     "members are read back from their columns");
  ok(back[0].seconds == 0 && back[1].seconds == 0, "a member without a column becomes 0");
  static const real none[] = {NAN, INFINITY, -INFINITY, 0.5, 0x1p63, -0x1p64};
  for (int i = 0; i < 2 * LENGTH(none); i++) {
    real *at = &table[i % 2 ? 3 : 5];
    *at = none[i / 2];
    ok(!lines_unpack(&form, table, 2, back), "%g is refused as a gidx or an idx", *at);
    *at = 4;
  }
  table[3] = 0x1p31, table[4] = NAN;
  ok(lines_unpack(&form, table, 2, back) && isnan(back[1].worth) && back[1].step == 1ll << 31,
     "a gidx may be 2^31, and a real NaN");
  table[5] = 0x1p31;
  ok(!lines_unpack(&form, table, 2, back), "an idx may not be 2^31");
}

static void json_is(const struct line_form *of, gidx old, const char *wanted)
{
  char text[512] = "", *to = text;
  FILE *memory = fmemopen(text, sizeof text, "w");
  struct json j = {.out = memory};
  json_array(&j, NULL);
  lines_json(of, lines, 2, old, &j);
  json_end(&j);
  fclose(memory);
  for (const char *c = text; *c; c++)
    if (*c != ' ' && *c != '\n') *to++ = *c;
  *to = '\0';
  ok(strcmp(text, wanted) == 0, "JSON of lines, %d of them old: %s", (int)old, text);
}

static void test_copy(void)
{
  struct arena arena = {0};
  struct sample *own = NULL, *first;
  gidx max = 0;
  int status = lines_copy(&arena, &own, &max, lines, 1, sizeof *own);
  first = own;
  ok(!status && max == 2 && memcmp(own, lines, sizeof *own) == 0, "a copy of one line");
  status = lines_copy(&arena, &own, &max, lines, 2, sizeof *own);
  ok(!status && own == first && memcmp(own, lines, sizeof lines) == 0,
     "a copy of two lines takes the place of the first copy");
  arena_free(&arena);
}

int main(void)
{
  struct line_form without = form;
  without.without = "atoms";
  test_table();
  json_is(&form, 1,
          "[{\"step\":1,\"atoms\":7,\"worth\":0.5,\"seconds\":null},"
          "{\"step\":-3,\"atoms\":8,\"worth\":0.25,\"seconds\":3.5}]");
  struct line_member unknown[LENGTH(members)];
  memcpy(unknown, members, sizeof members);
  unknown[0].column = 0;
  const struct line_form later = {sizeof(struct sample), 3, 4, unknown, "worth"};
  json_is(&later, 1,
          "[{\"step\":null,\"atoms\":7,\"seconds\":null},"
          "{\"step\":-3,\"atoms\":8,\"seconds\":3.5}]");
  json_is(&without, 0,
          "[{\"step\":1,\"worth\":0.5,\"seconds\":2.5},{\"step\":-3,\"worth\":0.25,\"seconds\":3.5}"
          "]");
  test_copy();
  return done_testing();
}
