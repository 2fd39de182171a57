# Sources by floor, in floor order: this list is also the table of contents.

# base: the C library only
libsagitta_a_SOURCES += \
  %D%/base/types.h \
  %D%/base/status.h %D%/base/status.c \
  %D%/base/log.h %D%/base/log.c \
  %D%/base/memory.h %D%/base/memory.c \
  %D%/base/order.h %D%/base/order.c \
  %D%/base/log_pair.h %D%/base/log_pair.c \
  %D%/base/block_tree.h %D%/base/block_tree.c \
  %D%/base/fingerprint.h %D%/base/fingerprint.c \
  %D%/base/half.h %D%/base/half.c \
  %D%/base/hash.h %D%/base/hash.c \
  %D%/base/worker.h %D%/base/worker.c \
  %D%/base/phase.h %D%/base/phase.c \
  %D%/base/options.h %D%/base/options.c \
  %D%/base/options_deck.h %D%/base/options_deck.c

# model: arrays, and the reference form of every formula
libsagitta_a_SOURCES += \
  %D%/model/rows.h %D%/model/rows.c \
  %D%/model/dictionary.h %D%/model/dictionary.c \
  %D%/model/route.h %D%/model/route.c %D%/model/filter.h %D%/model/filter.c \
  %D%/model/codes.h %D%/model/codes.c \
  %D%/model/dense.h %D%/model/dense.c \
  %D%/model/joint.h %D%/model/joint.c \
  %D%/model/artifact.h %D%/model/artifact.c \
  %D%/model/arrow.h %D%/model/arrow.c \
  %D%/model/systems.h %D%/model/systems.c \
  %D%/model/results.h %D%/model/results.c \
  %D%/model/state.h %D%/model/state.c \
  %D%/model/directions.h %D%/model/directions.c \
  %D%/model/assembly.h %D%/model/assembly.c \
  %D%/model/step.h %D%/model/step.c \
  %D%/model/classes.h %D%/model/classes.c \
  %D%/model/supports.h %D%/model/supports.c \
  %D%/model/sink.h \
  %D%/model/synth_systems.h %D%/model/synth_systems.c \
  %D%/model/synth.h %D%/model/synth.c

# device: what a worker computes with, one set of hot loops per instruction set
libsagitta_a_SOURCES += \
  %D%/device/device.h %D%/device/backend.h %D%/device/device.c \
  %D%/device/refit.h %D%/device/refit_loops.h %D%/device/refit_body.h \
  %D%/device/cpu_refit.c \
  %D%/device/cpu.h %D%/device/cpu.c %D%/device/cpu_route.c %D%/device/cpu_codes.c \
  %D%/device/cpu_arrow.h %D%/device/cpu_arrow_inside.h %D%/device/cpu_arrow.c \
  %D%/device/cpu_arrow_try.c %D%/device/cpu_arrow_failure.c \
  %D%/device/route_body.h %D%/device/route_baseline.c %D%/device/codes_body.h \
  %D%/device/lanes.h \
  %D%/device/cpu_filter.h %D%/device/cpu_filter_inside.h %D%/device/filter_body.h \
  %D%/device/filter_dot4.h \
  %D%/device/cpu_filter.c %D%/device/cpu_filter_atoms.c %D%/device/cpu_filter_rows.c \
  %D%/device/cpu_filter_exact.c \
  %D%/device/arrow_loops.h

# device: dense work in exact order, for the terminal pass
libsagitta_a_SOURCES += \
  %D%/device/dense.h %D%/device/dense.c %D%/device/dense_product.c \
  %D%/device/dense_inside.h %D%/device/dense_body.h \
  %D%/device/joint.h %D%/device/joint_inside.h \
  %D%/device/joint.c %D%/device/joint_row.c %D%/device/joint_add.c
# GPUs: the kernels' forms and what is kept of them on disk; launchers and compiler, or a sentence
# that says how to get them.
libsagitta_a_SOURCES += \
  %D%/device/cuda_kernels.h %D%/device/cuda_kernels.c %D%/device/cuda_cache.c
if CUDA
libsagitta_a_SOURCES += \
  %D%/device/cuda.h %D%/device/cuda.c %D%/device/cuda_memory.c %D%/device/cuda_tiles.c \
  %D%/device/cuda_route.h %D%/device/cuda_route.c \
  %D%/device/cuda_filter.h %D%/device/cuda_filter.c %D%/device/cuda_filter_atoms.c \
  %D%/device/cuda_filter_probe.c %D%/device/cuda_codes.c %D%/device/cuda_load.c \
  %D%/device/cuda_jit.c
nodist_libsagitta_a_SOURCES += %D%/device/kernel_texts.c
else
libsagitta_a_SOURCES += %D%/device/none.c
endif

# The same loops with other compiler flags, chosen at run time.  These call nothing of libsagitta.a.
noinst_LIBRARIES += libavx2.a libavx512.a
VARIANT_LIBS += libavx2.a libavx512.a
libavx2_a_SOURCES = \
  %D%/device/route_avx2.c %D%/device/codes_avx2.c %D%/device/refit_avx2.c %D%/device/arrow_avx2.c
libavx2_a_CFLAGS = $(AM_CFLAGS) -mavx2 -mfma
libavx512_a_SOURCES = \
  %D%/device/route_avx512vl.c %D%/device/route_avx512.c %D%/device/codes_avx512.c \
  %D%/device/refit_avx512.c \
  %D%/device/arrow_avx512.c
libavx512_a_CFLAGS = $(AM_CFLAGS) -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl
libavx2_a_SOURCES += %D%/device/dense_avx2.c %D%/device/filter_avx2.c
libavx512_a_SOURCES += %D%/device/dense_avx512.c

noinst_LIBRARIES += libvnni.a
VARIANT_LIBS += libvnni.a
libvnni_a_SOURCES = %D%/device/filter_avx512.c %D%/device/filter_avx512vl.c
libvnni_a_CFLAGS = $(libavx512_a_CFLAGS) -mavx512vnni

noinst_LIBRARIES += libamx.a
VARIANT_LIBS += libamx.a
libamx_a_SOURCES = %D%/device/filter_amx.c
libamx_a_CFLAGS = $(libavx512_a_CFLAGS) -mamx-tile -mamx-int8

libsagitta_a_SOURCES += %D%/device/lapack.h %D%/device/lapack.c \
  %D%/device/lanczos.h %D%/device/lanczos.c

# comm: what ranks say to each other
libsagitta_a_SOURCES += \
  %D%/comm/comm.h %D%/comm/inside.h %D%/comm/mpi.c %D%/comm/buffers.c
if NCCL
libsagitta_a_SOURCES += %D%/comm/nccl.c
else
libsagitta_a_SOURCES += %D%/comm/nccl_none.c
endif

# io: HDF5 and NumPy files; h5*.c are the only users of hdf5.h
libsagitta_a_SOURCES += \
  %D%/io/h5.h %D%/io/h5_inside.h %D%/io/h5.c \
  %D%/io/h5_text.c %D%/io/h5_dataset.c %D%/io/h5_block.c %D%/io/h5_array.c %D%/io/h5_attribute.c \
  %D%/io/h5_walk.h %D%/io/h5_walk.c %D%/io/h5_values.c \
  %D%/io/npy.h %D%/io/npy.c \
  %D%/io/inputs.h %D%/io/inputs.c \
  %D%/io/schema.h %D%/io/schema.c \
  %D%/io/supports_input.h %D%/io/supports_input.c \
  %D%/io/classes.h %D%/io/classes.c \
  %D%/io/fit_history.h %D%/io/fit_history.c \
  %D%/io/outputs.h %D%/io/outputs.c %D%/io/supports.c %D%/io/matrix.c \
  %D%/io/files.h %D%/io/files_inspect.c %D%/io/files_diff.c \
  %D%/io/systems.h %D%/io/systems.c %D%/io/solutions.c %D%/io/verify_systems.c \
  %D%/io/verify.h %D%/io/files_verify.c \
  %D%/io/verify_arrays.c %D%/io/verify_supports.c %D%/io/verify_metrics.c

# stage: structs in, structs out, collective
libsagitta_a_SOURCES += \
  %D%/stage/access.h %D%/stage/access.c \
  %D%/stage/color.h %D%/stage/color.c \
  %D%/stage/tiles.h %D%/stage/tiles.c \
  %D%/stage/fit.h %D%/stage/fit.c %D%/stage/fit_memory.h %D%/stage/fit_memory.c \
  %D%/stage/batch.h %D%/stage/batch.c %D%/stage/batch_sums.c \
  %D%/stage/directions.h %D%/stage/directions.c \
  %D%/stage/assemble.h %D%/stage/assemble.c \
  %D%/stage/assemble_all.h %D%/stage/assemble_all.c \
  %D%/stage/refit_step.h %D%/stage/refit_step.c \
  %D%/stage/refit.h %D%/stage/refit.c \
  %D%/stage/reroute.h %D%/stage/reroute.c \
  %D%/stage/fit_round.h %D%/stage/fit_round.c %D%/stage/fit_sums.c \
  %D%/stage/mean.h %D%/stage/mean.c \
  %D%/stage/draw.h %D%/stage/draw.c \
  %D%/stage/seed.h %D%/stage/seed.c \
  %D%/stage/synth.h %D%/stage/synth.c \
  %D%/stage/synth_systems.h %D%/stage/synth_systems.c \
  %D%/stage/statistics.h %D%/stage/statistics.c \
  %D%/stage/solve_batch.h %D%/stage/solve_batch.c \
  %D%/stage/solve.h %D%/stage/solve_inside.h %D%/stage/solve.c %D%/stage/solve_memory.c \
  %D%/stage/solve_files.c %D%/stage/solve_exchange.c \
  %D%/stage/encode.h %D%/stage/encode_inside.h %D%/stage/encode.c %D%/stage/encode_memory.c \
  %D%/stage/encode_block.c %D%/stage/encode_steps.h %D%/stage/encode_steps.c \
  %D%/stage/encode_files.c %D%/stage/encode_behind.c

# the terminal pass
libsagitta_a_SOURCES += \
  %D%/model/terminal.h %D%/model/terminal.c %D%/model/quadrature.h %D%/model/quadrature.c \
  %D%/io/terminal.h %D%/io/terminal.c %D%/io/verify_terminal.c \
  %D%/io/inspect.h %D%/io/inspect_terminal.c \
  %D%/stage/terminal.h %D%/stage/terminal_inside.h \
  %D%/stage/terminal.c %D%/stage/terminal_memory.c %D%/stage/terminal_directions.c %D%/stage/terminal_rows.c \
  %D%/stage/terminal_covariance.c %D%/stage/terminal_spectrum.c %D%/stage/terminal_slq.c

# cli: one file a command
bin_PROGRAMS += sagitta
sagitta_SOURCES = \
  %D%/cli/main.c \
  %D%/cli/command.h %D%/cli/common.c \
  %D%/cli/report.h %D%/cli/report.c \
  %D%/cli/cmd_seed.c \
  %D%/cli/cmd_synth.c %D%/cli/synth_systems.h %D%/cli/synth_systems.c \
  %D%/cli/cmd_encode.c \
  %D%/cli/cmd_solve.c \
  %D%/cli/fit_inputs.h %D%/cli/fit_inputs.c \
  %D%/cli/refit_files.h %D%/cli/refit_files.c \
  %D%/cli/cmd_color.c \
  %D%/cli/cmd_terminal.c %D%/cli/bench_dense.h %D%/cli/bench_dense.c \
  %D%/cli/cmd_assemble.c \
  %D%/cli/cmd_refit.c \
  %D%/cli/cmd_files.c \
  %D%/cli/cmd_bench.c %D%/cli/bench_route.h %D%/cli/bench_route.c \
  %D%/cli/bench_arrow.h %D%/cli/bench_arrow.c %D%/cli/bench_arrow_peer.c \
  %D%/cli/bench_arrow_petsc.c \
  %D%/cli/bench_peer.h %D%/cli/bench_peer.c \
  %D%/cli/bench_median.h %D%/cli/bench_median.c
