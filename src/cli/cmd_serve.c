/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta serve: a dictionary, and rows that clients send -> their codes. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/encode_report.h"
#include "encoding/serve_job.h"
#include "io/input_agreement.h"
#include "job/threads.h"
#include "model/route.h"
#include "net/net.h"

struct serve_options {
  struct general_options general;
  const char *dictionary, *codes, *listen, *ready, *policy, *cpu_variant, *filter, *backlog;
  const char *device, *kernels;
  const char *ledger, *replay, *keys, *make_keys, *mixer;
  int no_keys, normalize, resume, force, record;
  idx top_s, rounds, threads, streams;
  idx ledger_mib, live_rows, bulk_rows, credit, queue_mib, unread_mib;
  idx step_rows, quantum, budget, target, job_cap, file_period, cosine_limit;
  real save_seconds, rho, target_ms, linger_ms, drain_seconds, max_seconds;
};
#define AT(member) offsetof(struct serve_options, member)

static const struct option_row input_rows[] = {
    DICTIONARY_OPTION(AT(dictionary)),
    NORMALIZE_OPTION(AT(normalize)),
};

static const struct option_row mixer_rows[] = {
    {"mixer", OPTION_TEXT, AT(mixer), NULL, 0, 0, NULL, "CAPTURE",
     "clients may also send tokens of the gated delta net in this capture; the server computes "
     "their rows as `sagitta harvest` does. Of the capture only the net and its convolution are "
     "used, not its tokens",
     .effect = OPTION_RUN, .flags = OPTION_INPUT},
    {"streams", OPTION_INT, AT(streams), "64", 1, 1 << 16, NULL, "COUNT",
     "number of token sequences whose states are kept, for all clients together",
     .effect = OPTION_RUN},
};

static const struct option_row codes_rows[] = {
    TOP_S_OPTION(AT(top_s)),
    {"rounds", OPTION_INT, AT(rounds), NULL, 1, MAX_TOP_S, NULL, "COUNT",
     "rounds in which the atoms of a row are chosen, as in `sagitta encode` (default: the number "
     "that the dictionary was "
     "fitted with; 1 if it has none)",
     .effect = OPTION_BITS},
    {"codes", OPTION_CHOICE, AT(codes), "auto", 0, 0, "auto|signed|nonnegative", NULL,
     "may codes be negative? auto: as the dictionary says, signed if it says nothing",
     .effect = OPTION_BITS},
    RHO_OPTION(AT(rho)),
};

static const struct option_row client_rows[] = {
    {"listen", OPTION_TEXT, AT(listen), NULL, 0, 0, NULL, "ADDRESS",
     "the path of a socket, to which only this user can connect (default: `live` in "
     "$XDG_RUNTIME_DIR/sagitta, or without that variable in /tmp/sagitta-UID, a folder of mode "
     "0700); or tcp:PORT, which every user of this machine reaches; or tcp:HOST:PORT, where "
     "HOST is an address of this machine or *. Port 0 takes a free one",
     .effect = OPTION_RUN, .flags = OPTION_OUTPUT},
    {"keys", OPTION_TEXT, AT(keys), NULL, 0, 0, NULL, "DIR",
     "with a port: encrypt, and serve only clients that have the secret key to one of the public "
     "keys DIR/clients/NAME.pub; these files may be added and removed while the server runs",
     .effect = OPTION_RUN, .flags = OPTION_INPUT},
    {"no-keys", OPTION_FLAG, AT(no_keys), "no", 0, 1, NULL, NULL,
     "with tcp:PORT: serve every user of this machine, without encryption", .effect = OPTION_RUN},
    {"make-keys", OPTION_TEXT, AT(make_keys), NULL, 0, 0, NULL, "DIR",
     "do not serve: make a new folder with keys of a server and of a client", .effect = OPTION_RUN,
     .flags = OPTION_OUTPUT},
    {"ready", OPTION_TEXT, AT(ready), NULL, 0, 0, NULL, "FILE",
     "write address and process number to FILE, as JSON, once clients are accepted",
     .effect = OPTION_RUN, .flags = OPTION_OUTPUT},
    {"live-rows", OPTION_INT, AT(live_rows), "256", 1, 1 << 20, NULL, "ROWS",
     "largest number of rows of a live request; at most --step-rows, because it is never divided",
     .effect = OPTION_RUN},
    {"bulk-rows", OPTION_INT, AT(bulk_rows), "65536", 1, 1 << 24, NULL, "ROWS",
     "largest number of rows of a bulk request, which is divided into steps", .effect = OPTION_RUN},
    {"credit", OPTION_INT, AT(credit), "64", 1, 4096, NULL, "REQUESTS",
     "number of requests of one client that may wait for a reply; more are refused as busy. The "
     "Python client waits instead of sending more",
     .effect = OPTION_RUN},
    {"queue-mib", OPTION_INT, AT(queue_mib), "256", 1, 1 << 20, NULL, "MIB",
     "memory for the waiting rows of all clients; rows beyond it are refused as busy",
     .effect = OPTION_RUN},
    {"unread-mib", OPTION_INT, AT(unread_mib), "64", 1, 1 << 20, NULL, "MIB",
     "memory for those replies to one client that are not computed or not read yet; all clients "
     "together have four times this memory. Requests beyond it are refused as busy",
     .effect = OPTION_RUN},
};

static const struct option_row file_rows[] = {
    {"backlog", OPTION_TEXT, AT(backlog), NULL, 0, 0, NULL, "LIST",
     "encode files between requests: each line of the file LIST has a file of rows and the "
     "place of its result, like --rows and --output of `sagitta encode`, separated by a space",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"cosine-limit", OPTION_INT, AT(cosine_limit), "65536", 0, 1 << 30, NULL, "ATOMS",
     "with --backlog: compute max_decoder_cosine for dictionaries of at most ATOMS atoms, as "
     "`sagitta encode` does, but only once, before clients are accepted",
     .effect = OPTION_BITS},
    {"file-period", OPTION_INT, AT(file_period), "8", 1, 1 << 20, NULL, "STEPS",
     "in every STEPS-th step the rows of a file come before those of bulk requests",
     .effect = OPTION_RUN},
    {"resume", OPTION_FLAG, AT(resume), "no", 0, 1, NULL, NULL,
     "continue unfinished results of --backlog, and keep complete ones", .effect = OPTION_RUN},
    {"force", OPTION_FLAG, AT(force), "no", 0, 1, NULL, NULL,
     "replace existing results of --backlog and --ledger", .effect = OPTION_RUN},
    {"save-seconds", OPTION_REAL, AT(save_seconds), "300", 0, 1e9, NULL, "SECONDS",
     "save the finished rows of a file every SECONDS; if the server is killed, --resume continues "
     "from the last save; 0: only when the server ends",
     .effect = OPTION_RUN},
};

static const struct option_row step_rows[] = {
    {"policy", OPTION_CHOICE, AT(policy), "dynamic", 0, 0, "off|static|dynamic", NULL,
     "bulk rows in a step while clients send live requests. off: as many as there is room for; "
     "static: --budget; dynamic: as many as keep the step within its target",
     .effect = OPTION_RUN},
    {"step-rows", OPTION_INT, AT(step_rows), "4096", 1, 1 << 20, NULL, "ROWS",
     "largest number of rows of a step", .effect = OPTION_RUN},
    {"quantum", OPTION_INT, AT(quantum), "0", 0, 1 << 20, NULL, "ROWS",
     "with --policy dynamic: smallest number of bulk rows in a step, if there is room; 0: 512, or "
     "--step-rows "
     "if that is less",
     .effect = OPTION_RUN},
    {"budget", OPTION_INT, AT(budget), "0", 0, 1 << 20, NULL, "ROWS",
     "with --policy static: largest number of bulk rows in a step; 0: 512, or --step-rows if that "
     "is less",
     .effect = OPTION_RUN},
    {"target", OPTION_INT, AT(target), "0", 0, 1 << 20, NULL, "ROWS",
     "with --policy dynamic: number of rows in a step; 0: as many as take --target-ms, as the "
     "server measures at the start with random rows",
     .effect = OPTION_RUN},
    {"target-ms", OPTION_REAL, AT(target_ms), "1.5", 0.001, 1e6, NULL, "MS",
     "with --policy dynamic: how long a step should take", .effect = OPTION_RUN},
    {"job-cap", OPTION_INT, AT(job_cap), "0", 0, 1 << 20, NULL, "ROWS",
     "with --policy dynamic: largest number of rows of one bulk request in a step; 0: the target, "
     "or half of it if several bulk requests wait",
     .effect = OPTION_RUN},
    {"linger-ms", OPTION_REAL, AT(linger_ms), "1000", 0, 1e9, NULL, "MS",
     "the policy applies until MS milliseconds after the last live request", .effect = OPTION_RUN},
};

static const struct option_row run_rows[] = {
    {"max-seconds", OPTION_REAL, AT(max_seconds), "0", 0, 1e9, NULL, "SECONDS",
     "end SECONDS after clients are first accepted, in the same way as by a signal; 0: no limit",
     .effect = OPTION_EXTENT},
    {"drain-seconds", OPTION_REAL, AT(drain_seconds), "30", 0, 1e6, NULL, "SECONDS",
     "after the server is asked to end, it answers live requests and bulk requests that have "
     "begun for at most SECONDS",
     .effect = OPTION_RUN},
    {"threads", OPTION_INT, AT(threads), "0", 0, 4096, NULL, "COUNT", THREADS_HELP,
     .effect = OPTION_RUN, .flags = OPTION_PER_RANK},
    DEVICE_OPTION(AT(device)),
    KERNELS_OPTION(AT(kernels)),
    CPU_VARIANT_OPTION(AT(cpu_variant), "instruction set of CPU loops"),
    FILTER_OPTION(AT(filter)),
};

static const struct option_row ledger_rows[] = {
    {"ledger", OPTION_TEXT, AT(ledger), NULL, 0, 0, NULL, "FOLDER",
     "write ledger.h5 to FOLDER when the server ends: for each step the state of the queues and "
     "the rows that the step took, for each request how it ended; `sagitta verify` plans every "
     "step again and compares",
     .effect = OPTION_RUN, .flags = OPTION_OUTPUT},
    {"record", OPTION_FLAG, AT(record), "no", 0, 1, NULL, NULL,
     "with --ledger: also write live.h5 with the rows of all requests, which are data of users",
     .effect = OPTION_RUN},
    {"ledger-mib", OPTION_INT, AT(ledger_mib), "1024", 1, 1 << 20, NULL, "MIB",
     "memory of the ledger and of recorded rows; steps beyond it are not recorded",
     .effect = OPTION_RUN},
    {"replay", OPTION_TEXT, AT(replay), NULL, 0, 0, NULL, "FOLDER",
     "do not serve: compute again what --record wrote to FOLDER, in the same steps, and "
     "compare; exit code 1 if a reply differs",
     .effect = OPTION_RUN, .flags = OPTION_INPUT},
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Tokens", mixer_rows, LENGTH(mixer_rows), 0},
    {"Codes", codes_rows, LENGTH(codes_rows), 0},
    {"Clients", client_rows, LENGTH(client_rows), 0},
    {"Files", file_rows, LENGTH(file_rows), 0},
    {"Steps; no bit of a reply changes", step_rows, LENGTH(step_rows), 0},
    {"Ledger", ledger_rows, LENGTH(ledger_rows), 0},
    {"Speed and end", run_rows, LENGTH(run_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set serve_set = {
    .command = "sagitta serve",
    .arguments = "[DECK]",
    .doc = "Answer clients that send rows: they get the codes that `sagitta encode` finds, with "
           "the same bits."
           "\v"
           "The server computes in steps.  A live request has few rows and is part of the next "
           "step; a bulk request, such as a prompt, is divided into several steps, so that live "
           "requests do not wait for it.  Clients connect to a socket of this user, or to a port "
           "with keys; they use sagitta.live of the Python package, or the protocol of "
           "doc/live.md.  With mpirun each rank has the whole dictionary, on a CPU or a GPU, and "
           "computes a part of every step; rank 0 serves.\n\n"
           "With --backlog it also encodes files, one after another; their results are those of "
           "`sagitta encode`.\n\n"
           "SIGTERM, SIGINT, SIGUSR1 or SIGUSR2 end the server: new requests are refused, waiting "
           "ones are answered, and the finished rows of a file are saved.  If a file is "
           "unfinished, the exit code is 75, and --resume or `sagitta encode --resume` does the "
           "rest.\n\n"
           "  sagitta serve --dictionary fit/ &\n"
           "  python3 -c 'import sagitta.live, numpy\n"
           "  server = sagitta.live.connect()\n"
           "  print(server.encode(numpy.ones((1, server.columns), \"f4\"), top=8).atoms)'",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

static int options_check(const struct serve_options *o)
{
  CHECK(o->dictionary, ERR_USAGE, "'--dictionary' is missing: make one with `sagitta fit`");
  CHECK(o->live_rows <= o->step_rows, ERR_USAGE,
        "'--live-rows' is %d, above '--step-rows', %d: a live request is never divided",
        o->live_rows, o->step_rows);
  CHECK(!o->record || o->ledger, ERR_USAGE, "'--record' needs '--ledger', the folder for rows");
  CHECK(!o->replay || !(o->ledger || o->backlog), ERR_USAGE,
        "'--replay' serves no clients: leave '--%s' out", o->ledger ? "ledger" : "backlog");
  CHECK(!o->mixer || !(o->record || o->replay), ERR_USAGE,
        "'--%s' is of rows that came, but with '--mixer' the server computes rows: leave one of "
        "them out",
        o->replay ? "replay" : "record");
  if (o->replay) return OK;
  TRY(net_check());
  return serve_access_check(o->listen, o->keys, o->no_keys);
}

/* Open --mixer, and check that its rows are as wide as the atoms: one value per head and column. */
static int mixer_read(struct serve_job *s, const struct serve_options *o)
{
  TRY(mixer_input_open(&s->mixer, o->mixer));
  const struct gated_delta *m = &s->mixer.source.net;
  CHECK(m->heads * m->dv == s->dictionary.source.p, ERR_INPUT,
        "'%s' makes rows of %d columns, '%s' has %d", s->mixer.path, m->heads * m->dv,
        s->dictionary.source.name, s->dictionary.source.p);
  return OK;
}

static int inputs_open(struct serve_job *s, const struct serve_options *o)
{
  TRY(options_check(o));
  TRY(dictionary_input_open(&s->dictionary, o->dictionary));
  const struct atom_source *atoms = &s->dictionary.source;
  CHECK(atoms->k > 0, ERR_INPUT, "'%s' has no atoms", atoms->name);
  CHECK(atoms->d == 1 || strcmp(o->codes, "nonnegative") != 0, ERR_USAGE,
        "'--codes' is nonnegative, but the atoms of '%s' are frames of %d vectors, whose codes "
        "have no sign: leave it out",
        atoms->name, atoms->d);
  if (o->mixer) TRY(mixer_read(s, o));
  if (o->replay || s->run->comm.rank) return OK;
  return serve_access_open(&s->access, o->listen, o->keys);
}

/* Fill in the task with the values that `sagitta encode` would take. */
static void encode_fill(struct serve_job *s, const struct serve_options *o)
{
  const struct dictionary_input *d = &s->dictionary;
  const struct atom_source *atoms = &d->source;
  const char *top_by, *rounds_by;
  idx top = encode_number_choose(o->top_s, d->top_s, MAX_TOP_S, 32, &top_by);
  top = (idx)imin(top, atoms->k);
  idx rounds = (idx)imin(encode_number_choose(o->rounds, d->rounds, top, 1, &rounds_by), top);
  log_info("numbers top-s %d: %s; rounds %d: %s", top, top_by, rounds, rounds_by);
  int is_auto = strcmp(o->codes, "auto") == 0;
  s->rows = (struct row_source){.n = o->step_rows, .p = atoms->p, .name = "rows of clients"};
  s->encode = (struct encode_task){.rows = &s->rows,
                                   .atoms = atoms,
                                   .mean = d->mean,
                                   .top_s = top,
                                   .rounds = rounds,
                                   .groups = 1,
                                   .block = o->step_rows,
                                   .threads = threads_default(s->run, o->threads),
                                   .device = o->device,
                                   .is_endless = !o->replay,
                                   .kernels = o->kernels,
                                   .variant = o->cpu_variant,
                                   .filter = o->filter,
                                   .codes = 1,
                                   .normalize = o->normalize,
                                   .nonnegative = is_auto ? d->nonnegative
                                                          : strcmp(o->codes, "nonnegative") == 0,
                                   .max_cosine = o->cosine_limit,
                                   .rho = o->rho};
  encode_cut_choose(&s->encode, 1);
}

static int task_fill(struct serve_job *s, const struct serve_options *o)
{
  static const char *const policies[] = {"off", "static", "dynamic"};
  gidx standard = imin(512, o->step_rows);
  struct admission_knobs k = {.step_rows = o->step_rows,
                              .quantum = o->quantum ? o->quantum : standard,
                              .budget = o->budget ? o->budget : standard,
                              .target = o->target ? o->target : 1,
                              .job_cap = o->job_cap,
                              .file_period = o->file_period};
  for (int i = 0; i < LENGTH(policies); i++)
    if (!strcmp(o->policy, policies[i])) k.policy = (enum admission_policy)i;
  TRY(admission_check(&k));
  k.target = o->target;
  s->task = (struct serve_task){.knobs = k,
                                .target_ms = o->target_ms,
                                .linger_ms = o->linger_ms,
                                .drain_seconds = o->drain_seconds,
                                .live_rows = o->live_rows,
                                .bulk_rows = o->bulk_rows,
                                .mixer = o->mixer ? &s->mixer.source : NULL,
                                .streams = o->streams,
                                .credit = o->credit,
                                .queue_bytes = (gidx)o->queue_mib << 20,
                                .unread_bytes = (gidx)o->unread_mib << 20};
  s->settings = (struct serve_settings){.policy = o->policy,
                                        .ready = o->ready,
                                        .backlog = o->backlog,
                                        .ledger = o->ledger,
                                        .has_rows = o->record,
                                        .ledger_bytes = (gidx)o->ledger_mib << 20,
                                        .resume = o->resume,
                                        .force = o->force,
                                        .save_seconds = o->save_seconds,
                                        .max_seconds = o->max_seconds,
                                        .threads = o->threads};
  return OK;
}

/* With --replay: compute recorded steps again instead of serving. */
static int replay(struct serve_job *s, const struct serve_options *o)
{
  TRY(encode_identity_begin(&s->identity, &s->encode));
  TRY(threads_report(s->run, o->threads));
  TRY(serve_replay(s->run, o->replay, &s->encode, s->identity.text));
  identity_text_free(&s->identity);
  dictionary_input_close(&s->dictionary);
  free(s);
  return OK;
}

static int serve_command(struct run *run, const void *options, const char **arguments)
{
  const struct serve_options *o = options;
  struct comm *c = &run->comm;
  struct serve_job *s;
  int status = OK;
  (void)arguments;
  if (o->make_keys) return comm_agree(c, c->rank ? OK : serve_keys_make(o->make_keys));
  TRY(comm_agree(c, struct_alloc(&s, sizeof *s)));
  s->run = run;
  s->access.lock = -1;
  TRY(inputs_agree(c, inputs_open(s, o)));
  encode_fill(s, o);
  if (o->replay) return replay(s, o);
  TRY(task_fill(s, o));
  if (!c->rank) status = encode_identity_begin(&s->identity, &s->encode);
  TRY(comm_agree(c, status));
  TRY(serve_job_run(s));
  if (o->mixer) mixer_input_close(&s->mixer);
  identity_text_free(&s->identity);
  dictionary_input_close(&s->dictionary);
  free(s);
  return OK;
}

const struct command command_serve = {"serve",    "a dictionary -> codes of rows that clients send",
                                      &serve_set, sizeof(struct serve_options),
                                      1,          serve_command};
