/* SPDX-License-Identifier: BSD-3-Clause
 * A phase is timed by log_seconds(). */
#include "base/phase.h"

#include "base/log.h"

void phase_begin(struct phase *p)
{
  p->begun = log_seconds();
}

void phase_end(struct phase *p, double work)
{
  p->seconds += log_seconds() - p->begun;
  p->work += work;
  p->calls++;
}

void phase_lines_json(const struct phase_line *lines, int count, struct json *j)
{
  json_array(j, "phases");
  for (const struct phase_line *p = lines; p < lines + count; p++) {
    json_object(j, NULL);
    json_text(j, "name", p->name);
    json_long(j, "calls", p->calls);
    json_real(j, "least", p->least);
    json_real(j, "mean", p->mean);
    json_real(j, "most", p->most);
    json_text(j, "unit", p->unit);
    if (p->unit) json_real(j, "work", 1e-9 * p->work);
    json_text(j, "on", *p->on ? p->on : NULL);
    json_end(j);
  }
  json_end(j);
}
