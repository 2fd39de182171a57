# Pages for people, one sentence per line.  Man pages are made by scripts/local.mk.
dist_doc_DATA += \
  %D%/tutorial.md \
  %D%/mislead.md \
  %D%/design.md \
  %D%/numerics.md \
  %D%/determinism.md \
  %D%/formats.md \
  %D%/json.md \
  %D%/reliability.md \
  %D%/bench.md %D%/scale.md \
  %D%/environment.md \
  %D%/install.md \
  %D%/versions.md \
  %D%/kernel-tutorial.md \
  %D%/certified.md %D%/features.md %D%/live.md \
  %D%/pictures.md
EXTRA_DIST += %D%/bench.tsv %D%/tutorial.ipynb %D%/pictures/light.png %D%/pictures/dark.png %D%/pictures/fit-time.png \
  %D%/pictures/worlds.png %D%/pictures/live.png
