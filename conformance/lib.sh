# Sourced by the scripts of this directory: verdicts, a place to work in, and clean-up by process id.
#
# A script is run by itself, from anywhere, or by `cargo xtask test`. It builds what it needs unless TANGELO and XTASK name
# programs. It works in target/conformance/NAME and leaves that there only when something failed; without the drives if CI is set, because
# nobody looks at them and the next scripts need the room.

. "$(dirname "${BASH_SOURCE[0]}")/../scripts/environment.sh"
cd "$tree"
scripts/install-packages build clients
find_rust
. scripts/daemon.sh

script=$(basename "$0")
work=${WORK:-$target/conformance/$script}
passed=0
failed=0
heads=()

if [ -z "${TANGELO:-}" ] || [ -z "${XTASK:-}" ]; then
    cargo build --quiet --release -p tangelo -p xtask
fi
xtask_program=${XTASK:-$target/release/xtask}

rm -rf "$work"
mkdir -p "$work"

# verdict NAME COMMAND...: one step; what it says is shown only when it fails.
verdict() {
    local name=$1
    shift
    if "$@" >"$work/step.out" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name"
        sed 's/^/        | /' "$work/step.out" | tail -n 25
        return 0
    fi
}

# refused TEXT COMMAND...: must fail, and say TEXT.
refused() {
    local text=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "it was not refused; it said: $output"
        return 1
    fi
    grep -qF -- "$text" <<<"$output" || {
        echo "it was refused without \"$text\"; it said: $output"
        return 1
    }
}

# says TEXT COMMAND...: must succeed, and say TEXT.
says() {
    local text=$1 output
    shift
    output=$("$@" 2>&1) || {
        echo "it failed; it said: $output"
        return 1
    }
    grep -qF -- "$text" <<<"$output" || {
        echo "it did not say \"$text\"; it said: $output"
        return 1
    }
}

# same A B
same() {
    [ "$1" = "$2" ] || {
        printf 'different:\n%s\n%s\n' "$1" "$2"
        return 1
    }
}

# new_head NAME: a directory for a head, whose daemon is stopped at the end whatever happens.
new_head() {
    local dir=$work/$1
    mkdir -p "$dir"
    heads+=("$dir")
    echo "$dir"
}

finish() {
    local status=$? dir
    trap - EXIT
    for dir in "$work"/*/; do
        [ -e "$dir/pid" ] && head_kill "$dir"
    done
    type clean_up >/dev/null 2>&1 && clean_up
    echo "conformance/$script: $passed steps ok, $failed failed"
    if [ $failed -eq 0 ] && [ $status -eq 0 ] && [ $passed -gt 0 ]; then
        rm -rf "$work"
        exit 0
    fi
    [ -z "${CI:-}" ] || find "$work" -name "*.img*" -delete
    echo "what it worked with is in $work; $(df -h --output=avail "$work" | tail -n 1 | tr -d ' ') are free there" >&2
    exit 1
}
trap finish EXIT
trap 'exit 130' INT TERM

# make_drives DIR COUNT [SIZE]: preallocated files drive-1.img ...
make_drives() {
    local n
    for n in $(seq "$2"); do
        fallocate -l "${3:-1GiB}" "$1/drive-$n.img"
    done
}

# image DIR INITIATOR LUN [OPTIONS]: how QEMU's tools name a logical unit.
image() {
    echo "driver=iscsi,transport=tcp,portal=127.0.0.1:$(cat "$1/port"),target=$(cat "$1/target"),lun=$3,initiator-name=$2${4:-}"
}

# url DIR LUN: how libiscsi's tools do.
url() {
    echo "iscsi://${3:-}127.0.0.1:$(cat "$1/port")/$(cat "$1/target")/$2"
}

# lab_target DIR INITIATOR LUN: how `tangelo bench` names a logical unit.
lab_target() {
    echo "iscsi://127.0.0.1:$(cat "$1/port")/$(cat "$1/target")/$3?initiator=$2"
}

# serve DIR: starts the daemon and notes the target's name.
serve() {
    head_start "$1"
    target_name "$1" >"$1/target"
}

# compare DIR INITIATOR LUN FILE: another client than QEMU's reads the whole unit and compares.
compare() {
    "$tangelo_program" bench verify "$(lab_target "$1" "$2" "$3")" "$4"
}

# log_says DIR TEXT: the daemon's log has it, or will before patience ends.
log_says() {
    local deadline=$((SECONDS + patience_seconds))
    until grep -qF -- "$2" "$1/tangelo.log"; do
        [ $SECONDS -lt $deadline ] || {
            cat "$1/tangelo.log"
            return 1
        }
        sleep 0.1
    done
}

# An array that is not well answers with 1 or 2.
status_of() {
    { head_command "$1" status -o json || [ $? -le 2 ]; } | jq -r "$2"
}
