# Sourced by the scripts: the Rust toolchain that is already there, and the tree's place.

# No `cd` by CDPATH, no foreign words in tools' output.
unset CDPATH
export LC_ALL=C
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Set by continuous integration or by hand to build elsewhere.
target=${CARGO_TARGET_DIR:-$tree/target}

find_rust() {
    if ! command -v cargo >/dev/null && [ -x "$HOME/.cargo/bin/cargo" ]; then
        PATH="$HOME/.cargo/bin:$PATH"
        export PATH
    fi
    if ! command -v cargo >/dev/null; then
        echo "no Rust toolchain: cargo is neither in PATH nor in ~/.cargo/bin; install Rust 1.88 or newer" >&2
        exit 1
    fi
}
