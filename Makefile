# Thin: what a target does is in hack/ and in the crates. Every target says when it is done and how long it took.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help tools generate docs check unit test bench e2e e2e-all demo demo-push demo-down images clean-caches

# $(call run,NAME,COMMANDS): the commands in the project's environment; the first that fails ends the target.
define run
@set -euo pipefail; . hack/env.sh; SECONDS=0; trap 'code=$$?; [ $$code -eq 0 ] || echo "make $(1): FAILED ($$SECONDS s)"' EXIT; \
$(2); echo "make $(1): ok ($$SECONDS s)"
endef

help: ## Show the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

tools: ## Get or build the programs that the landscape and the tests start
	$(call run,tools,hack/tools.sh)

generate: ## Write generated files: crds/, chart links, drawings in docs/
	$(call run,generate,hack/xtask.sh generate)

docs: ## Build the site of docs/ (Python), and check its links
	$(call run,docs,hack/docs.sh)

check: ## Format, lints, layering, language, links, generated files, charts, scans of charts, alerts, dependencies, packages, scripts
	$(call run,check,hack/check.sh)

unit: ## Tests that start no server
	$(call run,unit,hack/unit.sh)

test: ## Unit tests, and integration tests on real etcd, kube-apiserver and kube-controller-manager
	$(call run,test,hack/test.sh)

bench: ## Memory and time of idle processes, large states and many moves at once, on real API servers (docs/understand/bench.md)
	$(call run,bench,hack/bench.sh)

e2e: ## A shoot moves between kind clusters and back, under load, with gardenlets killed; each capability once
	$(call run,e2e,hack/e2e.sh once)

e2e-all: ## The same with every scenario; PART=1, 2, 3, 4, 5 or 6 runs a part of them
	$(call run,e2e-all,hack/e2e.sh all)

images: ## Build the suite's images
	$(call run,images,hack/images.sh)

release: ## Make a release, not pushed and not signed (VERSION=vX.Y.Z; default: the tag, else Cargo.toml; docs/operate/release.md)
	$(call run,release,hack/release.sh $(VERSION))

demo: ## Bring up a garden and two seeds, create a shoot, move it, show what was proved (BAD_CASE=1: its seed is cut off; REPOT_REGISTRY=HOST/PATH: pull, build nothing)
	$(call run,demo,hack/demo.sh)

demo-push: ## Push what make demo has built to a registry (REGISTRY=HOST/PATH), for make demo with REPOT_REGISTRY
	$(call run,demo-push,hack/demo-registry.sh push $(REGISTRY))

demo-down: ## Remove everything that the demo brought up
	$(call run,demo-down,hack/demo-down.sh)

clean-caches: ## Delete downloads, built tools and build results
	$(call run,clean-caches,hack/clean-caches.sh)
