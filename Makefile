# Every target makes its own environment on first use; CI calls the same ones. Extras are added to what is installed.

VENV ?= .venv
EXTRA ?= dev-all
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
BASE := $(VENV)/.base
READY := $(VENV)/.ready
# Of what is installed, most files are never imported, and need no bytecode.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
PYTEST := $(BIN)/python -m pytest --numprocesses auto
# The tests start many servers: without bytecode each would be compiled anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo check fix test tests test-core quick test-editors test-gpu test-real train-edits vscode bench release bundle types workflows clean

help:
	@echo "make demo    watch the server complete a function and carry a rename through two files"
	@echo "make test    check and run every test that needs no real editor, as CI does"
	@echo "make test-core  lint and run the quick tests that need no torch, Ray or Triton, in a small environment of its own"
	@echo "make test-editors  bring real editors into ~/.cache, or MERCURY_LS_EDITORS, and drive them"
	@echo "make test-real  bring real weights into ~/.cache, or MERCURY_LS_WEIGHTS, and run them through the product"
	@echo "make test-gpu  run the kernels, the whole runtime and the engine on this machine's GPU"
	@echo "make train-edits  teach quicksilver to edit, in the background (training/README.md); QUICKSILVER=, COMMITS= and RUN= name folders"
	@echo "make vscode  build and check the VS Code extension; Node comes along"
	@echo "make check   lint and formatting only"
	@echo "make types   check the types as on Windows and macOS"
	@echo "make workflows  lint GitHub's workflows with actionlint, which its installation loads from GitHub"
	@echo "make fix     format, and repair what the linter can"
	@echo "make bench   measure everything into docs/benchmarks; QUICK=--quick in five minutes;"
	@echo "               PEERS='--llama FOLDER --base FILE.gguf --peers NAME' beside llama.cpp and added models"
	@echo "make release  build what a tag publishes, and try each artefact in an empty environment"
	@echo "python house.py [FOLDER]  say of each file in a sentence what it holds"
	@echo "make bundle  build one file that installs on machines without a network, and try it"
	@echo "make clean   remove the environment and caches"

# The pip of Python 3.11 takes nearly three times as long as a new one to choose versions.
$(BASE): pyproject.toml models/quicksilver/pyproject.toml
	@echo "installing mercury-ls into $(VENV), apart from any other installation: this takes a minute or more"
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) -e . -e ./models/quicksilver
	@touch $(BASE)

$(READY): $(BASE)
	@echo "installing what $(EXTRA) needs into $(VENV)"
	$(PIP) 'mercury-ls[$(EXTRA)]'
	@touch $(READY)

demo: $(BASE)
	$(BIN)/python -m bench.demo

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/zizmor --offline --quiet --pedantic .github

# What runs on users' machines, as their systems' Pythons would see it.
types: $(READY)
	$(BIN)/basedpyright --pythonplatform Windows mercury_ls engine
	$(BIN)/basedpyright --pythonplatform Darwin mercury_ls engine

# actionlint is brought by its installation, from GitHub; so it is apart from what every clone installs.
workflows: $(READY)
	$(PIP) 'mercury-ls[workflows]'
	$(BIN)/actionlint

fix: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m release.manual --write docs
	$(BIN)/python -m tests.editors.vscode.manifest
	$(BIN)/python -m release.version

# Types are checked by one core and tests wait at times, so both run at once.
test: $(READY)
	$(MAKE) --jobs=2 check tests

tests: $(READY)
	$(PYTEST) -m "not editor and not real"

test-core:
	$(MAKE) VENV=.venv-core EXTRA=dev quick

quick: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(PYTEST) -m "not editor and not real and not slow"

# An installation of the user's own stays as it is: editors find their plugins in it.
vscode:
	test -x $(BIN)/mercury-ls || $(MAKE) $(BASE)
	$(BIN)/python -m tests.editors.vscode.package

test-editors: $(READY)
	$(PIP) 'mercury-ls[editors]'
	$(BIN)/python -m tests.editors.tools
	$(PYTEST) -m editor -rs tests/editors

test-gpu: $(READY)
	PATH="$(abspath $(BIN)):$$PATH" sh kernels/gpu/test.sh

test-real: $(READY)
	$(PIP) 'mercury-ls[real]'
	$(BIN)/python -m tests.real.weights
	$(BIN)/python -m pytest -m real -rs

# At the lowest priority; threads that wait for others leave the processor to them. Start it again after any stop.
QUICKSILVER ?= models/quicksilver/mercury_models/quicksilver
COMMITS ?= corpus/edits
RUN ?= runs/edits
train-edits: $(READY)
	OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0 MALLOC_ARENA_MAX=2 \
	MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=20000000000 nice -n 19 $(BIN)/python -m mercury_training.edits.run \
		--model $(QUICKSILVER) --data $(COMMITS) --out $(RUN) --start training/edits/factors.safetensors

bench: $(READY)
	$(BIN)/python -m bench.report $(QUICK) $(PEERS)
	$(if $(QUICK),,$(BIN)/python -m bench.ratchet --update)

release: $(BASE)
	$(PIP) 'mercury-ls[release]'
	$(BIN)/python -m tests.editors.tools node neovim-0.12 lazy.nvim vim code-server chromium
	$(BIN)/python -m release

bundle: vscode
	$(PIP) 'mercury-ls[release]'
	$(BIN)/python -m release.bundle

clean:
	rm -rf $(VENV) .venv-core .pytest_cache .ruff_cache .hypothesis
