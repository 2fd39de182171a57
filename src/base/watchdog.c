/* SPDX-License-Identifier: BSD-3-Clause
 * Steps are slots of a table, which the thread checks about ten times per second, or more often.
 * The last message is printed by another thread, because the terminal or the disk may hang, too. */
#include "base/watchdog.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/thread.h"

enum { MAX_STEPS = 64, STACK_BYTES = 1 << 18, LOOKS_A_DEADLINE = 5, MAX_TURN = 2 };
/* In seconds.  MAX_PERIOD: the longest time between two checks.  GRACE: the time to print the last
 * message.  TURN: rank r prints later by min(r, MAX_TURN) times TURN, because one message is enough
 * if all ranks wait for the same thing. */
#define MAX_PERIOD 0.1
#define GRACE 1.0
#define TURN 0.3
/* Seconds after the deadline at which a stopped rank is woken (its peers have then had time to
 * print), and at which it is killed. */
#define WAKE_AFTER 1.2
#define KILL_AFTER 1.9

/* A free slot has the code OK. */
struct step {
  int code;
  const char *what, *subject;
  double begun;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static struct step steps[MAX_STEPS];
static double deadline = 300, now; /* now: the watchdog's clock */
static const char *who = "sagitta";
static int who_rank = -1;
static void (*unfinished_discard)(void);
static int leave_code; /* not OK: since leave_begun the process is ending itself */
static double leave_begun;
static char message[2048];
/* Timers, used while ranks end.  WAKE wakes this process if it is stopped; KILL kills it if it is
 * stopped again. */
enum { WAKE, KILL, ALARMS };
static timer_t alarms[ALARMS];
static int are_armed;
static char stopped[256]; /* the message of a process that was stopped, and its length */
static size_t stopped_length;
static _Atomic int is_said;
static _Thread_local int is_unwatched;

static double period(void)
{
  return deadline / LOOKS_A_DEADLINE < MAX_PERIOD ? deadline / LOOKS_A_DEADLINE : MAX_PERIOD;
}

static void nap(double seconds)
{
  struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&time, NULL);
}

/* The message is printed first, and by write(), since a hanging thread may hold the locks of stdio.
 * The log is written last, since writing it may hang. */
static void *last_words(void *argument)
{
  char line[sizeof message + 256], rank[32] = "";
  (void)argument;
  is_unwatched = 1;
  if (who_rank >= 0) snprintf(rank, sizeof rank, "rank %d: ", who_rank);
  int length = snprintf(line, sizeof line, "%s%s: %s\n", rank, who, message);
  ssize_t written = write(STDERR_FILENO, line, (size_t)length);
  (void)written;
  if (unfinished_discard) unfinished_discard();
  log_failure(message);
  is_said = 1;
  return NULL;
}

/* Start a detached thread that blocks all signals, since signal handlers may hang. */
static int thread_start(void *(*run)(void *))
{
  pthread_t thread;
  pthread_attr_t attributes;
  sigset_t all, before;
  sigfillset(&all);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread, &attributes, run, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}

/* The watchdog keeps the lock, so no step of any thread begins or ends any more, and no other
 * thread can end the process. */
static void process_end(const struct step *s)
{
  int code = s->code;
  snprintf(message, sizeof message, "%s%s%s%s took longer than the deadline of %g seconds", s->what,
           s->subject ? " '" : "", s->subject ? s->subject : "", s->subject ? "'" : "", deadline);
  if (thread_start(last_words)) last_words(NULL);
  for (double waited = 0; !is_said && waited < GRACE; waited += GRACE / 50) nap(GRACE / 50);
  _exit(code);
}

/* The deadline is extended by one period, since the noted begin of a step may be too early by this
 * time. */
static void steps_check(void)
{
  double turn = TURN * (double)imin(imax(who_rank, 0), MAX_TURN);
  if (leave_code && now - leave_begun > GRACE) _exit(leave_code);
  for (int i = 0; i < MAX_STEPS && !leave_code; i++)
    if (steps[i].code && now - steps[i].begun > deadline + period() + turn) process_end(&steps[i]);
}

/* The timers are set again and again, so they fire only if this process is stopped.  They fire some
 * time after the deadline, so that other ranks first print what they wait for. */
static void alarms_set(void)
{
  const double after[ALARMS] = {deadline + WAKE_AFTER, deadline + KILL_AFTER};
  for (int i = 0; i < ALARMS; i++) {
    struct itimerspec time = {
        .it_value = {(time_t)after[i], (long)((after[i] - (double)(time_t)after[i]) * 1e9)}};
    timer_settime(alarms[i], 0, &time, NULL);
  }
}

/* Handler of SIGCONT.  It ends the process if the signal is from the timer, and ignores it if a
 * person continues the process. */
static void woken(int number, siginfo_t *facts, void *context)
{
  (void)number, (void)context;
  if (facts->si_code != SI_TIMER) return;
  ssize_t written = write(STDERR_FILENO, stopped, stopped_length);
  (void)written;
  _exit(ERR_COMM);
}

static void *watchdog_main(void *argument)
{
  (void)argument;
  double looked = log_seconds();
  for (;;) {
    nap(watchdog_period());
    double time = log_seconds(), passed = time - looked;
    looked = time;
    pthread_mutex_lock(&lock);
    /* a longer time means that this process did not run */
    now += passed < 2 * period() ? passed : 2 * period();
    steps_check();
    /* After a long pause a timer may be firing now; setting it again would prevent that. */
    if (are_armed && passed < deadline) alarms_set();
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

int watchdog_start(void)
{
  int error = thread_start(watchdog_main);
  return error ? thread_fail("the thread of the watchdog", error) : OK;
}

void watchdog_deadline_set(double seconds)
{
  pthread_mutex_lock(&lock);
  deadline = seconds;
  pthread_mutex_unlock(&lock);
}

double watchdog_deadline(void)
{
  pthread_mutex_lock(&lock);
  double seconds = deadline;
  pthread_mutex_unlock(&lock);
  return seconds;
}

void watchdog_name(const char *name, int rank)
{
  pthread_mutex_lock(&lock);
  who = name;
  who_rank = rank;
  pthread_mutex_unlock(&lock);
}

void watchdog_discard(void (*discard)(void))
{
  unfinished_discard = discard;
}

double watchdog_period(void)
{
  pthread_mutex_lock(&lock);
  double seconds = period();
  pthread_mutex_unlock(&lock);
  return seconds;
}

/* A step that finds no free slot is not watched. */
int watchdog_begin(int code, const char *what, const char *subject)
{
  int i = 0;
  if (is_unwatched) return MAX_STEPS;
  pthread_mutex_lock(&lock);
  while (i < MAX_STEPS && steps[i].code) i++;
  if (i < MAX_STEPS) steps[i] = (struct step){code, what, subject, now};
  pthread_mutex_unlock(&lock);
  return i;
}

void watchdog_end(int step)
{
  if (step == MAX_STEPS) return;
  pthread_mutex_lock(&lock);
  steps[step].code = OK;
  pthread_mutex_unlock(&lock);
}

/* A stopped process cannot check a clock, but the kernel's timers run on, and SIGCONT and SIGKILL
 * reach it. */
void watchdog_ending(void)
{
  struct sigaction action = {.sa_sigaction = woken, .sa_flags = SA_SIGINFO | SA_RESTART};
  struct sigevent wake = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
  struct sigevent kill = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
  char rank[32] = "";
  sigemptyset(&action.sa_mask);
  pthread_mutex_lock(&lock);
  if (who_rank >= 0) snprintf(rank, sizeof rank, "rank %d: ", who_rank);
  snprintf(stopped, sizeof stopped,
           "%s%s: while the job ended, this rank was stopped for longer than the deadline of %g "
           "seconds; the results of the job are complete\n",
           rank, who, deadline);
  stopped_length = strlen(stopped);
  if (!are_armed && sigaction(SIGCONT, &action, NULL) == 0 &&
      timer_create(CLOCK_MONOTONIC, &wake, &alarms[WAKE]) == 0 &&
      timer_create(CLOCK_MONOTONIC, &kill, &alarms[KILL]) == 0) {
    are_armed = 1;
    alarms_set();
  }
  pthread_mutex_unlock(&lock);
}

void watchdog_leave(int code)
{
  pthread_mutex_lock(&lock);
  leave_code = code;
  leave_begun = now;
  pthread_mutex_unlock(&lock);
}
