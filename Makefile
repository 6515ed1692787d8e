# `make run` and `make test` set up what is missing by themselves. `make help` lists everything.
.DEFAULT_GOAL := help
.PHONY: help setup dashboard run demo optimised docs docs-reference check-deploy audit test e2e browser browser-long \
	screenshots lint fmt doc bench bench-gateway bench-observatory bench-semantic bench-instructions quality \
	quality-semantic mutants fuzz fuzz-ingest kills replay-2gb chaos soak clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what building and testing need and is missing
	@scripts/setup.sh

dashboard: ## build the dashboard into dashboard/dist, where the binary takes it from
	@scripts/setup.sh dashboard
	@scripts/dashboard.sh

run: dashboard setup ## build, then start the gateway with its defaults, and say how to point agents at it
	@echo "building: some minutes the first time, seconds after that"
	cargo run --release --package loopbreaker-cli -- serve

demo: dashboard setup ## build, then watch loops being broken in six small agents: no key, no network
	@echo "building: some minutes the first time, seconds after that"
	cargo run --release --package loopbreaker-cli -- demo

optimised: dashboard setup ## build target/optimised/loopbreaker, laid out for the ways of real requests: as the image has it
	scripts/optimised.sh

test: ## format check, lints, every test, the official SDKs, docs: what has to pass before a change lands
	@scripts/setup.sh tests
	@scripts/dashboard.sh
	cd dashboard && npm run --silent lint && npm run --silent check && npm run --silent test
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --no-run
	cargo test --quiet
	cargo build --bins
	tests/e2e/run.sh
	cd dashboard && npm run --silent browser
	cd quality && python3 -m unittest --quiet test_quality
	cd tests/deploy && python3 -m unittest discover --quiet
	cd tests/chaos && PYTHONDONTWRITEBYTECODE=1 python3 -m unittest --quiet test_chaos
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet

e2e: ## only the tests with the official SDKs; E2E_LONG=1 adds the pause of 90 s
	@scripts/setup.sh tests
	cargo build --bins
	tests/e2e/run.sh

browser: dashboard ## only the dashboard's tests in a real Chromium
	@scripts/setup.sh tests
	cargo build --bins
	cd dashboard && npm run --silent browser

browser-long: dashboard ## the dashboard under 500 events a second for ten minutes; MINUTES=n
	@scripts/setup.sh tests
	cargo build --bins
	cd dashboard && LONG=1 npm run --silent browser -- browser/scale.test.ts

screenshots: dashboard ## pictures of every screen, light and dark, into docs/screens
	@scripts/setup.sh tests
	cargo build --bins
	scripts/screenshots.sh

lint: setup ## lints of every crate
	cargo clippy --workspace --all-targets -- -D warnings

fmt: ## format all code
	cargo fmt --all

doc: ## the library's documentation, in the browser
	cargo doc --no-deps --open

bench: setup ## speed and memory beside the peers, with ratios and floors
	cargo run --release --package loopbreaker-bench --bin bench-report

bench-gateway: setup ## the gateway beside nginx and HAProxy: processor time, latency, memory, floors
	scripts/bench-gateway.sh

bench-observatory: setup ## decision logs per second, and how fast lists and searches are beside ten million steps
	scripts/bench-observatory.sh

bench-semantic: setup ## embeddings and whole checks beside the Python peers
	scripts/bench-semantic.sh

bench-instructions: setup ## instructions per operation, counted by valgrind
	@scripts/setup.sh valgrind
	scripts/bench-instructions.sh

quality: setup ## detection quality on recorded runs beside the baselines, into docs/quality.md
	quality/run.sh

quality-semantic: setup ## what the semantic detector adds on recorded runs, into docs/semantic.md
	cargo build --release --package loopbreaker-cli
	python3 quality/added.py "$${CARGO_TARGET_DIR:-target}/release/loopbreaker"

mutants: setup ## break each detector on purpose and see a test turn red
	scripts/mutants.py

fuzz: setup ## libFuzzer on everything that reads what others wrote, a minute each; FUZZ_SECONDS=n
	scripts/fuzz.sh

fuzz-ingest: setup ## arbitrary decision logs against a running observatory for ten minutes; FUZZ_SECONDS=n
	LOOPBREAKER_FUZZ_SECONDS=$(or $(FUZZ_SECONDS),600) \
		cargo test --package loopbreaker-observatory --test http -- whatever_comes

kills: setup ## kill -9 during ingest, 50 times: nothing that was acknowledged is lost; KILLS=n
	LOOPBREAKER_TEST_KILLS=$(or $(KILLS),50) cargo test --package loopbreaker-observatory --test http -- kill::

replay-2gb: setup ## replay of a 2 GB file, with its peak memory
	scripts/replay-2gb.sh

docs: ## the documentation as a site, into target/site
	@scripts/docs.sh

docs-reference: setup ## write docs/reference anew from what the binary says about itself
	cargo build --bins
	scripts/reference.py

check-deploy: setup ## check deploy/ with real proxies, promtool, systemd-analyze, a chart renderer and linters
	cargo build --bins
	scripts/check-deploy.sh

audit: setup ## licences, sources and known vulnerabilities of every dependency
	scripts/audit.sh

chaos: ## kill, stop, slow down, fill and cut each part under traffic; CHAOS=redis plays only those rows
	@scripts/setup.sh chaos
	cargo build --release --package loopbreaker-cli --package loopbreaker-mock
	tests/chaos/run.sh $(CHAOS)

soak: setup ## half an hour at 2,000 requests/s: does anything grow, fail or get missed? SOAK_MINUTES, SOAK_RATE
	scripts/soak.sh

clean: ## remove what was built
	cargo clean
