/* SPDX-License-Identifier: BSD-3-Clause
 * Files are checked before anything is computed.  The ledger is written when the server has
 * ended. */
#include "encoding/serve_job.h"

#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "base/stop.h"
#include "encoding/backlog_check.h"
#include "io/input_agreement.h"
#include "job/summary.h"
#include "job/threads.h"
#include "serve/mixing.h"
#include "serve/serve.h"

static uint64_t stop_asked(void *self)
{
  const struct serve_job *s = self;
  real most = s->settings.max_seconds;
  if (most > 0 && log_seconds() - s->accepted >= most) stop_ask("--max-seconds");
  return stop_signal() != 0;
}

static void stopped(void *self, uint64_t asked)
{
  (void)self, (void)asked;
  log_info("ending  by %s: requests in work are answered, for at most --drain-seconds", stop_why());
}

static int opened(void *self)
{
  struct serve_job *s = self;
  return inputs_confirm(&s->run->comm);
}

static int ready(void *self, const struct serve_facts *facts)
{
  struct serve_job *s = self;
  const struct serve_settings *o = &s->settings;
  s->hash = facts->dictionary;
  s->backlog.task.facts = *facts;
  s->accepted = log_seconds();
  log_info("serve   atoms=%d columns=%d top-s=%d policy=%s target=%lld device=%s/%s "
           "dictionary=%016llx",
           s->encode.atoms->k, s->rows.p, s->encode.top_s, o->policy, (long long)facts->target,
           facts->device, facts->variant, (unsigned long long)facts->dictionary);
  return serve_access_ready(&s->access, facts->address, o->ready);
}

/* Claim the files of the ledger, and check all files of the backlog. */
static int files_open(struct serve_job *s)
{
  const struct serve_settings *o = &s->settings;
  struct backlog *b = &s->backlog;
  if (o->ledger) TRY(serve_ledger_claim(&s->ledger, o->ledger, o->has_rows, o->force));
  if (!o->backlog) return OK;
  b->task = (struct served_task){.run = s->run,
                                 .encode = &s->encode,
                                 .dictionary = &s->dictionary,
                                 .identity = s->identity.text,
                                 .resume = o->resume,
                                 .force = o->force,
                                 .save_seconds = o->save_seconds};
  TRY(backlog_list_read(&b->list, o->backlog));
  return backlog_check(b);
}

static int files_close(struct serve_job *s)
{
  int status = s->backlog.list.count ? backlog_end(&s->backlog, &s->run->stopped) : OK;
  backlog_list_free(&s->backlog.list);
  return status;
}

static int result_print(const struct serve_job *s)
{
  struct json j;
  char hash[20];
  if (!s->run->wants_json) return OK;
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)s->hash);
  TRY(facts_begin(s->run, &j));
  json_text(&j, "dictionary", s->dictionary.source.name);
  json_text(&j, "dictionary_hash", hash);
  json_text(&j, "address", s->access.address);
  serve_json(s->serve, &j);
  return facts_end(&j);
}

static int ledger_close(struct serve_job *s)
{
  if (!s->settings.ledger) return OK;
  const struct serve_record record = serve_record(s->serve);
  return serve_ledger_write(&s->ledger, s->run, s->identity.text, &s->encode,
                            &s->backlog.task.facts, &record);
}

/* On rank 0: write the ledger, print the result, and end the files. */
static int results_close(struct serve_job *s)
{
  TRY(ledger_close(s));
  TRY(result_print(s));
  return files_close(s);
}

/* Check memory for the states of streams, which rank 0 has in addition to its share of the rows. */
static int streams_check(const struct serve_task *t, const struct encode_task *each,
                         const struct comm *c)
{
  struct encode_memory m;
  gidx bytes, present = memory_per_process(c->local_size);
  if (!t->mixer) return OK;
  TRY(encode_memory(each, c->size, c->rank, &m));
  TRY(mixing_memory(t->mixer, t->streams, &bytes));
  log_info("streams %d take %.1f MB", t->streams, 1e-6 * (double)bytes);
  CHECK(m.host + bytes <= present, ERR_MEMORY,
        "%lld bytes are needed (%d streams of the mixer %lld, steps %lld), %lld are present for "
        "each rank: lower --streams",
        (long long)(m.host + bytes), t->streams, (long long)bytes, (long long)m.host,
        (long long)present);
  return OK;
}

/* Check memory.  Each rank has the whole dictionary. */
static int memory_check(const struct serve_job *s, struct comm *c)
{
  struct encode_task each = s->encode;
  each.groups = c->size;
  TRY(encode_memory_check(&each, c));
  return comm_agree(c, c->rank ? OK : streams_check(&s->task, &each, c));
}

/* Set the fields of the task that the caller has not set. */
static void task_complete(struct serve_job *s)
{
  const struct serve_settings *o = &s->settings;
  struct serve_task *t = &s->task;
  t->encode = &s->encode;
  t->address = s->access.address;
  t->keys = s->access.keys.folder ? &s->access.keys : NULL;
  t->opened = opened;
  t->ready = ready;
  t->self = s;
  t->record = (struct serve_record_options){o->ledger != NULL, o->has_rows, o->ledger_bytes};
  t->files = (struct serve_files){o->backlog ? backlog_run : NULL, &s->backlog};
  t->stops = (struct stops){stop_asked, stopped, s};
}

int serve_job_run(struct serve_job *s)
{
  struct run *run = s->run;
  struct comm *c = &run->comm;
  task_complete(s);
  TRY(comm_agree(c, c->rank ? OK : files_open(s)));
  TRY(memory_check(s, c));
  TRY(threads_report(run, s->settings.threads));
  stop_heed();
  stop_listen();
  TRY(serve_run(&s->task, c, &s->serve));
  TRY(comm_agree(c, c->rank ? OK : results_close(s)));
  TRY(comm_broadcast(c, &run->stopped, 1, sizeof run->stopped));
  serve_free(s->serve);
  serve_access_close(&s->access);
  return OK;
}
