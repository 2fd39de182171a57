/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta: the table of commands, and the only place that prints an error and ends the job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/events.h"
#include "base/log.h"
#include "base/options_write.h"
#include "base/stack.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/watchdog.h"
#include "cli/about.h"
#include "job/agreement.h"
#include "cli/command.h"
#include "cli/process.h"
#include "job/summary.h"
#include "cli/threads.h"
#include "comm/launcher.h"
#include "io/input_file.h"

enum { MAX_SILENCE = 20 }; /* seconds that a rank waits for the one that speaks */

static const struct command *const commands[] = {
    &command_fit,      &command_train,   &command_encode,   &command_route,    &command_serve,
    &command_merge,    &command_seed,    &command_harvest,  &command_pack,     &command_attribute,
    &command_import,   &command_export,  &command_detect,   &command_evaluate, &command_synth,
    &command_color,    &command_compare, &command_assemble, &command_refit,    &command_solve,
    &command_terminal, &command_top,     &command_inspect,  &command_verify,   &command_diff,
    &command_bench,
};

static void usage_print(FILE *out)
{
  fprintf(out,
          "Usage: sagitta COMMAND [ARGUMENTS] [--OPTIONS]\n"
          "       mpirun -n 4 sagitta encode DECK\n\n"
          "Describe activation rows as sparse sums of dictionary atoms: exactly, on any number\n"
          "of ranks, with the same bits.\n\nCommands:\n");
  for (int i = 0; i < LENGTH(commands); i++)
    fprintf(out, "  %-9s  %s\n", commands[i]->name, commands[i]->summary);
  fprintf(out,
          "\n`sagitta COMMAND --help` explains a command; `sagitta --describe [COMMAND]` lists\n"
          "options for programs, as JSON.  A first session:\n\n"
          "  mpirun -n 2 sagitta fit --rows acts.h5 --atoms 1024 --top-s 16 --output run/\n"
          "  mpirun -n 2 sagitta encode --rows unseen.h5 --dictionary run/ --output codes/\n"
          "  sagitta inspect codes/supports.h5\n"
          "  sagitta inspect run/ --atom 17 --rows acts.h5\n\n");
  fputs(status_codes_text, out);
}

/* sagitta --list-options [COMMAND]: its keys, or all commands, for shell completion. */
static void list_print(int argc, char **argv)
{
  for (int i = 0; i < LENGTH(commands); i++) {
    if (argc < 3)
      printf("%s\n", commands[i]->name);
    else if (strcmp(commands[i]->name, argv[2]) == 0)
      options_list(commands[i]->options, stdout);
  }
}

static const struct command *command_find(const char *name)
{
  for (int i = 0; i < LENGTH(commands); i++)
    if (strcmp(commands[i]->name, name) == 0) return commands[i];
  return NULL;
}

/* The end of a program that only told something on stdout. */
static int told_end(struct run *run)
{
  int status = stdout_flush(&run->unread);
  if (status) fprintf(stderr, "sagitta: %s\n", status_message());
  return status ? status : process_end(run->unread);
}

/* Give the rank that speaks the time to do so, since it ends this one too. */
static void speaker_wait(void)
{
  double seconds = watchdog_deadline() < MAX_SILENCE ? watchdog_deadline() : MAX_SILENCE;
  struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

static const char *command_nearest(const char *name)
{
  const struct command *best = commands[0];
  for (int i = 1; i < LENGTH(commands); i++)
    if (text_distance(name, commands[i]->name) < text_distance(name, best->name))
      best = commands[i];
  return best->name;
}

/* Is the program ending by itself? */
static int leaving;

/* OpenMP ends the program with 1, "the answer is no", where it cannot start its threads; that is a
 * lack of memory. */
static void library_exit(int status, void *unused)
{
  (void)unused;
  if (status != ERR_ANSWER || leaving) return;
  result_discard();
  char limits[256];
  thread_limits(limits, sizeof limits);
  fprintf(stderr, "sagitta: a library ended the program, for lack of threads or memory; %s\n",
          limits);
  fflush(NULL);
  _exit(ERR_MEMORY);
}

/* A command without MPI that was started several times at once stands in its own way. */
static void serial_tell(const struct run *run, int status)
{
  int size = launcher_size();
  if (status == ERR_CREATE && !run->command->parallel && size > 1)
    fprintf(stderr,
            "sagitta %s: this command is serial, and was started %d times: start it once, "
            "without mpirun\n",
            run->command->name, size);
}

/* End a failed job.  A failure that every rank knows is reported by rank 0, any other by its own
 * rank.  It ends with _exit, because HDF5 may not survive its exit handler after a failed write. */
static int job_fail(struct run *run, int status)
{
  leaving = 1;
  if (status == ERR_ANSWER && !*status_message()) { /* the answer is on stdout, and has to arrive */
    status = stdout_flush(&run->unread);
    if (!status) return ERR_ANSWER;
  }
  if (status == ERR_INPUT) status = input_files_failed(status);
  int is_common = comm_failure_is_common(&run->comm), speaks = !is_common || run->comm.rank == 0;
  if (!speaks) speaker_wait();
  watchdog_leave(status);
  if (speaks) { /* first: what comes later may take longer than a process that leaves is given */
    if (run->comm.size > 1 && !is_common) fprintf(stderr, "rank %d: ", run->comm.rank);
    fprintf(stderr, "sagitta %s: %s\n", run->command->name, status_message());
    if (log_verbose()) fputs(status_trace(), stderr);
    serial_tell(run, status);
    fflush(stderr);
  }
  watchdog_leave(status);
  result_discard();
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

/* Of commands that can go on later. */
static void signals_heed(const struct run *run)
{
  if (run->command && options_has(run->command->options, "resume")) stop_heed();
}

/* Read the options of the command and start what it needs.  arguments[argc + 1] are filled; a
 * failure of one rank fails all. */
static int run_open(struct run *run, void *options, const char **arguments)
{
  int status = stack_check();
  if (!status)
    status = options_parse(run->command->options, run->argc, run->argv, options, arguments);
  run->options = options;
  run->deck = options_deck_of(run->command->options, arguments);
  struct general_options *general = options;
  if (!status) watchdog_deadline_set(general->deadline);
  log_begin(run);
  if (run->command->parallel) {
    pipes_survive();
    TRY(comm_open(&run->comm));
    signals_heed(run); /* libraries that MPI loads may have taken them: hwloc, OpenCL, LLVM */
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

/* MPI comes last: a rank that ends with 75 has mpirun kill those that have not ended yet. */
static int run_close(struct run *run)
{
  TRY(stdout_flush(&run->unread));
  log_close();
  outputs_release();
  return comm_close(&run->comm);
}

int main(int argc, char **argv)
{
  struct run run = {.program = &about_program,
                    .argc = argc - 1,
                    .argv = argv + 1,
                    .comm = {.size = 1, .local_size = 1}};
  const char *name = argc > 1 ? argv[1] : "";
  run.command = command_find(name);
  signals_heed(&run);
  time_t now = time(NULL);
  strftime(run.started, sizeof run.started, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
  log_setup(LOG_NORMAL, 0);
  snprintf(run.title, sizeof run.title, "sagitta %.32s", name);
  watchdog_name(run.title, launcher_rank());
  int status = process_begin(argc, argv);
  if (status) {
    fprintf(stderr, "%s: %s\n", run.title, status_message());
    return status;
  }
  if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
    usage_print(stdout);
    return told_end(&run);
  }
  if (!strcmp(name, "--version")) {
    about_print(stdout);
    return told_end(&run);
  }
  if (!strcmp(name, "--list-options")) {
    list_print(argc, argv);
    return told_end(&run);
  }
  if (!strcmp(name, "--describe") && (argc < 3 || command_find(argv[2]))) {
    describe_print(commands, LENGTH(commands), argc < 3 ? NULL : argv[2], stdout);
    return told_end(&run);
  }
  if (!run.command) {
    if (!strcmp(name, "--describe"))
      text_print(stderr, "sagitta: unknown command '%s', the nearest is '%s'\n", argv[2],
                 command_nearest(argv[2]));
    else if (*name == '-')
      text_print(stderr, "sagitta: '%s' is in the place of the command, which comes first\n", name);
    else if (*name)
      text_print(stderr, "sagitta: unknown command '%s', the nearest is '%s'\n", name,
                 command_nearest(name));
    usage_print(stderr);
    return ERR_USAGE;
  }
  void *options = calloc(1, run.command->options_bytes);
  const char **arguments = calloc((size_t)argc + 1, sizeof *arguments);
  if (!options || !arguments) {
    fprintf(stderr, "sagitta %s: cannot allocate %zu bytes\n", name, run.command->options_bytes);
    return ERR_MEMORY;
  }
  on_exit(library_exit, NULL);
  status = run_open(&run, options, arguments);
  if (!status) status = run.command->run(&run, options, arguments);
  stop_listen_end();
  int ended = !status || status == ERR_ANSWER ? summary_end(&run) : OK;
  if (!status) status = ended;
  if (!status) status = run_close(&run);
  if (status) return job_fail(&run, status);
  free(run.cores);
  free(run.threads);
  identity_text_free(&run.identity);
  free(options);
  free(arguments);
  status = process_end(run.unread);
  return status ? status : run.stopped ? ERR_STOPPED : OK;
}
