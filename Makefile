# Each target is the real command.  The set-up before it takes a fraction of a second when there is
# nothing to do.
#
#   make health CONFIG=config/sites/mycluster.py    another ReFrame configuration
#   make health RFMFLAGS='-n triad'                 further ReFrame options
#   make health SETUPFLAGS=--no-system-packages     as root, but without apt-get
#   make health PLUMBLINE_BUILDS=                   build all programs again

PYTHON     ?= python3
CONFIG     ?= config/localhost.py
RFMFLAGS   ?=
SETUPFLAGS ?=
# Processes of tests: one more than CPUs, for tests wait as well; from four CPUs on each has CPUs of its own (tests/conftest.py).
TESTS_AT_ONCE ?= $(shell n=$$(nproc); echo $$((n < 4 ? n + 1 : n < 8 ? 2 : n < 32 ? n / 4 : 8)))

# A reports folder of the user's own: from the root of the file system.
OWN     := $(if $(PLUMBLINE_REPORTS),$(if $(filter /%,$(PLUMBLINE_REPORTS)),,$(CURDIR)/)$(PLUMBLINE_REPORTS))
RUNS    := $(or $(OWN),reports)/reframe
REPORT  ?= $(RUNS)/health.json
REFRAME := .venv/bin/reframe -C $(CONFIG) -c checks -R
# With the PATH from before .venv joined it: the set-up may have to replace .venv.
SETUP   := PATH='$(PATH)' $(PYTHON) src/setup/bootstrap.py
# What measures nothing changes nothing of the system.
LOOK    := $(SETUP) --no-system-packages

export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Neither another Python's packages nor this make's options are for the programs below, nor that each compiles ours again.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE MAKEFLAGS MFLAGS

# Measurements must not overlap, whatever -j says.
.NOTPARALLEL:
.PHONY: help setup health acceptance test check bench cluster list report docs clean distclean

help:        ## print this list
	@sed -n 's/^\([a-z]*\):[^#]*## /  make \1|/p' Makefile | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

setup:       ## install what is missing, make .venv
	@$(SETUP) $(SETUPFLAGS)

# What was built stays for the next run, as long as sources, compilers and libraries are the same.
health acceptance: export PLUMBLINE_BUILDS ?= $(or $(OWN),$(CURDIR)/reports)/reframe/builds

# ReFrame's exit code does not keep the report from being written; it is handed on, and a verdict must explain it.
health:      ## run the health checks, write reports/latest/index.html, print the verdicts
	@$(SETUP) $(SETUPFLAGS)
	@rm -f '$(RUNS)/health.json'
	$(REFRAME) --mode daily --report-file '$(RUNS)/health.json' $(RFMFLAGS) -r; \
	.venv/bin/plumbline report '$(RUNS)/health.json' --reframe-status $$?

acceptance:  ## the same with the acceptance checks, for a machine that nobody has measured yet
	@$(SETUP) --for acceptance $(SETUPFLAGS)
	@rm -f '$(RUNS)/acceptance.json'
	$(REFRAME) --mode acceptance --report-file '$(RUNS)/acceptance.json' $(RFMFLAGS) -r; \
	.venv/bin/plumbline report '$(RUNS)/acceptance.json' --reframe-status $$?

test:        ## run all tests
	@$(SETUP) --for test $(SETUPFLAGS)
	.venv/bin/python -m pytest -q -n $(TESTS_AT_ONCE) --dist loadfile --no-loadscope-reorder --durations 20 tests

check:       ## run the quick tests that build and measure nothing: a minute
	@$(SETUP) --for test $(SETUPFLAGS)
	.venv/bin/python -m pytest -q -n $(TESTS_AT_ONCE) --dist worksteal -m 'unit and not slow' tests

bench:       ## run Plumbline's benchmark of itself
	@$(LOOK) $(SETUPFLAGS)
	.venv/bin/plumbline bench

cluster:     ## start a Slurm cluster of four nodes on this host, to try things; Ctrl-C ends it
	@$(SETUP) --for test $(SETUPFLAGS)
	.venv/bin/python tests/cluster

# Without the fixtures of each, which ReFrame lists in all environments.
list:        ## list the checks
	@$(LOOK) $(SETUPFLAGS)
	@mkdir -p '$(RUNS)'
	@$(REFRAME) $(RFMFLAGS) -l > '$(RUNS)/list.txt'; status=$$?; sed '/^ *\^/d' '$(RUNS)/list.txt'; exit $$status

report:      ## write the report of the last health run again (REPORT=file for another run)
	@$(LOOK) $(SETUPFLAGS)
	.venv/bin/plumbline report '$(REPORT)'

docs:        ## write the documentation's pages, build/docs/index.html
	@$(LOOK) $(SETUPFLAGS)
	.venv/bin/sphinx-build -W -q -b html docs build/docs

clean:       ## remove what was built and run; results stay
	rm -rf build '$(RUNS)/builds' '$(RUNS)/stage' '$(RUNS)/output' '$(RUNS)/reframe.log' .pytest_cache .mypy_cache
	@find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## remove .venv as well
	rm -rf .venv .venv.lock src/plumbline.egg-info
