/* SPDX-License-Identifier: BSD-3-Clause
 * The option is one word or one number. */
#include "fit/parts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"

int fit_parts_parse(struct fit_parts *p, const char *text)
{
  static const gidx MOST = (gidx)1 << 53;
  char *end;
  p->rows = -1;
  if (!strcmp(text, "auto")) return OK;
  p->from = "option";
  p->rows = 0;
  if (!strcmp(text, "none")) return OK;
  errno = 0;
  p->rows = strtoll(text, &end, 10);
  int is_number = isdigit((unsigned char)*text) && !*end && !errno && p->rows <= MOST;
  CHECK(is_number, ERR_USAGE,
        "'--minibatch' is '%s': give the number of rows that are in memory at a time, none for all "
        "rows, or auto for all rows if they fit",
        text);
  return OK;
}

int fit_parts_settle(struct fit_parts *p, struct fit_task *task, struct comm *c, gidx earlier)
{
  if (p->rows < 0 && earlier >= 0) {
    p->rows = earlier;
    p->from = "earlier run";
  } else if (p->rows < 0) {
    TRY(fit_parts_choose(task, c, &p->rows, p->why, sizeof p->why));
    p->from = p->rows ? "shape" : "memory";
  }
  snprintf(p->text, sizeof p->text, "%lld", (long long)p->rows);
  task->minibatch = p->rows;
  return OK;
}

void fit_parts_log(const struct fit_parts *p)
{
  if (p->rows == 0 || !strcmp(p->from, "option")) return;
  log_info("parts   --minibatch %lld, by the %s", (long long)p->rows,
           *p->why ? "numbers of atoms" : p->from);
  if (*p->why)
    log_warn_named("minibatch",
                   "all rows do not fit into memory, so the fit takes parts of %lld, by --atoms "
                   "and --top-s: %s; where all rows fit, --minibatch %lld gives the same bytes",
                   (long long)p->rows, p->why, (long long)p->rows);
}
