/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: every kernel compiles for sm_90 in a large form.  Kernels marked hot (kernels.h) also
 * compile in their first form for sm_90, and in their last hot form for sm_80 and sm_100; hot forms
 * spill no registers.  A cache entry is kept, found, and made again if it is damaged.
 * CHECK_FULL=1: for sm_90 every form that is listed here, and all kernels for sm_80 and sm_100.
 * FORMS=all: every form listed, for each architecture.  Needs no GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "base/team.h"
#include "device/cuda/jit.h"
#include "tap.h"

static const int architectures[] = {90, 80, 100}; /* most forms are compiled for the first */

/* The spilled bytes in a compiler log, added over all functions. */
static long spills(const char *log)
{
  long sum = 0;
  for (const char *at = log; (at = strstr(at, "bytes spill")); at++) {
    const char *number = at - 1;
    while (number > log && number[-1] >= '0' && number[-1] <= '9') number--;
    sum += atol(number);
  }
  return sum;
}

/* A form of a kernel, and the outcome of its compilation. */
enum { MAX_FORMS = 1024, MAX_TEXT = 400 };
struct form {
  int architecture, registers;
  long spilled; /* -1: it did not compile */
  struct kernel_recipe recipe;
  char error[MAX_TEXT];
};
static struct form forms[MAX_FORMS];
static int n_forms;

static int form_same(const struct form *a, const struct form *b)
{
  if (a->architecture != b->architecture || strcmp(a->recipe.entry, b->recipe.entry) ||
      a->recipe.n_defines != b->recipe.n_defines)
    return 0;
  for (int i = 0; i < a->recipe.n_defines; i++)
    if (strcmp(a->recipe.defines[i], b->recipe.defines[i])) return 0;
  return 1;
}

/* Add a form, unless it is in the list already. */
static void form_add(enum kernel_name name, int architecture, const struct kernel_shape *shape)
{
  if (n_forms == MAX_FORMS) {
    ok(0, "there are more than %d forms", MAX_FORMS);
    return;
  }
  struct form *form = &forms[n_forms];
  *form = (struct form){.architecture = architecture};
  kernel_recipe(name, shape, &form->recipe);
  for (int i = 0; i < n_forms; i++)
    if (form_same(form, &forms[i])) return;
  n_forms++;
}

static void form_compile(void *self, gidx i)
{
  struct form *form = (struct form *)self + i;
  struct kernel_image image = {0};
  char *log = NULL;
  int status = kernel_compile(&form->recipe, form->architecture, NULL, &image, &log);
  if (status) snprintf(form->error, sizeof form->error, "%s", status_message());
  status_clear();
  const char *registers = log ? strstr(log, "Used ") : NULL;
  form->registers = registers ? atoi(registers + strlen("Used ")) : 0;
  form->spilled = log && image.size > 0 ? spills(log) : -1;
  free(image.bytes);
  free(log);
}

static void form_check(const struct form *form)
{
  char options[MAX_DEFINES * MAX_DEFINE] = "";
  for (int i = 0; i < form->recipe.n_defines; i++)
    strcat(strcat(options, " "), form->recipe.defines[i] + strlen("-D"));
  ok(form->spilled >= 0 && form->registers > 0 && (!form->recipe.hot || form->spilled == 0),
     "%s for sm_%d%s: %d registers, %ld bytes spilled %s", form->recipe.entry, form->architecture,
     options, form->registers, form->spilled, form->error);
}

static int is_arrow(enum kernel_name name)
{
  return name == KERNEL_ARROW || name == KERNEL_ARROW_LANES || name == KERNEL_ARROW_SUM ||
         name == KERNEL_ARROW_BORDER || name == KERNEL_ARROW_STEP;
}

/* Kernels of arrow systems have a form for each d and k; KERNEL_ARROW for each team, too.  uses[]
 * includes their limits. */
static void add_arrow(enum kernel_name name, int architecture)
{
  static const struct {
    idx d, k;
    int team;
  } uses[] = {{1, 0, 32},   {1, 1, 32},   {1, 4, 32},   {2, 4, 128},  {2, 8, 128}, {2, 8, 32},
              {2, 8, 256},  {2, 16, 32},  {2, 16, 128}, {2, 16, 256}, {2, 32, 32}, {2, 32, 128},
              {2, 32, 256}, {2, 40, 256}, {3, 5, 128},  {4, 10, 128}, {8, 0, 128}, {8, 10, 128},
              {8, 40, 32},  {8, 40, 256}, {2, 5, 128},  {2, 6, 128},  {2, 7, 128}, {2, 10, 128}};
  for (int u = 0; u < LENGTH(uses); u++) {
    if (name != KERNEL_ARROW && uses[u].team != WARP && uses[u].k != 40 && u % 3) continue;
    struct kernel_shape shape = {.d = uses[u].d,
                                 .k = uses[u].k,
                                 .team = uses[u].team,
                                 .top_k = 1,
                                 .mma = architecture == 90,
                                 .rounds = arrow_rounds(uses[u].d, uses[u].k, 200)};
    if (name == KERNEL_ARROW_LANES && shape.rounds == 0) continue;
    int held = shape.mma && uses[u].team == ARROW_BLOCK ? arrow_resident(uses[u].d, uses[u].k) : 0;
    int alone = arrow_is_alone(uses[u].k, uses[u].team, shape.mma, 1) && name == KERNEL_ARROW;
    for (shape.alone = 0; shape.alone <= alone; shape.alone++) {
      shape.held = 0;
      if (uses[u].team != ARROW_BLOCK || uses[u].k <= 10) form_add(name, architecture, &shape);
      shape.held = held;
      if (held) form_add(name, architecture, &shape);
    }
  }
}

/* Forms of products differ by the layouts of operands, by the sides of a tile and by the number of
 * stages.  Stages are few if a multiprocessor has little shared memory, which is never so for
 * 9.0. */
static void add_product(int architecture)
{
  for (int u = architecture == 90 ? 12 : 0; u < 24; u++) {
    struct kernel_shape shape = {.mma = architecture == 90,
                                 .deep_a = u & 1,
                                 .deep_b = u >> 1 & 1,
                                 .narrow = u / 4 % 3,
                                 .large = u / 12,
                                 .top_k = 1};
    form_add(KERNEL_DENSE_PRODUCT, architecture, &shape);
  }
}

/* Forms of products and gradients of training differ by the layouts of operands and by whether all
 * tiles are whole; those of products also by the size of tiles and the number of teams.  A gradient
 * whose operands are contiguous along the dimension of its sums has only the form that does not
 * assume whole tiles. */
static void add_triad(enum kernel_name name, int architecture)
{
  int is_product = name == KERNEL_TRIAD_PRODUCT;
  for (int u = 0; u < (is_product ? 12 : 3); u++) {
    struct kernel_shape shape = {.deep_b = is_product ? u & 1 : u == 2,
                                 .whole = is_product ? u >> 1 & 1 : u == 1,
                                 .tiles = is_product ? u >> 2 : 0,
                                 .top_k = 1};
    int teams = is_product && shape.whole && shape.tiles == TRIAD_LARGE;
    for (shape.teams = 0; shape.teams <= teams; shape.teams++) {
      shape.deep_a = is_product || u == 2;
      form_add(name, architecture, &shape);
      shape.deep_a = 0; /* the form for a transposed operand a, and for chunks of a gradient */
      if (is_product) form_add(name, architecture, &shape);
    }
  }
}

/* Kernels for the matrix unit have a form for each precision, for wgmma and for mma.sync.  With
 * wgmma, bf16 and f16 also have forms for stored operands, in the layouts of products and
 * gradients. */
static void add_tensor(enum kernel_name name, int architecture)
{
  for (int precision = TENSOR_BF16; precision <= TENSOR_TF32; precision++) {
    struct kernel_shape shape = {.wgmma = architecture == 90, .precision = precision, .top_k = 1};
    form_add(name, architecture, &shape);
    shape.stored = shape.wgmma && precision != TENSOR_TF32;
    shape.deep_a = name == KERNEL_TENSOR_PRODUCT;
    if (shape.stored) form_add(name, architecture, &shape);
    shape.deep_b = 1;
    if (shape.stored && shape.deep_a) form_add(name, architecture, &shape);
  }
}

/* Forms of attention differ by sizes of heads, type and soft cap, for few rows also by the number
 * of rows.  Other forms keep their sums for attribution, or leave them unfinished, for pieces that
 * follow.  Attribution has forms, too. */
static void add_attention(enum kernel_name name, int architecture)
{
  static const struct {
    idx d, dv;
    int cells, capped, few;
  } uses[] = {
      {16, 16, CELLS_F32, 0, 1},   {64, 64, CELLS_F32, 0, 8},   {64, 64, CELLS_F16, 1, 4},
      {80, 80, CELLS_BF16, 0, 2},  {96, 40, CELLS_F32, 0, 4},   {128, 128, CELLS_F32, 0, 4},
      {128, 128, CELLS_F16, 0, 4}, {128, 128, CELLS_F32, 1, 8}, {17, 5, CELLS_BF16, 1, 2},
      {160, 200, CELLS_F16, 0, 4}, {256, 256, CELLS_F32, 0, 8}, {256, 256, CELLS_F16, 1, 8}};
  for (int u = 0; u < LENGTH(uses); u++) {
    struct kernel_shape shape = {.top_k = 1,
                                 .head_d = uses[u].d,
                                 .head_dv = uses[u].dv,
                                 .cells = uses[u].cells,
                                 .capped = uses[u].capped,
                                 .few = uses[u].few,
                                 .few_stages = 1 << u % 3};
    form_add(name, architecture, &shape);
    shape.sums = SUMS_KEPT;
    if (name != KERNEL_ATTRIBUTION && u % 3 == 0) form_add(name, architecture, &shape);
    shape.cells = CELLS_F32, shape.sums = SUMS_OPEN; /* pieces are f32 */
    if (name != KERNEL_ATTRIBUTION) form_add(name, architecture, &shape);
  }
}

/* Forms of gated delta nets differ by sizes of heads, by decays, by one token or several, and by
 * the number of columns of v. */
static void add_mixer(int architecture)
{
  static const struct {
    idx d, dv;
    int one, by_column;
    gidx columns;
  } uses[] = {{128, 128, 1, 0, 1 << 19}, {128, 128, 0, 0, 1 << 12}, {128, 128, 0, 1, 1 << 15},
              {16, 24, 0, 0, 48},        {17, 5, 1, 1, 10},         {256, 256, 1, 1, 1 << 16},
              {64, 128, 0, 0, 1 << 16},  {256, 256, 0, 1, 1 << 19}, {128, 128, 0, 0, 1 << 19}};
  for (int u = 0; u < LENGTH(uses); u++) {
    struct kernel_shape shape = {
        .top_k = 1, .head_d = uses[u].d, .head_dv = uses[u].dv, .by_column = uses[u].by_column};
    shape.mixer = mixer_form_of(uses[u].d, uses[u].dv, uses[u].one, uses[u].columns, 132);
    form_add(KERNEL_MIXER_STEP, architecture, &shape);
  }
}

/* Forms of the other kernels differ by the capacity of lists, by frames, by what a pass keeps, by
 * the size of supports, by the kind of scores, and by hooks for tests. */
static void add_kernel(enum kernel_name name, int architecture)
{
  static const struct {
    idx d, top_k;
    int sample, positive;
  } uses[] = {{1, 1, 0, 0},   {2, 1, 1, 0},  {1, 33, 1, 0}, {2, 33, 0, 0}, {1, 65, 0, 0},
              {4, 65, 0, 0},  {8, 65, 1, 0}, {8, 65, 0, 0}, {4, 1, 1, 0},  {1, 256, 0, 0},
              {2, 256, 0, 0}, {1, 1, 1, 1},  {1, 33, 0, 1}, {1, 65, 0, 1}, {1, 256, 0, 1}};
  for (int u = 0; u < LENGTH(uses); u++) {
    struct kernel_shape shape = {.bulk = architecture >= 90,
                                 .mma = architecture == 90,
                                 .wgmma = architecture == 90,
                                 .sample = uses[u].sample,
                                 .large = uses[u].sample,
                                 .test_hooks = uses[u].sample,
                                 .positive = uses[u].positive,
                                 .d = uses[u].d,
                                 .top_k = uses[u].top_k,
                                 .one = (name == KERNEL_CODES || name == KERNEL_NONNEGATIVE) &&
                                        uses[u].top_k < 33};
    form_add(name, architecture, &shape);
  }
}

/* How many forms of a kernel are compiled for architecture a. */
static int forms_wanted(int a, int hot)
{
  const char *wanted = getenv("FORMS");
  if (wanted && !strcmp(wanted, "all")) return MAX_FORMS;
  if (is_full()) return a == 0 ? MAX_FORMS : 1;
  return a == 0 ? 1 + hot : hot;
}

/* Add the forms of a kernel for architecture a.  If only w are wanted, add the first w - 1,
 * and then the last hot form.  If the kernel has no hot form, that is the last form. */
static void add_forms(enum kernel_name name, int a)
{
  int architecture = architectures[a];
  int first = n_forms;
  if (is_arrow(name))
    add_arrow(name, architecture);
  else if (name == KERNEL_DENSE_PRODUCT)
    add_product(architecture);
  else if (name == KERNEL_TRIAD_PRODUCT || name == KERNEL_TRIAD_GRADIENT)
    add_triad(name, architecture);
  else if (name == KERNEL_TENSOR_NARROW || name == KERNEL_TENSOR_PRODUCT ||
           name == KERNEL_TENSOR_GRADIENT)
    add_tensor(name, architecture);
  else if (name == KERNEL_ATTENTION_TILE || name == KERNEL_ATTENTION_FEW ||
           name == KERNEL_ATTRIBUTION)
    add_attention(name, architecture);
  else if (name == KERNEL_MIXER_STEP)
    add_mixer(architecture);
  else
    add_kernel(name, architecture);
  int last = n_forms - 1;
  while (last >= first && !forms[last].recipe.hot) last--;
  int hot = last >= first, wanted = forms_wanted(a, hot);
  if (n_forms - first <= wanted) return;
  if (wanted) forms[first + wanted - 1] = forms[hot ? last : n_forms - 1];
  n_forms = first + wanted;
}

/* Compile the forms in parallel, because each takes about a second. */
static void check_forms(void)
{
  for (int a = 0; a < LENGTH(architectures); a++)
    for (int name = 0; name < KERNELS; name++) add_forms((enum kernel_name)name, a);
  team_run((int)sysconf(_SC_NPROCESSORS_ONLN), n_forms, form_compile, forms);
  for (int i = 0; i < n_forms; i++) form_check(&forms[i]);
}

/* Damage a byte of the only entry of a new cache, at the fraction `part` of its length. */
static int entry_damage(const char *folder, double part)
{
  char command[256], path[256] = "";
  snprintf(command, sizeof command, "ls %s/sagitta/*.cubin", folder);
  FILE *list = popen(command, "r");
  int found = list && fscanf(list, "%255s", path) == 1;
  if (list) pclose(list);
  FILE *file = found ? fopen(path, "r+b") : NULL;
  if (!file) return 0;
  fseek(file, 0, SEEK_END);
  long at = (long)(part * (double)ftell(file));
  fseek(file, at, SEEK_SET);
  int byte = fgetc(file);
  fseek(file, at, SEEK_SET);
  fputc(byte ^ 1, file);
  return fclose(file) == 0;
}

static void check_cache(void)
{
  static const double parts[] = {0, 0.0005, 0.01, 0.5, 0.999};
  struct kernel_shape shape = {.bulk = 1, .mma = 1, .d = 1, .top_k = 1};
  struct kernel_recipe recipe;
  struct kernel_image fresh, kept;
  char folder[] = "/tmp/sagitta-cache-XXXXXX", command[64];
  if (!ok(mkdtemp(folder) != NULL, "a folder")) return;
  setenv("XDG_CACHE_HOME", folder, 1);
  kernel_recipe(KERNEL_PACK, &shape, &recipe);
  int good = !kernel_image_get(&recipe, 90, NULL, &fresh);
  ok(good, "a kernel is compiled at first use");
  ok(good && cache_find("another key", &kept) == 0, "another key is not found");
  for (int i = 0; i < LENGTH(parts) && good; i++) {
    ok(entry_damage(folder, parts[i]), "the entry is there; a bit of it is changed");
    good = !kernel_image_get(&recipe, 90, NULL, &kept) && kept.size == fresh.size &&
           !memcmp(kept.bytes, fresh.bytes, fresh.size);
    ok(good, "the kernel is made again, as it was");
    free(kept.bytes);
  }
  free(fresh.bytes);
  snprintf(command, sizeof command, "rm -r %s", folder);
  ok(system(command) == 0, "the cache is removed");
}

/* Some kernels decide which rows are certified.  Tests that weaken the proof compile them
 * differently from jobs. */
static void check_hooks(void)
{
  static const enum kernel_name names[] = {KERNEL_TO_F16_ROWS, KERNEL_THRESHOLD, KERNEL_PRUNE};
  int differ = 0;
  for (int i = 0; i < LENGTH(names); i++) {
    struct kernel_image images[2] = {{0}};
    int status = OK;
    for (int hooks = 0; hooks < 2 && !status; hooks++) {
      struct kernel_shape shape = {.d = 1, .top_k = 1, .test_hooks = hooks};
      struct kernel_recipe recipe;
      kernel_recipe(names[i], &shape, &recipe);
      status = kernel_compile(&recipe, 90, NULL, &images[hooks], NULL);
    }
    differ += !status && (images[0].size != images[1].size ||
                          memcmp(images[0].bytes, images[1].bytes, images[0].size) != 0);
    free(images[0].bytes);
    free(images[1].bytes);
    status_clear();
  }
  ok(differ == LENGTH(names),
     "kernels of jobs are not those of tests that weaken the proof: %d differ", differ);
}

static void check_error(void)
{
  struct kernel_shape shape = {.bulk = 1, .mma = 1, .d = 1, .top_k = 1};
  struct kernel_recipe recipe;
  struct kernel_image image;
  kernel_recipe(KERNEL_PACK, &shape, &recipe);
  strcpy(recipe.defines[recipe.n_defines++], "-DWARP=+");
  int status = kernel_compile(&recipe, 90, NULL, &image, NULL);
  ok(status == ERR_INTERNAL && strstr(status_message(), "pack.cu"),
     "the compiler's errors are reported with file and line");
  status_clear();
  ok(kernel_compile(&recipe, 90, "/nowhere", &image, NULL) == ERR_IO,
     "a missing folder is reported");
  status_clear();
}

/* Kernels may come from a folder, unless its headers differ from those that launchers were built
 * with. */
static void check_folder(void)
{
  struct kernel_shape shape = {.bulk = 1, .d = 1, .top_k = 1};
  struct kernel_recipe recipe;
  struct kernel_image image = {0};
  const char *source = getenv("srcdir");
  char folder[] = "/tmp/sagitta-kernels-XXXXXX", command[4096];
  kernel_recipe(KERNEL_PACK, &shape, &recipe);
  snprintf(command, sizeof command, "cp %s/kernels/*.cu %s/kernels/*.h %s", source ? source : ".",
           source ? source : ".", mkdtemp(folder));
  ok(system(command) == 0, "%s", command);
  ok(kernel_compile(&recipe, 90, folder, &image, NULL) == OK, "a folder: %s", status_message());
  free(image.bytes);
  snprintf(command, sizeof command, "echo '/* changed */' >> %s/arrow_types.h", folder);
  ok(system(command) == 0, "%s", command);
  ok(kernel_compile(&recipe, 90, folder, &image, NULL) == ERR_INPUT &&
         strstr(status_message(), "/arrow_types.h' is not what this program was built with"),
     "a header that differs from the launchers' is refused: %s", status_message());
  status_clear();
  snprintf(command, sizeof command, "rm -r %s", folder);
  ok(system(command) == 0, "%s", command);
}

int main(void)
{
  struct kernel_shape shape = {.bulk = 1, .mma = 1, .d = 1, .top_k = 1};
  struct kernel_recipe recipe;
  struct kernel_image image = {0};
  kernel_recipe(KERNEL_PACK, &shape, &recipe);
  if (kernel_compile(&recipe, 90, NULL, &image, NULL) == ERR_DEVICE &&
      strstr(status_message(), "without NVRTC")) {
    skip("%s", status_message());
    return done_testing();
  }
  free(image.bytes);
  status_clear();
  claim_begin("kernels compile in their forms, hot ones without spilling");
  check_forms();
  claim_end();
  claim_begin("the cache returns a kernel, and compiles it again if a bit of the file changed");
  check_cache();
  check_hooks();
  claim_end();
  check_error();
  claim_begin("kernels come from a folder if its headers are those of the launchers");
  check_folder();
  claim_end();
  return done_testing();
}
