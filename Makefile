# Targets for building, testing and measuring. `make help` lists them.

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
SELKIE     := $(TARGET_DIR)/release/selkie
# Selkie, and the programs that the tests run beside it. One invocation of cargo builds all of them, with the same features as
# `make build`, so that nothing is compiled twice.
PROGRAMS   := selkie bench histories simulate truth
# Tools that the tests need and that are not part of Selkie: a Python environment, MongoDB.
TOOLS      := .build
PYTHON     := $(TOOLS)/venv/bin/python
MONGOD     ?= $(TOOLS)/mongod
MARIADBD   ?= mariadbd
FUZZ_SECONDS ?= 60
# Number of black-box tests that run at a time: they mostly wait for clocks, disks and processes.
TESTS_AT_ONCE ?= 3
SIDE_BY_SIDE := --numprocesses $(TESTS_AT_ONCE) --dist worksteal
# Packages and features that differ for MariaDB within the process.
EMBEDDED_MARIADB := -p selkie -p bench -p store-mariadb -p mariadb-client -p mariadb-embedded --features selkie/embedded-mariadb,bench/embedded-mariadb

# Moves the debug information out of the program into a file that debuggers and backtraces find by its name (.gnu_debuglink).
define SEPARATE_DEBUG
@if readelf --section-headers $(SELKIE) | grep -q '\.debug_info'; then \
    objcopy --only-keep-debug --compress-debug-sections=zlib $(SELKIE) $(SELKIE).debug && \
    objcopy --strip-all --add-gnu-debuglink=$(SELKIE).debug $(SELKIE) $(SELKIE).stripped && \
    mv $(SELKIE).stripped $(SELKIE); \
fi
endef

.DEFAULT_GOAL := help
.PHONY: help run build programs test test-long check blackbox compat drivers mariadb-tests embedded-mariadb bench report fuzz docs tools clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

run: build ## build, and serve mongodb://127.0.0.1:27017 on the embedded store
	$(SELKIE) serve

build: ## build the program, with its debug information in a file beside it
	cargo build --release -p selkie
	$(SEPARATE_DEBUG)

programs: ## build the program, and bench, histories, simulate and truth
	cargo build --release $(PROGRAMS:%=-p %)
	$(SEPARATE_DEBUG)

test: tools check blackbox compat ## all tests: check, blackbox and compat (40 minutes on 2 cores)

check: ## format, lints and unit tests; needs no server, driver or network
	cargo fmt --check
	cargo clippy --quiet --workspace --all-targets -- --deny warnings
	MARIADB_EMBEDDED_LINTS_ONLY=1 cargo clippy --quiet $(EMBEDDED_MARIADB) --all-targets -- --deny warnings
	cargo test --quiet --workspace

blackbox: tools programs ## real drivers against the program, on both stores; PYTEST_ARGS="-k cursors" selects tests
	SELKIE=$(abspath $(SELKIE)) MONGOD=$(abspath $(MONGOD)) $(PYTHON) -m pytest tests --ignore=tests/compat --ignore=tests/drivers $(SIDE_BY_SIDE) $(PYTEST_ARGS)

compat: tools programs ## compare replies with MongoDB 6.0, on both stores; SELKIE_RANDOM=100000 compares more
	SELKIE=$(abspath $(SELKIE)) MONGOD=$(abspath $(MONGOD)) $(PYTHON) -m pytest tests/compat $(SIDE_BY_SIDE) $(PYTEST_ARGS)

drivers: tools programs ## logins through the drivers of Go and Java, on both stores; installs Go, a JDK and Maven if missing
	tests/tools/setup $(TOOLS) drivers
	SELKIE=$(abspath $(SELKIE)) MONGOD=$(abspath $(MONGOD)) $(PYTHON) -m pytest tests/drivers $(PYTEST_ARGS)

mariadb-tests: tools programs ## MariaDB's own tests through the routers; MARIADB_TESTS="NAME …" selects some
	tests/tools/setup $(TOOLS) mariadb-tests
	cd tests && SELKIE=$(abspath $(SELKIE)) $(abspath $(PYTHON)) -m mariadb_tests $(MARIADB_TESTS)

test-long: tools programs drivers mariadb-tests ## longer tests: an hour of kills, damaged files, stale reads, storms and random commands
	SELKIE=$(abspath $(SELKIE)) MONGOD=$(abspath $(MONGOD)) SELKIE_KILL_ROUNDS=20 SELKIE_SQL_STALE_SECONDS=200 \
	    SELKIE_TRUTH_OPERATIONS=1000000 SELKIE_INDEX_ROUNDS=20 SELKIE_MULTIPLEX_STATEMENTS=20000 SELKIE_SCALE_CLIENTS=5000 SELKIE_DAMAGED_FILES=400 SELKIE_ATTACKS=50000 \
	    SELKIE_HISTORIES=200 SELKIE_COMMIT_KILLS=200 SELKIE_STREAM_UPDATES=33400 \
	    $(PYTHON) -m pytest tests/blackbox -k "kill or truth or histories or random_statements_reply or each_of_many_clients or random_updates or stale or index_answers or damaged or hostile" $(SIDE_BY_SIDE) $(PYTEST_ARGS)
	SELKIE=$(abspath $(SELKIE)) MONGOD=$(abspath $(MONGOD)) SELKIE_STORM_CONNECTIONS=10000 \
	    SELKIE_STORM_HALF_OPEN=100000 SELKIE_BLACK_BOX_FRAMES=50000 \
	    $(PYTHON) -m pytest tests/blackbox/test_storms.py tests/blackbox/test_frames.py -s $(PYTEST_ARGS)
	SELKIE_FRAMES=1000000 cargo test --release -p mongo-session -p sql-session --test frames -- --nocapture
	SELKIE=$(abspath $(SELKIE)) MONGOD=$(abspath $(MONGOD)) SELKIE_RANDOM=100000 \
	    $(PYTHON) -m pytest tests/compat -k random $(SIDE_BY_SIDE) $(PYTEST_ARGS)

embedded-mariadb: tools ## build with MariaDB within the process (under the GPL), and test it with real drivers
	tests/tools/setup $(TOOLS) embedded-mariadb
	cargo clippy --quiet $(EMBEDDED_MARIADB) --all-targets -- --deny warnings
	cargo test --quiet -p mariadb-embedded --features libmariadbd
	cargo build --release $(PROGRAMS:%=-p %) --features selkie/embedded-mariadb,bench/embedded-mariadb
	mkdir -p $(TOOLS)/embedded-mariadb
	cp $(PROGRAMS:%=$(TARGET_DIR)/release/%) $(TOOLS)/embedded-mariadb/
	SELKIE=$(abspath $(TOOLS))/embedded-mariadb/selkie MONGOD=$(abspath $(MONGOD)) \
	    $(PYTHON) -m pytest tests/blackbox --store embedded-mariadb $(PYTEST_ARGS)

bench: tools programs ## measure MongoDB and Selkie on both stores; BENCH_ARGS=--quick takes a minute
	$(TARGET_DIR)/release/bench compare --mongod $(MONGOD) --mariadbd $(MARIADBD) --json $(TOOLS)/bench.json $(BENCH_ARGS)

report: tools programs ## repeat published experiments, and write docs/benchmarks/report.md; REPORT_ARGS=--quick tries it
	$(TARGET_DIR)/release/bench report --mongod $(MONGOD) --mariadbd $(MARIADBD) --out docs/benchmarks $(REPORT_ARGS)

fuzz: tools ## run each fuzz target for FUZZ_SECONDS (60); needs a nightly toolchain and cargo-fuzz
	$(PYTHON) fuzz/make_seeds.py fuzz/corpus
	cd fuzz && for target in $$(cargo +nightly fuzz list); do \
	    mkdir -p corpus/$$target && \
	    cargo +nightly fuzz run $$target corpus/$$target $$(ls -d seeds/$$target 2>/dev/null) -- -max_total_time=$(FUZZ_SECONDS) || exit 1; done

docs: ## build the website of the documents into .build/book (installs mdBook the first time)
	test -x $(TOOLS)/bin/mdbook || cargo install --locked --root $(TOOLS) mdbook --version 0.5.4
	tests/tools/book $(TOOLS)/bin/mdbook $(TOOLS)/book

tools: ## install the tools for the tests under .build/ and tests/node/node_modules
	tests/tools/setup $(TOOLS)

clean: ## remove all files that building and testing created
	cargo clean
	rm -rf $(TOOLS) tests/node/node_modules
