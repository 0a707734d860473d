# make demo | make test | make lint | make bench | make bench-peers
PYTHON ?= python3
BIN := .venv/bin

.PHONY: browser demo test lint bench bench-peers clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    install, then watch SU+ solve Tree-100 and draw a picture and a report of it"
	@echo "make test    install, then run all tests"
	@echo "make lint    ruff and pyright"
	@echo "make bench   the benchmarks behind the speed claims: training, and the time before it"
	@echo "make bench-peers   beside bsuite, Stable-Baselines3, PyTorch and Rejax, in environments of their own"
	@echo "make clean   remove the environments and what the demo wrote"

# One marker file for each set of extras: it is newer than what it was made from, or pip runs again.
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# Bytecode by both cores: pip would make it on one, and where Python may not write it, JAX takes 2 s to import.
BYTECODE = $(BIN)/python -m compileall -qq -j 0 .venv/lib src || true
.venv/.demo: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e ".[plots,report]"
	@$(BYTECODE)
	@touch $@

.venv/.test: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e ".[test]"
	@$(BYTECODE)
	@touch $@ .venv/.demo

demo: .venv/.demo
	$(BIN)/surveyor train Tree-100 --out demo --plot demo/learning.png
	$(BIN)/surveyor report demo

# The report is tested in a real browser, Debian's; where it cannot be installed those tests say so.
browser:
	@{ command -v chromium && command -v chromedriver; } >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; } || \
		echo "Chromium could not be installed; the tests of the report need chromium and chromium-driver."

test: .venv/.test browser
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: .venv/.test
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/gradient_steps.py
	$(BIN)/python benchmarks/startup.py

# The peers need libraries that nothing else here does.
.venv-peers/.done: pyproject.toml constraints.txt
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e ".[atari,minatar,minigrid]" bsuite dm-haiku dm-tree rlax \
		minatar opencv-python-headless stable-baselines3 torch
	@touch $@

# Rejax needs a gymnax that ours does not work with.
.venv-rejax/.done: benchmarks/rejax-constraints.txt
	test -x .venv-rejax/bin/python || $(PYTHON) -m venv .venv-rejax
	.venv-rejax/bin/python -m pip install --quiet --disable-pip-version-check \
		-c benchmarks/rejax-constraints.txt rejax
	@touch $@

bench-peers: .venv-peers/.done .venv-rejax/.done
	.venv-peers/bin/python benchmarks/peers.py
	.venv-peers/bin/python benchmarks/host_peers.py
	.venv-peers/bin/python benchmarks/deep_peers.py
	.venv-peers/bin/python benchmarks/rejax_peer.py

clean:
	rm -rf .venv .venv-peers .venv-rejax demo
