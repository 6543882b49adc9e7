# rackmem: every command a newcomer needs. `make` alone lists them.
#
# Rust comes from rustup, which reads rust-toolchain.toml. The Debian packages and the Python packages
# that a target needs are installed by `cargo xtask setup`; where that is not permitted it says what to
# install, and the tests that need it are reported as skipped.

SHELL := /bin/bash
TARGET := $(or $(CARGO_TARGET_DIR),target)
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
RACKMEM := $(TARGET)/release/rackmem
# What `make bench` runs, and options for `make demo` and `make bench`, e.g. `make demo ARGS=--stay`.
BENCH ?= hit; miss; miss --fabric udp; micro; micro --fabric udp; kv --vs redis
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick bench verify fix clean build toolchain

help: ## List the commands
	@echo "rackmem: one coherent memory for a rack of machines"
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)$$/\1|\2/p' Makefile | awk -F '|' '{ printf "  make %-11s%s\n", $$1, $$2 }'

demo: build ## Build, then run a rack in one process, one of processes and one of Python, some 20 s (ARGS=--stay to keep the first)
	@$(RACKMEM) demo $(ARGS)
	@$(if $(ARGS),,cargo xtask python demo)

test: toolchain ## Run every check and test: house rules, unit, end to end with real clients, fuzz
	@echo "make test: builds its runner, looks for the programs that tests need, then runs every step"
	@cargo run --package xtask -- setup test
	@cargo xtask test

test-quick: toolchain ## Run what a change breaks first, in some minutes: no explorers, worlds, processes or fuzz
	@echo "make test-quick: builds its runner, then runs every step"
	@cargo run --package xtask -- test --quick

bench: build ## Measure hits, misses, the sharing workload and the store (BENCH="hit; kv" for some)
	@cargo xtask setup bench
	@set -e -o pipefail; echo "$(BENCH)" | tr ';' '\n' | while read -r bench; do \
		$(RACKMEM) bench $$bench $(ARGS) < /dev/null; \
	done

verify: toolchain ## Run the read-only gate: format, lints, house rules, licences, docs
	@cargo xtask verify

fix: toolchain ## Repair what a machine can: format and lints
	@cargo xtask fix

clean: ## Remove everything that was built, the tests' Python environment included
	@cargo clean
	@rm -rf target fuzz/corpus fuzz/artifacts

# The switch in the kernel (`rackmem switch --xdp`) takes clang to build; without it everything else is there.
HAS_XDP := $(and $(shell command -v clang),$(wildcard /usr/include/bpf/bpf_helpers.h))

build: toolchain
	@$(if $(HAS_XDP),,echo "clang or libbpf-dev is missing: built without the switch in the kernel (cargo xtask setup bench)")
	@cargo build --release --package rackmem-cli $(if $(HAS_XDP),--features xdp)

toolchain:
	@command -v cargo > /dev/null || { \
		echo "cargo was not found. Install Rust with rustup (https://rustup.rs), open a new shell and try again."; exit 1; }
	@command -v cc > /dev/null || { \
		echo "A C linker was not found: installing build-essential"; \
		$(SUDO) apt-get update -q && $(SUDO) apt-get install -y build-essential; } || { \
		echo "Rust needs a C linker. Install it as root with: apt-get install build-essential"; exit 1; }
