# What one does with this repository. `make help` lists it.

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
SELKIE     := $(TARGET_DIR)/release/selkie
# Tools the tests need, none of which is part of Selkie: a Python environment, MongoDB to compare with.
TOOLS      := .build
PYTHON     := $(TOOLS)/venv/bin/python
MONGOD     ?= $(TOOLS)/mongod
FUZZ_SECONDS ?= 60
# Tests that ask from outside run so many at a time: they wait for clocks, disks and other processes more than they compute.
TESTS_AT_ONCE ?= 2
SIDE_BY_SIDE := --numprocesses $(TESTS_AT_ONCE) --dist worksteal
# What is compiled otherwise, or at all, for MariaDB within the process.
EMBEDDED_MARIADB := -p selkie -p bench -p store-mariadb -p mariadb-embedded --features selkie/embedded-mariadb

.DEFAULT_GOAL := help
.PHONY: help run build test test-long check blackbox compat embedded-mariadb bench report fuzz tools clean

help: ## list these targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

run: build ## build, and serve mongodb://127.0.0.1:27017 on the embedded store
	$(SELKIE) serve

build: ## build the program as it is shipped
	cargo build --release -p selkie

test: tools check blackbox compat ## everything: format, lints, unit tests, real drivers, answers beside MongoDB's (25 minutes on 2 cores)

check: ## format, lints and unit tests: needs no server, driver or network
	cargo fmt --check
	cargo clippy --quiet --workspace --all-targets -- --deny warnings
	MARIADB_EMBEDDED_LINTS_ONLY=1 cargo clippy --quiet $(EMBEDDED_MARIADB) --all-targets -- --deny warnings
	cargo test --quiet --workspace

blackbox: tools build ## real drivers against the program, on both stores
	SELKIE=$(abspath $(SELKIE)) MONGOD=$(abspath $(MONGOD)) $(PYTHON) -m pytest tests --ignore=tests/compat $(SIDE_BY_SIDE) $(PYTEST_ARGS)

compat: tools build ## the same questions to Selkie on both stores and to MongoDB 6.0, answers compared; SELKIE_RANDOM=100000 for more
	SELKIE=$(abspath $(SELKIE)) MONGOD=$(abspath $(MONGOD)) $(PYTHON) -m pytest tests/compat $(SIDE_BY_SIDE) $(PYTEST_ARGS)

test-long: tools build ## what takes longer than `make test`: an hour of kills, damaged files, stale reads and random commands
	SELKIE=$(abspath $(SELKIE)) MONGOD=$(abspath $(MONGOD)) SELKIE_KILL_ROUNDS=20 SELKIE_SQL_STALE_SECONDS=200 \
	    SELKIE_TRUTH_OPERATIONS=1000000 SELKIE_INDEX_ROUNDS=20 SELKIE_DAMAGED_FILES=400 \
	    $(PYTHON) -m pytest tests/blackbox -k "kill or truth or stale or index_answers or damaged" $(SIDE_BY_SIDE) $(PYTEST_ARGS)
	SELKIE=$(abspath $(SELKIE)) MONGOD=$(abspath $(MONGOD)) SELKIE_RANDOM=100000 \
	    $(PYTHON) -m pytest tests/compat -k random $(SIDE_BY_SIDE) $(PYTEST_ARGS)

embedded-mariadb: tools ## build with MariaDB within the process (the program is under the GPL then), and real drivers against that
	tests/tools/setup $(TOOLS) embedded-mariadb
	cargo clippy --quiet $(EMBEDDED_MARIADB) --all-targets -- --deny warnings
	cargo test --quiet -p mariadb-embedded --features libmariadbd
	cargo build --release -p selkie --features embedded-mariadb
	cp $(SELKIE) $(TOOLS)/selkie-embedded-mariadb
	SELKIE=$(abspath $(TOOLS))/selkie-embedded-mariadb MONGOD=$(abspath $(MONGOD)) \
	    $(PYTHON) -m pytest tests/blackbox --store embedded-mariadb $(PYTEST_ARGS)

bench: tools build ## MongoDB, Selkie embedded and Selkie on MariaDB, side by side; BENCH_ARGS=--quick to try it out
	$(SELKIE) bench compare --mongod $(MONGOD) --json $(TOOLS)/bench.json $(BENCH_ARGS)

report: tools build ## the published experiments beside their figures, into docs/benchmarks; REPORT_ARGS=--quick to try it out
	$(SELKIE) bench report --mongod $(MONGOD) --out docs/benchmarks $(REPORT_ARGS)

fuzz: tools ## run each fuzz target for FUZZ_SECONDS (60); needs a nightly toolchain and cargo-fuzz
	$(PYTHON) fuzz/make_seeds.py fuzz/corpus
	cd fuzz && for target in $$(cargo +nightly fuzz list); do \
	    mkdir -p corpus/$$target && \
	    cargo +nightly fuzz run $$target corpus/$$target $$(ls -d seeds/$$target 2>/dev/null) -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done

tools: ## install what the tests need under .build/ and tests/node/node_modules
	tests/tools/setup $(TOOLS)

clean: ## remove what building and testing leave behind
	cargo clean
	rm -rf $(TOOLS) tests/node/node_modules
