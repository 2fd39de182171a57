/* SPDX-License-Identifier: BSD-3-Clause
 * Tables list, for each program, the settings that this file understands, and those about training,
 * which change neither codes nor reconstructions.  Any other setting gives a warning, unless it is
 * off. */
#include "io/autoencoder_settings.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "io/inputs.h"

/* Settings that are refused if they are true, because a dictionary, a mean and codes cannot express
 * them. */
static const struct {
  const char *name, *advice;
} refused[] = {
    {"transcode", "it predicts other values than its rows: import an autoencoder"},
    {"transcoder", "it predicts other values than its rows: import an autoencoder"},
    {"is_transcoder", "it predicts other values than its rows: import an autoencoder"},
    {"trainer.transcoder", "it predicts other values than its rows: import an autoencoder"},
    {"skip_connection", "it adds a linear map of the row: import an autoencoder without one"},
    {"finetuning_scaling_factor", "multiply W_dec by it, and set it to false"},
    {"signed", "its codes are the k largest of either sign, and encoders here make none below 0: "
               "train it without this setting"},
};

/* A name that ends in '*' stands for all names with that beginning.  A name inside an object
 * follows the object's name and a dot. */
static const char lens_known[] =
    /* understood, or compared with the tensors */
    " architecture d_in d_sae d_out k activation_fn activation_fn_str activation_fn_kwargs"
    " activation_fn_kwargs.k normalize_activations apply_b_dec_to_input reshape_activations"
    " rescale_acts_by_decoder_norm max_iterations finetuning_scaling_factor transcoder transcode"
    " is_transcoder signed skip_connection"
    /* of matching pursuit, whose codes are not imported */
    " residual_threshold stop_on_duplicate_support"
    /* where activations come from */
    " dtype device metadata* model_name model_class_name model_kwargs* "
    "model_from_pretrained_kwargs*"
    " hook_* dataset_* data_dir data_files split streaming is_dataset_tokenized context_size"
    " seqpos_slice prepend_bos use_cached_activations cached_activations_path"
    " n_batches_in_buffer store_batch_size_prompts act_store_device neuronpedia_id"
    " sae_lens_version sae_lens_training_version tokenizer_name exclude_special_tokens"
    /* how it was trained */
    " b_dec_init_method expansion_factor normalize_sae_decoder noise_scale from_pretrained_path"
    " decoder_orthogonal_init decoder_heuristic_init decoder_heuristic_init_norm"
    " decoder_init_norm init_encoder_as_decoder_transpose training_tokens finetuning_tokens"
    " train_batch_size_tokens train_batch_size finetuning_method seed autocast autocast_lm"
    " compile_llm llm_compilation_mode compile_sae sae_compilation_mode jumprelu_init_threshold"
    " jumprelu_bandwidth jumprelu_sparsity_loss_mode jumprelu_tanh_scale pre_act_loss_coefficient"
    " mse_loss_normalization lp_norm scale_sparsity_penalty_by_decoder_norm l0_coefficient "
    "l0_lambda"
    " l0_warm_up_steps l1_coefficient l1_warm_up_steps lr lr_* n_restart_cycles adam_beta1"
    " adam_beta2 use_ghost_grads feature_sampling_window dead_feature_window"
    " dead_feature_threshold dead_feature_estimation_method n_eval_batches eval_batch_size_prompts"
    " log_to_wandb log_activations_store_to_wandb log_optimizer_state_to_wandb wandb_*"
    " run_name eval_every_n_wandb_logs resume n_checkpoints checkpoint_path save_final_checkpoint"
    " output_path verbose total_training_steps total_training_tokens tokens_per_buffer"
    " aux_loss_coefficient use_sparse_activations topk_threshold_lr ";
static const char sparsify_known[] =
    " activation d_in num_latents k transcode skip_connection signed"
    " expansion_factor normalize_decoder multi_topk ";
static const char learning_known[] =
    " trainer trainer.dict_class trainer.activation_dim trainer.dict_size trainer.k"
    " trainer.transcoder buffer buffer.io"
    " trainer.trainer_class trainer.lr trainer.l1_penalty trainer.warmup_steps"
    " trainer.resample_steps trainer.device trainer.layer trainer.lm_name trainer.wandb_name"
    " trainer.submodule_name trainer.steps trainer.seed trainer.sparsity_warmup_steps"
    " trainer.decay_start trainer.auxk_alpha trainer.threshold_beta trainer.threshold_start_step"
    " trainer.top_k_aux trainer.group_fractions trainer.group_weights trainer.group_sizes"
    " trainer.bandwidth trainer.target_l0 trainer.sparsity_penalty trainer.initial_sparsity_penalty"
    " trainer.p_start trainer.p_end trainer.anneal_start trainer.anneal_end"
    " trainer.sparsity_function trainer.sparsity_queue_length trainer.n_sparsity_updates"
    " buffer.d_submodule buffer.n_ctxs buffer.ctx_len buffer.refresh_batch_size"
    " buffer.out_batch_size buffer.device ";

static const char *known_of(const char *program)
{
  if (!strcmp(program, "saelens")) return lens_known;
  return !strcmp(program, "sparsify") ? sparsify_known : learning_known;
}

/* Is a name in a list of known settings? */
static int is_known(const char *list, const char *name)
{
  size_t length = strlen(name);
  for (const char *at = list; *at; at += strcspn(at, " ")) {
    at += strspn(at, " ");
    size_t word = strcspn(at, " ");
    int is_prefix = word && at[word - 1] == '*';
    if (is_prefix ? !strncmp(at, name, word - 1) : word == length && !strncmp(at, name, word))
      return 1;
  }
  return 0;
}

/* A setting that is off needs no warning; nor does an object, or an item of a list. */
static int is_off(const struct setting *of)
{
  static const char *const words[] = {"false", "null", "none", ""};
  for (int i = 0; i < LENGTH(words); i++)
    if (!strcmp(of->value, words[i])) return 1;
  return of->is_listed || of->kind == SETTING_OBJECT;
}

static void unknown_warn(const struct settings *s, const char *program)
{
  enum { SHOWN = 6 };
  char list[512] = "";
  size_t used = 0;
  int count = 0;
  for (int i = 0; i < s->count; i++) {
    const struct setting *of = &s->list[i];
    if (is_off(of) || is_known(known_of(program), of->name)) continue;
    if (count++ < SHOWN && used < sizeof list)
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%.60s %.40s",
                               count > 1 ? ", " : "", of->name, of->value);
  }
  if (count)
    log_warn("'%s' says %s%s, which %s not known here: if codes or reconstructions depend on %s, "
             "those of the import differ",
             s->file.path, list, count > SHOWN ? ", ..." : "", count > 1 ? "are" : "is",
             count > 1 ? "one" : "it");
}

/* hook_z concatenates the activations of heads, which is the form of rows; other values except none
 * are refused. */
static int reshape_check(const struct settings *s)
{
  const char *reshaped = settings_find(s, "reshape_activations");
  CHECK(!reshaped || !strcmp(reshaped, "none") || !strcmp(reshaped, "hook_z"), ERR_INPUT,
        "'%s' says reshape_activations %s, which is not known: give rows of that shape, and write "
        "\"none\" there",
        s->file.path, reshaped);
  return OK;
}

/* Refuse an autoencoder that does not reconstruct its rows, but predicts activations from another
 * place in the model. */
static int targets_check(const struct settings *s)
{
  static const char *const pairs[][2] = {{"hook_name", "hook_name_out"},
                                         {"metadata.hook_name", "metadata.hook_name_out"},
                                         {"d_in", "d_out"}};
  for (int i = 0; i < LENGTH(pairs); i++) {
    const char *in = settings_find(s, pairs[i][0]), *out = settings_find(s, pairs[i][1]);
    CHECK(!in || !out || !strcmp(in, out), ERR_INPUT,
          "'%s' says %s %s and %s %s: it predicts other values than its rows, import an "
          "autoencoder",
          s->file.path, pairs[i][0], in, pairs[i][1], out);
  }
  const char *io = settings_find(s, "buffer.io");
  CHECK(!io || strcmp(io, "in_and_out") != 0, ERR_INPUT,
        "'%s' says buffer.io in_and_out: it predicts other values than its rows, import an "
        "autoencoder",
        s->file.path);
  return OK;
}

int autoencoder_settings_check(const struct settings *s, const char *program)
{
  for (int i = 0; i < LENGTH(refused); i++) {
    int is_on = 0;
    TRY(settings_flag(s, refused[i].name, &is_on));
    CHECK(!is_on, ERR_INPUT, "'%s' says %s: %s", s->file.path, refused[i].name, refused[i].advice);
  }
  TRY(reshape_check(s));
  TRY(targets_check(s));
  unknown_warn(s, program);
  return OK;
}

/* *name <- the activation function, whose setting has two names; NULL: it is not given. */
static int activation_find(const struct settings *s, const char **name)
{
  const char *one = settings_find(s, "activation_fn"),
             *other = settings_find(s, "activation_fn_str");
  CHECK(!one || !other || !strcmp(one, other), ERR_INPUT,
        "'%s' says activation_fn %s and activation_fn_str %s: keep the right one, remove the other",
        s->file.path, one, other);
  *name = one ? one : other;
  return OK;
}

/* If the settings give no class, the autoencoder is an old one of class "standard".  Check that the
 * settings can belong to such an autoencoder. */
static int classless_check(const struct settings *s)
{
  CHECK(settings_find(s, "d_in") || settings_find(s, "d_sae"), ERR_INPUT,
        "'%s' has none of architecture, d_in and d_sae: are they inside of another object?  Then "
        "write this object alone",
        s->file.path);
  CHECK(!settings_find(s, "k"), ERR_INPUT,
        "'%s' says k, and no architecture that uses k: add the architecture, such as \"topk\"",
        s->file.path);
  return OK;
}

/* *name <- the class in settings of SAELens.  Older versions give an activation function
 * instead. */
static int lens_class(const struct settings *s, const char **name)
{
  const char *own = settings_find(s, "architecture"), *function = NULL;
  TRY(activation_find(s, &function));
  int is_topk = function && !strcmp(function, "topk");
  int may_be = !own || !strcmp(own, "standard") || !strcmp(own, "topk");
  *name = is_topk ? "topk" : own ? own : "standard";
  if (!own && !function) TRY(classless_check(s));
  CHECK(!function || is_topk || !strcmp(function, "relu"), ERR_INPUT,
        "'%s' says activation_fn %s, and only relu and topk are known here: its codes cannot "
        "be made",
        s->file.path, function);
  CHECK(!is_topk || may_be, ERR_INPUT,
        "'%s' says activation_fn topk and architecture %s: correct the wrong one", s->file.path,
        own);
  CHECK(!function || is_topk || strcmp(*name, "topk") != 0, ERR_INPUT,
        "'%s' says activation_fn %s and architecture topk: correct the wrong one", s->file.path,
        function);
  return OK;
}

/* Does a text contain a word, in upper or lower case? */
static int has_word(const char *text, const char *word)
{
  size_t length = strlen(word), same;
  for (; *text; text++) {
    for (same = 0; same < length && tolower((unsigned char)text[same]) == word[same];) same++;
    if (same == length) return 1;
  }
  return 0;
}

int autoencoder_class_find(const struct settings *s, const char *program, const char **name)
{
  *name = "jumprelu"; /* Gemma Scope has no settings, and only this class */
  if (!s->whole) return OK;
  if (!strcmp(program, "saelens")) {
    TRY(lens_class(s, name));
  } else if (!strcmp(program, "sparsify")) {
    *name = settings_find(s, "activation");
    if (!*name) *name = "topk"; /* older versions had no other */
  } else
    *name = settings_find(s, "trainer.dict_class");
  int predicts = *name && (has_word(*name, "transcoder") || has_word(*name, "crosscoder"));
  CHECK(!predicts, ERR_INPUT,
        "'%s' is of class %s, which predicts other values than its rows: import an autoencoder",
        s->file.path, *name);
  return OK;
}

/* *way <- how activations are normalised.  Older versions of SAELens have true or false here. */
static int normalization_find(const struct settings *s, const char **way)
{
  *way = settings_find(s, "normalize_activations");
  if (!*way || !strcmp(*way, "false")) *way = "none";
  if (!strcmp(*way, "true")) *way = "expected_average_only_in";
  int is_known = !strcmp(*way, "none") || !strcmp(*way, "expected_average_only_in");
  CHECK(is_known, ERR_INPUT,
        "'%s' says normalize_activations %s, which the files do not hold: normalise the rows that "
        "way yourself, write \"none\" there, and encode those rows",
        s->file.path, *way);
  return OK;
}

int autoencoder_factor_find(const struct settings *s, const char *program, const char *folder,
                            char *scaler, struct settings *file, double *factor)
{
  const char *way;
  *factor = 1;
  *scaler = '\0';
  if (!s->whole) return OK;
  TRY(normalization_find(s, &way));
  int length = strcmp(program, "saelens") != 0
                   ? 0
                   : snprintf(scaler, 4096, "%s/activation_scaler.json", folder);
  if (length >= 4096 || !input_is_there(scaler)) *scaler = '\0';
  double said = 0;
  if (*scaler) TRY(settings_open(file, scaler));
  if (*scaler) TRY(settings_factor(file, "scaling_factor", &said));
  int is_plain = !strcmp(way, "none");
  CHECK(!is_plain || said == 0 || said == 1, ERR_INPUT,
        "'%s' says scaling_factor %g and '%s' says normalize_activations none: if the weights have "
        "it folded in remove the first, else write expected_average_only_in in the second",
        scaler, said, s->file.path);
  CHECK(is_plain || said > 0, ERR_INPUT,
        "'%s' says normalize_activations %s, and there is no activation_scaler.json beside it with "
        "the factor: write {\"scaling_factor\": FACTOR} there, or \"none\" if the weights have it "
        "folded in",
        s->file.path, way);
  if (!is_plain) *factor = said;
  return OK;
}
