# make run      build farlink and run the first scenario
# make check    a quick answer while working: format, lints and the tests nearest to what changed since main (BASE=COMMIT: since then)
# make test     install what the tests need, and run all of them
# make bench    speed and memory beside ns-2 and ns-3, over fading, and of large grids; studies that are killed; codecs beside other
#               libraries; as root, AeroTP over loopback beside quinn
# make peers    the same scenarios in ns-2 and ns-3, cell by cell; the same frames in libfec; as root, what real pppds
#               do to a bundle, and a study as an array of SLURM's own
# make papers   published tables and figures beside ours, and their pages in docs/validation
# make neighbours  AeroTP beside TCP on a shared bottleneck, cell by cell, and its page in docs/validation: half an hour
# make kernel-neighbours  the same beside the kernel's TCP, over tbf and over a relay, and its page: half an hour, as root
# make wire     farlink send over a bad path beside the kernel's TCP, quinn and the packet engine, cell by cell, under floods, kills and
#               shortages, and the pages: two hours, as root
# make emulator  farlink emulate beside the packet engine and tbf, how late it is and how fast, and its page: twenty minutes, as root
# make live     flows simulated and played for real, side by side, and the page: three hours, as root
# make gateways  iperf3, curl, outages and floods through farlink gateway, beside the kernel's TCP and kcptun, and the page: an hour, as root
# make bundle-paths  farlink bundle carry over emulated paths beside the kernel's MPTCP, and its page: half an hour, as root
# make bundle-twin  the same bundles in the packet engine, beside what was measured, and the page: minutes
# make bundle-axis  real pppds in guests, farlink's PPP and the simulator over the same lines that drop, and the page: four hours, as root
# make bundle-tcp  this kernel's TCP over a simulated bundle of Linux beside the simulated TCP, and the page: half an hour, as root
# make nightly  the tests again with other random cases, then the fuzz targets: at most an hour
# make soak     the same with many more cases and states, and a million executions of each fuzz target: a night
# make site     the documentation as a site in target/site/html, its links checked
# make dist     what is published, in dist/: wheels for x86-64 and aarch64 and the sources, looked through and tried in new environments
# make aarch64  rows of scenarios on aarch64, under qemu, beside this machine's; lints and the tests of codecs and core for it
# make audit    licences, origins and known weaknesses of what farlink is made of
# make docs     write the generated pages, tables and pictures of the documentation anew (PAGE=guides/coding.md: one page)
# make lock     choose the versions of the Python tools anew, in constraints.txt (UPGRADE=1: the newest ones)
# make fmt      format Rust and Python
# make clean    remove everything that was built

PYTHON ?= python3
PEERS ?= all
# Of Cargo.toml: `release` is what users get, `dev` has the checks of debug builds and shares its crates with the tests of Rust.
PROFILE ?= release
FEATURES_dev = --features pyo3/extension-module,tests
BASE ?= main
BIN := .venv/bin
STAMPS := .venv/stamps
SOURCES := $(shell find crates python/farlink scenarios -type f -not -name '*.pyc' -not -name '*.so' 2>/dev/null) \
	$(wildcard Cargo.toml Cargo.lock pyproject.toml python/README.md LICENSE)
WHEEL = $$(echo $(STAMPS)/wheel/farlink-*.whl)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Of the versions that the checks passed with; users of a wheel are not bound by it.
LOCK := constraints.txt
PIP_INSTALL := $(PIP) install --constraint $(LOCK)
SITE_TOOLS := 'zensical>=0.0.73,<0.2' 'griffe>=1.7,<3'

.PHONY: help run check test install test-tools bench peers papers neighbours kernel-neighbours wire emulator live gateways bundle-lines bundle-beside bundle-paths bundle-twin bundle-axis bundle-tcp nightly soak docs site dist aarch64 audit lock fmt clean

help:
	@sed -n 's/^# //p' Makefile

run: install
	@mkdir -p out
	@$(BIN)/farlink run scenarios/geo-tcp.toml --report out/geo-tcp.html
	@echo "Open the report: file://$(CURDIR)/out/geo-tcp.html"

test: $(STAMPS)/venv
	@.ci/apt-packages ns=ns2 tshark=tshark gcc=gcc ip=iproute2 curl=curl nft=nftables \
		qemu-system-x86_64=qemu-system-x86 busybox=busybox-static pppd=ppp chromium=chromium /usr/include/fec.h=libfec-dev \
		dbus-daemon=dbus-daemon /usr/include/dbus-1.0/dbus/dbus.h=libdbus-1-dev \
		/usr/include/glib-2.0/glib.h=libglib2.0-dev
	@.ci/dbusmock
	@.ci/promtool
	@.ci/checks

check:
	@[ -n "$$(git diff --name-only $(BASE) -- '*.rs' Cargo.toml Cargo.lock)" ] && [ -e $(STAMPS)/test ] || $(MAKE) --no-print-directory test-tools PROFILE=dev
	@.ci/changed $(BASE)

bench: test-tools
	@.ci/apt-packages ns=ns2 g++=g++ /usr/include/ns3=libns3-dev /usr/include/fec.h=libfec-dev \
		/usr/include/isa-l.h=libisal-dev git=git nasm=nasm /usr/include/volk/volk.h=libvolk2-dev \
		/usr/include/osmocom/core/conv.h=libosmocore-dev /usr/include/cm256cc=libcm256cc-dev ip=iproute2
	@$(PIP_INSTALL) 'zfec>=1.6,<2' || echo "note: zfec is left out"
	@cargo build --release --quiet -p farlink-sim --features toml --example run
	@$(BIN)/python benches/peers.py
	@$(BIN)/python benches/fading.py
	@$(BIN)/python benches/fluid.py
	@$(BIN)/python benches/grids.py
	@$(BIN)/python benches/studies.py
	@$(BIN)/python benches/codecs.py
	@$(BIN)/python benches/loopback.py || [ $$? -eq 2 ] # 2: not as root, as it says

peers: test-tools
	@.ci/apt-packages ns=ns2 g++=g++ /usr/include/ns3=libns3-dev gcc=gcc /usr/include/fec.h=libfec-dev \
		qemu-system-x86_64=qemu-system-x86 busybox=busybox-static pppd=ppp slurmctld=slurm-wlm munged=munge
	@FARLINK_PEERS=$(PEERS) $(BIN)/python -m pytest -n 2 tests/peers tests/qemu; status=$$?; \
		$(BIN)/python -m tests.peers.report kept && [ $$status -eq 0 -o $$status -eq 5 ] # 5: all cells passed before

papers: test-tools
	@$(BIN)/python docs/papers.py
	@$(BIN)/python docs/arq.py
	@$(BIN)/python docs/fading.py
	@$(BIN)/python docs/rain.py
	@$(BIN)/python docs/rain_geo.py
	@$(BIN)/python docs/erasure_bursts.py
	@$(BIN)/python docs/call_drops.py
	@$(BIN)/python docs/link_kinds.py
	@$(BIN)/python docs/tcp_latency.py
	@$(BIN)/python docs/tuning_paths.py
	@$(BIN)/python docs/tuning_bursts.py
	@$(BIN)/python docs/bundles.py
	@$(BIN)/python docs/bundle_again.py
	@$(BIN)/python docs/fluid.py
	@$(BIN)/python docs/model_engine.py

neighbours: test-tools
	@$(BIN)/python docs/aerotp_neighbours.py

kernel-neighbours: test-tools
	@.ci/apt-packages ip=iproute2 chrt=util-linux
	@$(BIN)/python docs/aerotp_kernel.py

wire: test-tools
	@.ci/apt-packages ip=iproute2 chrt=util-linux faketime=faketime
	@$(BIN)/python docs/wire.py
	@$(BIN)/python docs/wire_engine.py
	@$(BIN)/python docs/wire_far.py
	@$(BIN)/python docs/wire_faults.py

emulator: test-tools
	@.ci/apt-packages ip=iproute2
	@$(BIN)/python docs/emulator.py

live: test-tools
	@.ci/apt-packages ip=iproute2
	@$(BIN)/python docs/live_engine.py

gateways: test-tools
	@.ci/apt-packages ip=iproute2 iperf3=iperf3 curl=curl kcptun-client=kcptun
	@$(BIN)/python docs/gateway_paths.py

bundle-twin: test-tools
	@$(BIN)/python docs/bundle_twin.py

bundle-paths: test-tools
	@.ci/apt-packages ip=iproute2 curl=curl ping=iputils-ping
	@$(BIN)/python docs/bundle_paths.py
	@$(BIN)/python docs/bundle_speed.py

bundle-axis: test-tools
	@.ci/apt-packages ip=iproute2 qemu-system-x86_64=qemu-system-x86 busybox=busybox-static pppd=ppp
	@$(BIN)/python docs/bundle_axis.py
	@$(BIN)/python docs/bundle_ttys.py

bundle-tcp: test-tools
	@.ci/apt-packages ip=iproute2
	@$(BIN)/python docs/bundle_tcp.py

bundle-lines: test-tools
	@.ci/apt-packages ip=iproute2 nft=nftables
	@$(BIN)/python docs/bundle_lines.py

bundle-beside: test-tools
	@.ci/apt-packages ip=iproute2 nft=nftables ping=iputils-ping jq=jq
	@$(BIN)/python docs/bundle_beside.py

soak: test-tools
	@.ci/soak all

nightly: test-tools
	@.ci/soak nightly

dist: $(STAMPS)/venv
	@PROFILE=$(PROFILE) .ci/dist

aarch64: $(STAMPS)/venv
	@.ci/aarch64

audit: $(STAMPS)/venv
	@.ci/audit

docs: test-tools
	@$(BIN)/python docs/generate.py $(PAGE)

site: test-tools
	@$(BIN)/python docs/build_site.py pages target/site
	@cd target/site && $(abspath $(BIN))/python -m zensical build --config-file mkdocs.yml
	@$(BIN)/python docs/build_site.py check target/site
	@echo "Open the site: file://$(CURDIR)/target/site/html/index.html, or python -m http.server -d target/site/html for its search"

# The versions that stand in the file are kept where they still fit, unless UPGRADE=1.
lock: $(STAMPS)/venv
	@$(PIP_INSTALL) 'uv>=0.5,<1'
	@printf '%s\n' 'maturin>=1.8,<2' 'uv>=0.5,<1' 'zfec>=1.6,<2' 'mkdocs-material>=9.5,<10' \
		$(SITE_TOOLS) | $(BIN)/uv pip compile --quiet --universal \
		--python-version 3.11 --all-extras $(if $(UPGRADE),--upgrade) --no-annotate --custom-compile-command 'make lock' \
		--output-file $(LOCK) pyproject.toml - > /dev/null

fmt: test-tools
	@git ls-files '*.rs' | xargs -r rustfmt --edition 2024
	@$(BIN)/ruff check --quiet --fix --exit-zero .
	@$(BIN)/ruff format --quiet .

clean:
	rm -rf .venv target out dist

install: $(STAMPS)/run
test-tools: $(STAMPS)/test

$(STAMPS)/venv:
	@command -v cargo >/dev/null || { echo "error: cargo is missing"; echo "hint: install Rust 1.89 or later"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: farlink needs Python 3.11 or later"; echo "hint: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 2; }
	@echo "Creating .venv"
	@$(PYTHON) -m venv .venv
	@$(PIP_INSTALL) 'maturin>=1.8,<2'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/wheel-$(PROFILE).built: $(SOURCES) | $(STAMPS)/venv
	@echo "Building farlink (some minutes the first time)"
	@rm -rf $(STAMPS)/wheel $(STAMPS)/wheel-*.built # one of them is installed
	@output=$$($(BIN)/maturin build --profile $(PROFILE) $(FEATURES_$(PROFILE)) --quiet --auditwheel skip --interpreter $(BIN)/python \
		--out $(STAMPS)/wheel 2>&1) || { echo "$$output"; exit 1; }
	@$(PIP) install --no-deps --force-reinstall "$(WHEEL)"
	@touch $@

$(STAMPS)/run: $(STAMPS)/wheel-$(PROFILE).built $(LOCK)
	@$(PIP_INSTALL) "$(WHEEL)[plot,parquet,optics]"
	@touch $@

$(STAMPS)/test: $(STAMPS)/wheel-$(PROFILE).built $(LOCK)
	@$(PIP_INSTALL) "$(WHEEL)[all,rain,dask,test]" $(SITE_TOOLS)
	@touch $@ $(STAMPS)/run
