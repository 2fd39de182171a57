/* SPDX-License-Identifier: BSD-3-Clause
 * The floors comm, io and device report the versions of the libraries that they alone use.  A
 * failure of a command, or of opening it, comes to program_end(), which prints it. */
#include "cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/events.h"
#include "base/log.h"
#include "base/options_config.h"
#include "base/options_write.h"
#include "base/stack.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/watchdog.h"
#include "cli/command.h"
#include "cli/revision.h"
#include "comm/comm.h"
#include "config.h"
#include "device/device.h"
#include "io/h5/h5.h"
#include "job/process.h"
#include "job/threads.h"
#include "comm/launcher.h"
#include "comm/lines.h"
#include "io/input_file.h"
#include "job/run.h"
#include "job/summary.h"

enum { MAX_SILENCE = 20 }; /* seconds that a rank waits while another rank reports */

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* The compiler and the linked libraries; "none" for CUDA or NCCL in a build without them. */
struct about {
  char compiler[96], mpi[96], hdf5[32], cuda[32], nccl[32];
};

static void about_find(struct about *a)
{
  snprintf(a->compiler, sizeof a->compiler, "%s", COMPILER);
  comm_library(a->mpi, sizeof a->mpi);
  h5_library(a->hdf5, sizeof a->hdf5);
  device_cuda_library(a->cuda, sizeof a->cuda);
  comm_gpus_library(a->nccl, sizeof a->nccl);
}

/* --version: the program and its version in the first line, then one line per library. */
static void about_print(const char *name, FILE *out)
{
  struct about a;
  about_find(&a);
  fprintf(out, "%s %s\n", name, PACKAGE_VERSION);
  fprintf(out, "revision  %s\ncompiler  %s\nMPI       %s\n", REVISION, a.compiler, a.mpi);
  fprintf(out, "HDF5      %s\nCUDA      %s\nNCCL      %s\n", a.hdf5, a.cuda, a.nccl);
}

/* The number of the batch job as Slurm, PBS or LSF gives it.  With Slurm the array task and the
 * restart are added: "1234_7" or "1234 restart 1".  NULL outside a batch job.  Valid until the next
 * call. */
static const char *about_job(void)
{
  static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};
  static char text[128];
  const char *job = NULL;
  for (int i = 0; i < LENGTH(names) && !job; i++) job = getenv(names[i]);
  if (!job || !*job) return NULL;
  const char *array = getenv("SLURM_ARRAY_JOB_ID"), *task = getenv("SLURM_ARRAY_TASK_ID");
  const char *restart = getenv("SLURM_RESTART_COUNT");
  int is_array = array && task;
  snprintf(text, sizeof text, "%.40s%s%.20s%s%.20s", is_array ? array : job, is_array ? "_" : "",
           is_array ? task : "", restart ? " restart " : "", restart ? restart : "");
  return text;
}

/* Log the version, the libraries and the batch job. */
static void about_log(void)
{
  struct about a;
  const char *job = about_job();
  about_find(&a);
  log_info("version %s %s: %s, HDF5 %s, CUDA %s, NCCL %s%s%s", PACKAGE_VERSION, REVISION, a.mpi,
           a.hdf5, a.cuda, a.nccl, job ? "; job " : "", job ? job : "");
}

static void libraries_json(struct json *j)
{
  struct about a;
  about_find(&a);
  json_object(j, "libraries");
  json_text(j, "compiler", a.compiler);
  json_text(j, "mpi", a.mpi);
  json_text(j, "hdf5", a.hdf5);
  json_text(j, "cuda", a.cuda);
  json_text(j, "nccl", a.nccl);
  json_end(j);
}

static const struct program about_program = {.version = PACKAGE_VERSION,
                                             .revision = REVISION,
                                             .log = about_log,
                                             .libraries = libraries_json,
                                             .job = about_job};

static void command_describe(const struct command *command, struct json *out)
{
  const struct option_set *set = command->options;
  json_object(out, NULL);
  json_text(out, "name", command->name);
  json_text(out, "summary", command->summary);
  json_text(out, "arguments", set->arguments);
  json_flag(out, "mpi", command->parallel);
  json_flag(out, "config_file", set->has_config || set->takes_files);
  json_flag(out, "resumable", options_has(set, "resume"));
  json_array(out, "options");
  options_describe(set, out);
  json_end(out);
  json_end(out);
}

/* --describe: print commands and their options as one JSON object, for completion, documents and
 * tests.  name: the only command to print; NULL: all.  doc/json.md lists the entries. */
static void describe_print(const struct command *const *commands, int count, const char *name,
                           FILE *out)
{
  struct json j = {.out = out};
  facts_head(&j, &about_program, "--describe");
  json_array(&j, "commands");
  for (int i = 0; i < count; i++)
    if (!name || strcmp(commands[i]->name, name) == 0) command_describe(commands[i], &j);
  json_end(&j);
  json_end(&j);
}

static void usage_print(const struct program_table *t, FILE *out)
{
  fputs(t->usage, out);
  fputs("\nCommands:\n", out);
  for (int i = 0; i < t->count; i++)
    fprintf(out, "  %-9s  %s\n", t->commands[i]->name, t->commands[i]->summary);
  fprintf(out,
          "\n`%s COMMAND --help` explains a command; `%s --describe [COMMAND]` lists\n"
          "options for programs, as JSON.",
          t->name, t->name);
  fputs(t->examples, out);
  fputs(status_codes_text, out);
}

static const struct command *command_find(const struct program_table *t, const char *name)
{
  for (int i = 0; i < t->count; i++)
    if (strcmp(t->commands[i]->name, name) == 0) return t->commands[i];
  return NULL;
}

/* --list-options [COMMAND]: the options of this command, or the names of all commands. */
static void list_print(const struct program_table *t, const char *name)
{
  const struct command *command = name ? command_find(t, name) : NULL;
  if (command) options_list(command->options, stdout);
  for (int i = 0; !name && i < t->count; i++) puts(t->commands[i]->name);
}

/* End a program that has only printed an answer to stdout.  Returns the exit code. */
static int answer_end(struct run *run)
{
  int status = stdout_flush(&run->unread);
  if (status) fprintf(stderr, "%s: %s\n", run->program->name, status_message());
  return status ? status : process_end(run->unread);
}

/* Wait for another rank: it reports the failure, and then ends this rank, too. */
static void speaker_wait(void)
{
  double seconds = watchdog_deadline() < MAX_SILENCE ? watchdog_deadline() : MAX_SILENCE;
  struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

static void unknown_print(const struct program_table *t, const char *name)
{
  const char *best = t->commands[0]->name;
  for (int i = 1; i < t->count; i++)
    if (text_distance(name, t->commands[i]->name) < text_distance(name, best))
      best = t->commands[i]->name;
  text_print(stderr, "%s: unknown command '%s', the nearest is '%s'\n", t->name, name, best);
}

/* 1: job_fail() ends the process, and has chosen the exit code. */
static int leaving;
static const char *name; /* of the program */

/* Called by exit().  OpenMP calls exit(1) if it cannot start its threads, but exit code 1 means
 * that the answer is no.  So this function then ends the process with ERR_MEMORY. */
static void library_exit(int status, void *unused)
{
  (void)unused;
  if (status != ERR_ANSWER || leaving) return;
  result_discard();
  char limits[256];
  thread_limits(limits, sizeof limits);
  fprintf(stderr, "%s: a library ended the program, because threads or memory were missing; %s\n",
          name, limits);
  fflush(NULL);
  _exit(ERR_MEMORY);
}

/* If several processes of a serial command are started at once, they claim the same output, and
 * some fail with ERR_CREATE.  Then say how to start the command. */
static void serial_warn(const struct run *run, int status)
{
  int size = launcher_size();
  if (status == ERR_CREATE && !run->command->parallel && size > 1)
    fprintf(stderr,
            "%s: this command is serial, and was started %d times: start it once, "
            "without mpirun\n",
            run->title, size);
}

/* End a failed job.  If every rank knows the failure, rank 0 reports it, otherwise the rank where
 * it happened.  The process ends by _exit(), because HDF5's exit handler may crash after a failed
 * write.  Returns only ERR_ANSWER, if the command has printed its answer and no message. */
static int job_fail(struct run *run, int status)
{
  leaving = 1;
  if (status == ERR_ANSWER && !*status_message()) { /* the answer is on stdout, and must arrive */
    status = stdout_flush(&run->unread);
    if (!status) return ERR_ANSWER;
  }
  if (status == ERR_INPUT) status = input_files_failed(status);
  int is_common = comm_failure_is_common(&run->comm), speaks = !is_common || run->comm.rank == 0;
  if (!speaks) speaker_wait();
  watchdog_leave(status);
  if (speaks) { /* print before all else, since the process may be killed at any time */
    if (run->comm.size > 1 && !is_common) fprintf(stderr, "rank %d: ", run->comm.rank);
    fprintf(stderr, "%s: %s\n", run->title, status_message());
    if (log_verbose()) fputs(status_trace(), stderr);
    serial_warn(run, status);
    fflush(stderr);
  }
  watchdog_leave(status);
  result_discard();
  outputs_give_up();
  log_failure(status_message());
  fflush(NULL);
  if (run->comm.size == 1) _exit(status);
  comm_abort(&run->comm, status);
  return status;
}

static void log_begin(const struct run *run)
{
  const struct general_options *general = run->options;
  log_setup(general->quiet     ? LOG_QUIET
            : general->verbose ? LOG_VERBOSE
                               : LOG_NORMAL,
            run->comm.rank);
}

/* If the command can be resumed, take signals as requests to stop. */
static void signals_heed(const struct run *run)
{
  if (run->command && options_has(run->command->options, "resume")) stop_heed();
}

/* Rank 0 reads the deck (base/options.h), and every rank applies it.  Collective; returns this
 * rank's status. */
static int config_broadcast(struct run *run, const char *path)
{
  static char text[MAX_DECK];
  struct comm *c = &run->comm;
  size_t bytes = 0;
  TRY(comm_agree(c, c->rank ? OK : config_read(path, text, &bytes)));
  gidx length = (gidx)bytes;
  TRY(comm_broadcast(c, &length, 1, sizeof length));
  TRY(comm_broadcast(c, text, length, 1));
  return options_config(path, text, (size_t)length);
}

/* text[COMM_LINES_MOST] <- the options that must be the same on all ranks. */
static int options_text(const struct run *run, char *text)
{
  FILE *memory = fmemopen(text, COMM_LINES_MOST, "w");
  CHECK(memory, ERR_MEMORY, "cannot allocate a text of options");
  options_lines(run->command->options, run->options, OPTION_PER_RANK, memory);
  int full = fclose(memory) != 0;
  text[COMM_LINES_MOST - 1] = '\0';
  CHECK(!full && strlen(text) < COMM_LINES_MOST - 1, ERR_USAGE,
        "the options have more than %d bytes", COMM_LINES_MOST);
  return OK;
}

/* Apply the deck.  Only rank 0 reads it: it may be standard input, which only rank 0 has.  Check
 * that all ranks run the same program with the same options; those marked OPTION_PER_RANK may
 * differ.  status: the status of this rank so far.  Collective. */
static int options_agree(struct run *run, const char **arguments, int status)
{
  static char text[COMM_LINES_MOST];
  const char *deck = options_config_of(run->command->options, arguments);
  snprintf(text, sizeof text, "program = %s %s %s\ncommand = %s\n%s%s%s", run->program->name,
           run->program->version, run->program->revision, run->command->name, deck ? "deck = " : "",
           deck ? deck : "", deck ? "\n" : "");
  TRY(comm_agree(&run->comm, status));
  TRY(comm_lines_agree(&run->comm, text));
  if (deck) status = config_broadcast(run, deck);
  if (!status) status = options_text(run, text);
  TRY(comm_agree(&run->comm, status));
  return comm_lines_agree(&run->comm, text);
}

/* *options, arguments[run->argc + 1] <- what the command line and the deck say.  Start the log and,
 * if the command uses it, MPI.  A failure on one rank ends the job on all. */
static int run_open(struct run *run, void *options, const char **arguments)
{
  int status = stack_check();
  if (!status)
    status = options_parse(run->command->options, run->argc, run->argv, options, arguments);
  run->deck = options_config_of(run->command->options, arguments);
  struct general_options *general = options;
  if (!status) watchdog_deadline_set(general->deadline);
  log_begin(run);
  if (run->command->parallel) {
    pipes_survive();
    TRY(comm_open(&run->comm));
    signals_heed(run); /* again, because libraries that MPI loads may have replaced the handlers:
                        * hwloc, OpenCL, LLVM */
    watchdog_name(run->title, run->comm.size > 1 ? run->comm.rank : -1);
  }
  status = options_agree(run, arguments, status);
  if (!status) watchdog_deadline_set(general->deadline);
  log_begin(run);
  TRY(status);
  run->wants_json = general->json;
  if (run->comm.rank == 0) TRY(events_open(general->progress_fd));
  general->progress_fd = 0;
  options_log_old();
  return run->command->parallel ? threads_open(&run->comm, &run->cores) : OK;
}

/* End MPI last: comm_close() waits for all ranks, and when a rank exits with 75, mpirun kills the
 * ranks that still run. */
static int run_close(struct run *run)
{
  TRY(stdout_flush(&run->unread));
  log_close();
  outputs_release();
  return comm_close(&run->comm);
}

/* If `word` asks for help, the version or the commands, print the answer to stdout and return 1.
 * Returns 0 for other words, and for --describe of an unknown command. */
static int about_answer(const struct program_table *t, const char *word, const char *command)
{
  if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help"))
    usage_print(t, stdout);
  else if (!strcmp(word, "--version"))
    about_print(t->name, stdout);
  else if (!strcmp(word, "--list-options"))
    list_print(t, command);
  else if (!strcmp(word, "--describe") && (!command || command_find(t, command)))
    describe_print(t->commands, t->count, command, stdout);
  else
    return 0;
  return 1;
}

static int usage_fail(const struct program_table *t, const char *word, const char *command)
{
  if (!strcmp(word, "--describe"))
    unknown_print(t, command);
  else if (*word == '-')
    text_print(stderr, "%s: '%s' is in the place of the command, which comes first\n", t->name,
               word);
  else if (*word)
    unknown_print(t, word);
  usage_print(t, stderr);
  return ERR_USAGE;
}

int program_end(struct run *run, int status)
{
  stop_listen_end();
  int ended = !status || status == ERR_ANSWER ? summary_end(run) : OK;
  if (!status) status = ended;
  if (!status) status = run_close(run);
  if (status) return job_fail(run, status);
  free(run->cores);
  free(run->threads);
  identity_text_free(&run->identity);
  free((void *)run->options);
  free(run->arguments);
  status = process_end(run->unread);
  return status ? status : run->stopped ? ERR_STOPPED : OK;
}

static int command_open(struct run *run)
{
  void *options = calloc(1, run->command->options_bytes);
  run->options = options;
  run->arguments = calloc((size_t)run->argc + 2, sizeof *run->arguments);
  if (!options || !run->arguments) {
    fprintf(stderr, "%s: cannot allocate %zu bytes\n", run->title, run->command->options_bytes);
    return ERR_MEMORY;
  }
  on_exit(library_exit, NULL);
  int status = run_open(run, options, run->arguments);
  return status ? program_end(run, status) : PROGRAM_RUNS;
}

/* Before MPI starts, each rank reports its own failure, since limits differ among machines.  The
 * failure may be a lack of stack, and fprintf() to stderr takes 8 kB of it: so the line is made in
 * static memory. */
static int begin_fail(const char *title, int rank, int status)
{
  static char line[4096];
  char who[24] = "";
  if (rank >= 0) snprintf(who, sizeof who, "rank %d: ", rank);
  snprintf(line, sizeof line, "%s%s: %s\n", who, title, status_message());
  fputs(line, stderr);
  return status;
}

int program_begin(const struct program_table *t, int argc, char **argv, struct run *run)
{
  static struct program program;
  const char *word = argc > 1 ? argv[1] : "", *more = argc > 2 ? argv[2] : NULL;
  program = about_program;
  program.name = name = t->name;
  *run = (struct run){.program = &program,
                      .command = command_find(t, word),
                      .argc = argc - 1,
                      .argv = argv + 1,
                      .comm = {.size = 1, .local_size = 1}};
  signals_heed(run);
  time_t now = time(NULL);
  strftime(run->started, sizeof run->started, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
  log_setup(LOG_NORMAL, 0);
  snprintf(run->title, sizeof run->title, "%s %.32s", t->name, word);
  int rank = launcher_rank(), status;
  watchdog_name(run->title, rank);
  status = process_begin(argc, argv);
  if (!status && run->command) status = stack_raise();
  if (status) return begin_fail(run->title, rank, status);
  if (run->command) return command_open(run);
  return about_answer(t, word, more) ? answer_end(run) : usage_fail(t, word, more);
}
