# One file per behaviour.  To add a test, add its name.
# The longest tests come first, because tests run side by side: these programs, then the scripts
# (the test of Slurm waits for minutes), then all other programs.
LONG_TESTS = %D%/test_kernels %D%/test_train %D%/test_find_run %D%/test_attribution %D%/test_io_hostile \
  %D%/test_imported %D%/test_cuts %D%/test_device_codes %D%/test_attribute_pieces
OTHER_TESTS = \
  %D%/test_shard %D%/test_device_dense %D%/test_rows_load %D%/test_refit_reference \
  %D%/ref_petsc_arrow \
  %D%/test_arrow_reference %D%/test_assignment \
  %D%/test_attention %D%/test_device_attention %D%/test_device_mixer %D%/test_functions %D%/test_gated_delta %D%/test_pool %D%/test_pieces \
  %D%/test_atoms_load \
  %D%/test_base_block_tree \
  %D%/test_base_memory %D%/test_base_team \
  %D%/test_base_order \
  %D%/test_base_progress \
  %D%/test_coder \
  %D%/test_coder_share \
  %D%/test_steps_share \
  %D%/test_comm_counts \
  %D%/test_comm_gpu \
  %D%/test_comm_shared \
  %D%/test_comm_told \
  %D%/test_comm_verbs \
  %D%/test_comm_failure \
  %D%/test_cores \
  %D%/test_nvrtc_missing \
  %D%/test_cuda_attention %D%/test_cuda_mixer \
  %D%/test_cuda_attribution \
  %D%/test_cuda_coder \
  %D%/test_cuda_arrow \
  %D%/test_cuda_codes \
  %D%/test_cuda_dense \
  %D%/test_cuda_encoder \
  %D%/test_cuda_dictionary \
  %D%/test_cuda_preprocess \
  %D%/test_cuda_dense_triad \
  %D%/test_cuda_tensor \
  %D%/test_cuda_stored \
  %D%/test_cuda_train %D%/test_cuda_find_codes %D%/test_cuda_find_run \
  %D%/test_cuda_joint \
  %D%/test_cuda_normal \
  %D%/test_cuda_steps \
  %D%/test_cuda_plan \
  %D%/test_cuda_screen \
  %D%/test_cuda_route \
  %D%/test_device_encoder \
  %D%/test_device_normal %D%/test_device_conjugate \
  %D%/test_device_ops \
  %D%/test_device_refit \
  %D%/test_device_triad %D%/test_find_codes %D%/test_library %D%/test_precision %D%/test_ragged %D%/test_kept \
  %D%/test_dictionary %D%/test_eigen \
  %D%/test_half %D%/test_forward \
  %D%/test_encode_reference \
  %D%/test_screen %D%/test_solve_order \
  %D%/test_screen_loops \
  %D%/test_io_blocks \
  %D%/test_io_faults \
  %D%/test_io_layouts \
  %D%/test_io_outputs \
  %D%/test_systems_load \
  %D%/test_layout %D%/test_options %D%/test_lines %D%/test_entry_rows %D%/test_sha256_abreast %D%/test_plan %D%/test_streams %D%/test_gate \
  %D%/test_proc \
  %D%/test_coloring \
  %D%/test_det_pair \
  %D%/test_refit_layout %D%/test_refit_sums \
  %D%/test_refit_shared %D%/test_fit_rounds \
  %D%/test_roots \
  %D%/test_statistics \
  %D%/test_synth_blocks \
  %D%/test_turns
%C%_test_nvrtc_missing_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dlopen
%C%_test_refit_layout_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=arena_alloc -Wl,--wrap=arena_free
%C%_test_refit_shared_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=device_moves_keep \
  -Wl,--wrap=items_terms
# Tests of the terminal pass.
OTHER_TESTS += \
  %D%/test_artifact \
  %D%/test_device_joint \
  %D%/test_joint_dense \
  %D%/ref_petsc_schur
%C%_ref_petsc_schur_CPPFLAGS = $(AM_CPPFLAGS) $(PETSC_CFLAGS)
%C%_ref_petsc_schur_LDADD = $(LDADD) $(PETSC_LIBS)
EXTRA_DIST += %D%/joint_problem.h %D%/terminal_data.py %D%/kernel_threads.h %D%/kernel_few.cu %D%/kernel_dense.cu
SCRIPT_TESTS = %D%/test_kernel_races.py %D%/test_scale_try.py %D%/test_slurm.sh %D%/test_slurm_page.sh %D%/test_batch_scripts.sh %D%/test_configure.sh \
  %D%/test_stops.py %D%/test_stop_time.py %D%/test_sweep_resume.py %D%/test_partition.py %D%/test_memory.py %D%/test_forecast.py %D%/test_plan_memory.py \
  %D%/test_fit_share.py %D%/test_growing.py %D%/test_ranks_write.py %D%/test_addresses.py %D%/test_damage.py \
  %D%/test_refit_planted.py %D%/test_grid.py %D%/test_harvest_bits.py %D%/test_encode_resume.py \
  %D%/test_systems_resume.py %D%/test_harvest_pipeline.py %D%/test_attribute.py %D%/test_fit.py %D%/test_fit_ahead.py %D%/test_fit_conjugate.py \
  %D%/test_refit_faults.py %D%/test_refit_partition.py \
  %D%/test_faults.py \
  %D%/test_watchdog.py \
  %D%/test_cuda_faults.py %D%/test_cuda_solve.py %D%/test_cuda_terminal.py \
  %D%/test_solve_input.py \
  %D%/test_solve.py \
  %D%/test_solve_values.py \
  %D%/test_soak_growing.py \
  %D%/test_soak_rows.py \
  %D%/test_units.py \
  %D%/test_refit_once.py %D%/test_refit_publish.py \
  %D%/test_train_run.py %D%/test_train_batch.py %D%/test_fit_find.py %D%/test_fit_stable.py %D%/test_find_worlds.py %D%/test_encode_l0.py %D%/test_train_peer.py %D%/test_verify_dense.py %D%/test_fit_resume.py %D%/test_fit_page.py %D%/test_fit_full.py \
  %D%/test_fit_publish.py %D%/test_fit_gpus.py %D%/test_run_page.py \
  %D%/test_fit_use.py \
  %D%/test_identity.py %D%/test_refit_input.py \
  %D%/test_refit_independent.py \
  %D%/test_bad_input.py %D%/test_misleading.py %D%/test_messages.py %D%/test_max_norm.py \
  %D%/test_crafted.py \
  %D%/test_terminal.py \
  %D%/test_describe.py %D%/test_resume_options.py %D%/test_json.py %D%/test_newer.py %D%/test_numerics.py %D%/test_mends.py \
  %D%/test_compare.py %D%/test_top.py %D%/test_inspect_atom.py %D%/test_report.py \
  %D%/test_places.py \
  %D%/test_terminal_faults.py \
  %D%/test_terminal_slq.py \
  %D%/test_terminal_files.py \
  %D%/test_plot.py \
  %D%/test_python.py %D%/test_python_fit.py %D%/test_python_library.py %D%/test_python_features.py %D%/test_python_wheel.py %D%/test_python_sklearn.py %D%/test_python_torch.py %D%/test_python_cuda.py %D%/test_python_types.py %D%/test_python_optimized.py %D%/test_python_jax.py %D%/test_saebench.py %D%/test_python_time.py %D%/test_python_interventions.py %D%/test_python_compare.py %D%/test_notebook.py %D%/test_torch_newest.py %D%/test_python_bench.py %D%/test_python_lens.py \
  %D%/test_anndata.py \
  %D%/test_faithfulness.py %D%/test_write_rows.py \
  %D%/test_cli.sh \
  %D%/test_fingerprints.sh \
  %D%/test_seed.py %D%/test_import.py %D%/test_import_settings.py %D%/test_export.py %D%/test_evaluate.py %D%/test_encoder.py %D%/test_encoder_solved.py %D%/test_encoder_peer.py \
  %D%/test_synth.py %D%/test_world.py %D%/test_features.py %D%/test_seeds.py %D%/test_top_s.py %D%/test_detect.py \
  %D%/test_keep_supports.py \
  %D%/test_agreement.py %D%/test_launchers.py %D%/test_allocations.py %D%/test_interrupts.py \
  %D%/test_changing_inputs.py \
  %D%/test_independent.py %D%/test_foreign.py %D%/test_decoder_cosine.py %D%/test_penalty.py %D%/test_frame_sizes.py \
  %D%/test_io_inputs.py \
  %D%/test_shards.py %D%/test_shards_input.py %D%/test_merge.py %D%/test_join.py \
  %D%/test_stop.py %D%/test_progress.py %D%/test_rates.py \
  %D%/test_live.py %D%/test_live_attacks.py %D%/test_live_backlog.py %D%/test_live_input.py %D%/test_live_stop.py %D%/test_live_access.py %D%/test_live_build.py \
  %D%/test_live_ledger.py %D%/test_live_ranks.py %D%/test_live_mixer.py %D%/test_cuda_live.py \
  %D%/test_grid_faults.py %D%/test_scale_model.py %D%/test_bench_page.py \
  %D%/test_io_files.py %D%/test_harvest.py %D%/test_mixer.py %D%/test_capture_mixer.py %D%/test_pack.py \
  %D%/test_capture_numbers.py \
  %D%/test_harvest_accuracy.py \
  %D%/test_harvest_faults.py \
  %D%/test_io_hashes.py %D%/test_empty_blocks.py \
  %D%/test_install.sh %D%/test_recipes.py
if CUDA
CUDA_TESTS = %D%/test_arrow_forms
endif
OTHER_TESTS += $(CUDA_TESTS)
check_PROGRAMS += $(LONG_TESTS) $(OTHER_TESTS)
TESTS += $(LONG_TESTS) $(SCRIPT_TESTS) $(OTHER_TESTS)
# The lists below are what scripts/check runs.  With CHECK_FULL=1 it also runs the tests of _MORE,
# and those of _LESS, which it otherwise leaves out.
# Tests that are worth running under an emulator: tests of arithmetic, and of the bytes of files.
# The longest come first.
EMULATED_TESTS = %D%/test_fingerprints.sh %D%/test_device_codes %D%/test_arrow_reference \
  %D%/test_refit_reference %D%/test_gated_delta %D%/test_device_dense %D%/test_io_blocks \
  %D%/test_device_encoder %D%/test_device_ops %D%/test_screen %D%/test_io_outputs \
  %D%/test_functions %D%/test_statistics %D%/test_artifact %D%/test_base_block_tree \
  %D%/test_base_memory %D%/test_base_order %D%/test_device_joint %D%/test_device_refit \
  %D%/test_dictionary %D%/test_encode_reference %D%/test_io_layouts %D%/test_joint_dense \
  %D%/test_det_pair %D%/test_shard %D%/test_synth_blocks
# Tests that do not depend on the compiler of the program: NVRTC compiles the kernels, and nothing
# compiles the scripts.
COMPILED_BY_NONE = \
  scripts/check_floors.sh scripts/check_format.sh scripts/check_tree.sh scripts/check_house.sh \
  scripts/check_names.py \
  %D%/test_kernels %D%/test_kernel_races.py %D%/test_plot.py %D%/test_python.py %D%/test_python_fit.py %D%/test_python_library.py %D%/test_python_features.py %D%/test_python_wheel.py %D%/test_python_sklearn.py %D%/test_python_torch.py %D%/test_python_cuda.py %D%/test_python_types.py %D%/test_python_optimized.py %D%/test_python_jax.py %D%/test_saebench.py %D%/test_python_time.py \
  %D%/test_python_interventions.py %D%/test_python_compare.py %D%/test_notebook.py %D%/test_torch_newest.py \
  %D%/test_python_bench.py %D%/test_python_lens.py %D%/test_write_rows.py %D%/test_capture_mixer.py \
  %D%/test_recipes.py %D%/test_report.py %D%/test_scale_model.py %D%/test_scale_try.py %D%/test_bench_page.py %D%/test_slurm.sh %D%/test_slurm_page.sh \
  %D%/test_batch_scripts.sh %D%/test_configure.sh
# Tests for the sanitizers: the C tests; test_json.py, which runs every command once; and tests of
# bad files and bad options.  Together they run through the C code, and through what it does when
# something fails.  Other tests run the same code with other numbers, or are skipped under
# sanitizers.
COMPILED_TESTS = $(LONG_TESTS) \
  %D%/test_import.py %D%/test_bad_input.py %D%/test_json.py %D%/test_io_inputs.py %D%/test_foreign.py \
  %D%/test_harvest_faults.py %D%/test_refit_faults.py %D%/test_refit_input.py \
  %D%/test_mends.py %D%/test_capture_numbers.py %D%/test_solve_input.py \
  %D%/test_shards_input.py %D%/test_crafted.py $(OTHER_TESTS)
COMPILED_MORE = %D%/test_faults.py %D%/test_partition.py %D%/test_grid_faults.py \
  %D%/test_terminal_faults.py %D%/test_encoder.py %D%/test_fit.py %D%/test_fit_resume.py \
  %D%/test_terminal.py %D%/test_train_run.py %D%/test_export.py %D%/test_io_files.py \
  %D%/test_import_settings.py \
  %D%/test_harvest.py %D%/test_mixer.py %D%/test_evaluate.py %D%/test_pack.py
COMPILED_LESS = %D%/test_turns
# Only the programs of these tests are built.  No GPU opens under an address sanitizer, so of the
# tests of GPUs only test_cuda_plan is run, which needs none.
check-compiled:
	@[ "$${CHECK_FULL:-0}" = 0 ] && more= less='$(COMPILED_LESS)' || \
	  { more='$(COMPILED_MORE)' less=; }; \
	all=; for test in $(COMPILED_TESTS) $$more; do \
	  case $$test in */test_cuda_plan) ;; */test_cuda_*) continue ;; esac; \
	  case " $(COMPILED_BY_NONE) $$less " in *" $$test "*) ;; *) all="$$all $$test" ;; esac; \
	done; $(MAKE) $(AM_MAKEFLAGS) check check_PROGRAMS= TESTS="$$all"
.PHONY: check-compiled
# Tests of what another compiler or HDF5 may compute or write differently.  Most tests of how jobs
# stop, resume and refuse are left out, since the C code alone decides this.  It also decides how
# ranks divide work and memory: so with CUTS=few, tests that have recorded bits try few divisions.
# All programs are built, with warnings as errors.
COMPUTED_TESTS = $(LONG_TESTS) \
  %D%/test_partition.py %D%/test_refit_partition.py %D%/test_refit_independent.py \
  %D%/test_terminal.py %D%/test_terminal_files.py %D%/test_fingerprints.sh \
  %D%/test_io_inputs.py %D%/test_io_files.py %D%/test_live_build.py $(OTHER_TESTS)
COMPUTED_MORE = %D%/test_solve.py %D%/test_synth.py
SAME_C = %D%/test_io_hostile %D%/test_io_faults
COMPUTED_LESS = %D%/test_attribute_pieces %D%/test_pieces %D%/test_turns %D%/test_rows_load \
  %D%/test_atoms_load \
  %D%/test_comm_verbs %D%/test_comm_failure %D%/test_comm_counts %D%/test_comm_gpu %D%/test_comm_shared \
  %D%/test_comm_told \
  %D%/test_coloring %D%/test_layout %D%/test_proc %D%/test_refit_layout %D%/test_refit_shared \
  %D%/test_fit_rounds \
  %D%/test_shard %D%/test_pool %D%/test_base_memory %D%/test_base_progress %D%/test_base_team \
  %D%/test_solve_order \
  %D%/test_cores
check-computed:
	@[ "$${CHECK_FULL:-0}" = 0 ] && more= less='$(COMPUTED_LESS)' || \
	  { more='$(COMPUTED_MORE)' less=; }; \
	all=; for test in $(COMPUTED_TESTS) $$more; do \
	  case $$test in */test_cuda_plan) ;; */test_cuda_*) continue ;; esac; \
	  case " $(COMPILED_BY_NONE) $(SAME_C) $$less " in \
	    *" $$test "*) ;; *) all="$$all $$test" ;; esac; \
	done; CUTS=few $(MAKE) $(AM_MAKEFLAGS) check TESTS="$$all"
.PHONY: check-computed
check-emulated:
	$(MAKE) $(AM_MAKEFLAGS) check check_PROGRAMS= TESTS='$(EMULATED_TESTS)'
.PHONY: check-emulated
EXTRA_DIST += %D%/exchange %D%/exchange_files.py %D%/python/typed.py
EXTRA_DIST += %D%/attention_data.h %D%/gated_delta_data.h %D%/device_mixer.h %D%/attend_problem.h %D%/pieces_made.h %D%/variants.h %D%/device_how.h %D%/device_route.h %D%/device_codes.h \
  %D%/device_coder.h %D%/device_encoder.h %D%/device_dense.h %D%/device_joint.h %D%/device_normal.h \
  %D%/device_triad.h %D%/triad_case.h %D%/triad_oracle.h %D%/train_cases.h %D%/device_train.h \
  %D%/find_codes_cases.h %D%/find_run_cases.h \
  %D%/device_steps.h %D%/shard_files.py \
  %D%/arrow_data.h %D%/arrow_files.py %D%/fit_made.h %D%/jobs.py %D%/live_server.py %D%/bert_model.py %D%/capture_files.py %D%/mixer_data.py
EXTRA_DIST += %D%/tap.h %D%/tap.py %D%/slurm_nodes.sh %D%/peer.py %D%/run.sh %D%/expected/fingerprints %D%/expected/refit \
  %D%/expected/terminal $(SCRIPT_TESTS)
%C%_ref_petsc_arrow_CPPFLAGS = $(AM_CPPFLAGS) $(PETSC_CFLAGS)
%C%_ref_petsc_arrow_LDADD = $(LDADD) $(PETSC_LIBS)

# io_tool is for the Python tests of src/io.  soak_screen is run by hand.  Tests preload libraries.
EXTRA_PROGRAMS += %D%/io_tool %D%/soak_screen
check_DATA = %D%/io_tool$(EXEEXT) %D%/fault.so %D%/fault_cuda.so %D%/fault_lapack.so \
  %D%/fault_window.so %D%/rest.so %D%/slow.so %D%/forget.so %D%/whole_pages.so
CLEANFILES += $(check_DATA)
# Tests with thousands of faults.  They run for half an hour, and are not part of `make check`.
EXTRA_DIST += %D%/soak_sizes %D%/soak_live %D%/soak_faults %D%/soak_planted %D%/soak_rows.py %D%/soak_data.py %D%/soak_disks.py %D%/soak_files.py %D%/soak_jobs.py %D%/soak_settings.py \
  %D%/soak_try.py %D%/soak_growing.py
EXTRA_DIST += %D%/rest.c %D%/slow.c %D%/forget.c %D%/whole_pages.c %D%/fault.c %D%/fault_cuda.c %D%/fault_lapack.c %D%/fault_window.c
EXTRA_DIST += %D%/screen_checks.h %D%/io_blocks.h %D%/io_files.h %D%/io_tool.py \
  %D%/seal.py %D%/train_place.py
%D%/rest.so: %D%/rest.c
	@$(MKDIR_P) %D%
	$(AM_V_CCLD)$(CC) -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared -o $@ $<
%D%/slow.so: %D%/slow.c %D%/rest.c
	@$(MKDIR_P) %D%
	$(AM_V_CCLD)$(CC) -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared -o $@ $^
%D%/fault.so: %D%/fault.c %D%/rest.c
	@$(MKDIR_P) %D%
	$(AM_V_CCLD)$(CC) -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared -o $@ $^
%D%/forget.so: %D%/forget.c %D%/rest.c
	@$(MKDIR_P) %D%
	$(AM_V_CCLD)$(CC) -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared -o $@ $^
%D%/whole_pages.so: %D%/whole_pages.c %D%/rest.c
	@$(MKDIR_P) %D%
	$(AM_V_CCLD)$(CC) -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared -o $@ $^
%D%/fault_lapack.so: %D%/fault_lapack.c %D%/rest.c
	@$(MKDIR_P) %D%
	$(AM_V_CCLD)$(CC) -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared -o $@ $^
%D%/fault_window.so: %D%/fault_window.c %D%/rest.c
	@$(MKDIR_P) %D%
	$(AM_V_CCLD)$(CC) -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared -o $@ $^
%D%/fault_cuda.so: %D%/fault_cuda.c %D%/rest.c
	@$(MKDIR_P) %D%
	$(AM_V_CCLD)$(CC) -std=c11 -D_GNU_SOURCE -O1 -fPIC -shared -o $@ $^

# Threads that wait must not spin: there are more of them than cores.  A launcher that ends removes
# the folder that contains its own, although another launcher may be making one there.  So each test
# has such a folder of its own.  Ranks of one host need no search for networks and GPUs, which takes
# a third of the time of their start.  Tests run side by side, so ranks that wait yield the core; if
# a library may be preloaded, they also sleep (rest.c).
AM_TESTS_ENVIRONMENT = MPIEXEC='$(MPIEXEC)' srcdir='$(srcdir)' builddir='$(abs_builddir)' \
  SANITIZED='$(SANITIZE)$(EMULATOR)' EMULATOR='$(EMULATOR)'; \
  PYTHON='$(PYTHON)'; export MPIEXEC srcdir builddir SANITIZED EMULATOR PYTHON; \
  OMP_WAIT_POLICY=passive; export OMP_WAIT_POLICY; \
  OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader; export OMPI_MCA_pml OMPI_MCA_btl; \
  OMPI_MCA_mpi_yield_when_idle=1; export OMPI_MCA_mpi_yield_when_idle; \
  HWLOC_COMPONENTS=-pci,-linux:pci,-linux:io,-opencl,-gl,-cuda,-nvml,-rsmi; \
  export HWLOC_COMPONENTS; \
  if [ -z '$(SANITIZE)$(EMULATOR)' ]; then \
    LD_PRELOAD='$(abs_builddir)/%D%/rest.so'; export LD_PRELOAD; fi; \
  OMPI_MCA_orte_tmpdir_base=`mktemp -d`; export OMPI_MCA_orte_tmpdir_base; \
  trap 'rm -rf "$$OMPI_MCA_orte_tmpdir_base"' 0;
TEST_EXTENSIONS = .sh .py
# All logs depend on sagitta, not only those of programs.  Otherwise make would begin every script
# before the first program.
$(TEST_LOGS): sagitta$(EXEEXT)
# A test that hangs is ended after this time, so that the report names it.
TIMEOUT = timeout -k 10 900
LOG_COMPILER = $(TIMEOUT) $(SHELL) $(srcdir)/%D%/run.sh
SH_LOG_COMPILER = $(TIMEOUT) $(SHELL)
PY_LOG_COMPILER = $(TIMEOUT) $(PYTHON)
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(srcdir)/scripts/autotools/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
PY_LOG_DRIVER = $(LOG_DRIVER)

# Tests to run between two edits: under 90 s on two cores, with `make -j4 check-fast`.
FAST_TESTS = \
  scripts/check_floors.sh scripts/check_format.sh scripts/check_tree.sh scripts/check_house.sh \
  scripts/check_names.py \
  %D%/test_arrow_reference %D%/test_artifact %D%/test_base_block_tree %D%/test_base_memory \
  %D%/test_base_order %D%/test_base_progress %D%/test_base_team \
  %D%/test_device_codes %D%/test_device_joint %D%/test_device_ops \
  %D%/test_device_refit %D%/test_dictionary %D%/test_encode_reference %D%/test_io_blocks \
  %D%/test_io_layouts %D%/test_io_outputs %D%/test_joint_dense %D%/test_det_pair \
  %D%/test_refit_reference %D%/test_screen %D%/test_screen_loops %D%/test_shard \
  %D%/test_statistics %D%/test_synth_blocks \
  %D%/test_cli.sh %D%/test_seed.py
check-fast:
	@$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(FAST_TESTS)'
	@echo 'check-fast leaves out, for make check:'; \
	for test in $(TESTS); do \
	  case ' $(FAST_TESTS) ' in *" $$test "*) ;; *) echo "  $$test" ;; esac; \
	done
.PHONY: check-fast
