/* SPDX-License-Identifier: BSD-3-Clause
 * Message and trace are in thread-local buffers; the first message since status_clear() is kept. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char status_codes_text[] =
    "Exit codes: 0 done; 1 done, but `diff` or `serve --replay` found a difference,\n"
    "or `solve --strict` or `terminal --strict` found a failure; 2 wrong usage or\n"
    "deck; 65 bad input, or a file that `verify` refuses; 69 no such device;\n"
    "70 internal error; 71 out of memory; 73 cannot create the output; 74 read or\n"
    "write error; 75 stopped when asked to, --resume continues; 76 a rank was\n"
    "lost.\n";

static _Thread_local char message[2048];
static _Thread_local char trace[4096];

static void trace_add(const char *file, int line)
{
  size_t used = strlen(trace);
  snprintf(trace + used, sizeof trace - used, "  at %s:%d\n", file, line);
}

int status_fail(int code, const char *file, int line, const char *format, ...)
{
  if (!message[0]) {
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (!strchr(format, '\n')) text_clean(message);
  }
  trace_add(file, line);
  return code;
}

int status_pass(int code, const char *file, int line)
{
  trace_add(file, line);
  return code;
}

const char *status_message(void)
{
  return message;
}

const char *status_trace(void)
{
  return trace;
}

void status_clear(void)
{
  message[0] = trace[0] = '\0';
}

void status_take(char *text, size_t capacity)
{
  snprintf(text, capacity, "%s", message);
  status_clear();
}

int status_set(int code, const char *text)
{
  status_clear();
  snprintf(message, sizeof message, "%s", text);
  return code;
}
