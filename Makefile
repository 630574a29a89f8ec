# Tangelo: the commands of README.md. Everything else is `cargo xtask`.

.PHONY: demo demo-pair test bench bench-steady

# Builds, makes six file drives under ./demo and serves a thin volume of a parity-1 pool over iSCSI on loopback.
demo:
	@scripts/demo

# Two heads, a witness and a client in network namespaces: the owner is killed under load, and the other head goes on. Needs root.
demo-pair:
	@scripts/demo-pair

# Installs what the tests need (Debian packages, by name), and runs them all.
test:
	@scripts/run-tests

# Side by side in twenty minutes or so: Tangelo, Debian's tgt, raw drives, the TCP echo floor; what snapshots and clones cost, pools
# beside their own drives, and two heads beside one.
bench:
	@scripts/run-bench
	@scripts/run-copies-bench --rounds 3 --seconds 2
	@scripts/run-pool-bench --rounds 3 --seconds 1
	@scripts/run-pair-bench --rounds 3 --seconds 2
	@cargo bench -q -p engine --bench turns

# How nearly full pools bear random overwrites for a long time: an hour and a half.
bench-steady:
	@scripts/run-steady-bench
