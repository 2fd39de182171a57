# What NVRTC compiles at run time: the files become texts in the program.
kernel_files = \
  %D%/types.h %D%/forms.h %D%/async_copy.h %D%/warp.h %D%/barriers.h %D%/launches.h %D%/lists.h \
  %D%/preprocess.cu %D%/column_sums.cu %D%/gather.cu %D%/lists_scatter.cu %D%/frame_rows.cu %D%/pack.cu \
  %D%/route.cu %D%/products.h %D%/select.h %D%/positive.h %D%/stages.h %D%/stages_bulk.h %D%/stages_copy.h \
  %D%/merge.cu \
  %D%/cut.h %D%/encoder_scores.cu %D%/encoder_count.cu %D%/encoder_scatter.cu %D%/encoder_order.cu \
  %D%/screen_types.h %D%/screen_bound.h %D%/test_hooks.h %D%/to_f16.h %D%/to_f16_atoms.cu %D%/to_f16_rows.cu \
  %D%/wgmma.h %D%/mma.h %D%/screen.cu %D%/screen.h %D%/screen_wgmma.h %D%/screen_mma.h \
  %D%/threshold.cu %D%/prune.cu %D%/rescore.cu %D%/select_topk.cu \
  %D%/normal_count.cu %D%/normal_scan.cu %D%/normal_starts.cu %D%/normal_scatter.cu \
  %D%/normal_gram.cu %D%/normal_target.cu %D%/normal_decay.cu %D%/normal_clear.cu \
  %D%/normal_energies.cu \
  %D%/normal_descend.cu %D%/tensor.h \
  %D%/gram.cu %D%/codes.cu %D%/codes_row.h %D%/codes_gram.h %D%/codes_factor.h %D%/codes_quality.h \
  %D%/nonnegative.cu %D%/nonnegative_set.h \
  %D%/arrow_types.h %D%/root.h %D%/root_estimate.h %D%/cluster.h %D%/arrow_row.h \
  %D%/arrow_sums.h %D%/arrow_products.h %D%/arrow_border.h \
  %D%/dense_types.h %D%/dense_rows.h %D%/dense_product.cu %D%/dense_factor.cu %D%/dense_solve.cu \
  %D%/dense_corners.cu %D%/dense_unit.cu %D%/dense_entries.cu \
  %D%/triad_types.h %D%/triad_tile.h %D%/triad_pipe.h %D%/triad_teams.h %D%/triad_product.cu %D%/triad_gradient.cu \
  %D%/tensor_types.h %D%/tensor_tile.h %D%/tensor_narrow.h %D%/tensor_beside.h %D%/tensor_narrow.cu %D%/tensor_product.cu \
  %D%/tensor_gradient.cu %D%/triad_sparse.cu %D%/triad_transpose.cu %D%/triad_fold.cu %D%/triad_dots.cu %D%/triad_adam.cu \
  %D%/train_types.h %D%/train_vectors.h %D%/train_select.cu %D%/train_pack.cu %D%/train_mask.cu %D%/train_widen.cu %D%/train_errors.cu \
  %D%/train_scale.cu %D%/train_count.cu %D%/train_scatter.cu %D%/train_used.cu %D%/train_idle.cu \
  %D%/train_tangent.cu %D%/train_normalize.cu %D%/train_offset.cu \
  %D%/batch_types.h %D%/batch_key.h %D%/batch_count.cu %D%/batch_rows.cu %D%/batch_starts.cu %D%/batch_compact.cu \
  %D%/batch_sums.cu %D%/batch_squares.cu %D%/batch_raise.cu %D%/nested_starts.cu %D%/nested_errors.cu %D%/nested_suffix.cu \
  %D%/attention_types.h %D%/functions.h %D%/walk.h %D%/attention_stages.h %D%/attention_tile.cu %D%/attention_few.cu \
  %D%/attribution_types.h %D%/attribution.cu \
  %D%/mixer_types.h %D%/mixer_gather.cu %D%/mixer_conv.cu %D%/mixer_norm.cu %D%/mixer_step.cu \
  %D%/joint_types.h %D%/joint_add.cu %D%/pair.h \
  %D%/bus_copy.h %D%/arrow_fetch.cu %D%/arrow_return.cu %D%/arrow.cu %D%/arrow_lanes.cu %D%/arrow_sum.cu %D%/arrow_border.cu %D%/arrow_step.cu \
  %D%/color_conflicts.cu %D%/residual.cu %D%/step.cu %D%/step_types.h %D%/lane_products.h %D%/step_here.h %D%/step_rows.h %D%/step_trial.h %D%/step_columns.h %D%/step_sums.h %D%/step_system.h \
  %D%/step_moved.h %D%/step_record.cu %D%/step_follow.cu
EXTRA_DIST += $(kernel_files) %D%/README scripts/kernel_texts
CLEANFILES += src/device/kernel_texts.c
src/device/kernel_texts.c: $(kernel_files) scripts/kernel_texts
	$(AM_V_GEN)$(MKDIR_P) src/device && \
	  $(SHELL) $(srcdir)/scripts/kernel_texts $(srcdir)/%D% > $@.tmp && mv $@.tmp $@
