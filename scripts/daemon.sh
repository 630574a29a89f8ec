# Sourced by the demo and the conformance scripts: a daemon of one's own, ended by its process id only.
#
# A head is a directory: tangelo.toml, its log, its state, its process id. All traffic is on loopback.

tangelo_program=${TANGELO:-$target/release/tangelo}
# Longer than anything takes on a busy machine.
patience_seconds=${PATIENCE:-60}

# port_is_free PORT: nobody listens on it.
port_is_free() {
    ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# free_port FROM: the first port from FROM on that nobody listens on.
free_port() {
    local port
    for ((port = $1; port < $1 + 200; port++)); do
        if port_is_free "$port"; then
            echo "$port"
            return 0
        fi
    done
    echo "no free port between $1 and $((port - 1))" >&2
    return 1
}

# head_configure DIR PORT [PATTERN...]: writes DIR/tangelo.toml; drives default to DIR/drive-*.
head_configure() {
    local dir=$1 port=$2 socket pattern paths=""
    shift 2
    mkdir -p "$dir"
    socket=$(cd "$dir" && pwd)/tangelo.sock
    if [ ${#socket} -gt 107 ]; then
        # The kernel's limit for the path of a Unix socket.
        socket=$(mktemp -d /tmp/tangelo.XXXXXX)/tangelo.sock
    fi
    [ $# -gt 0 ] || set -- "drive-*"
    for pattern in "$@"; do paths="$paths\"$pattern\", "; done
    cat >"$dir/tangelo.toml" <<TOML
# Where this head listens and which drives it looks at; all else lives on the drives.
state_dir = "state"

[listen]
iscsi = ["127.0.0.1:$port"]

[api]
socket = "$socket"

[drives]
paths = [${paths%, }]
${CORES:+
[cores]
$CORES}
TOML
    echo "$socket" >"$dir/socket"
    echo "$port" >"$dir/port"
}

# head_spawn DIR: starts the daemon and returns at once.
head_spawn() {
    local dir=$1 pid
    # A session of its own: Ctrl-C in the terminal is for the script, which stops the daemon in order.
    ${PIN:-} setsid "$tangelo_program" serve --config "$dir/tangelo.toml" >>"$dir/tangelo.log" 2>&1 </dev/null &
    pid=$!
    echo "$pid" >"$dir/pid"
    # The shell need not report how it ended: the log does.
    disown "$pid"
}

# head_start DIR: starts the daemon and waits until hosts are served.
head_start() {
    local dir=$1 before=0
    [ -e "$dir/tangelo.log" ] && before=$(wc -l <"$dir/tangelo.log")
    head_spawn "$dir"
    local deadline=$((SECONDS + patience_seconds))
    until tail -n "+$((before + 1))" "$dir/tangelo.log" 2>/dev/null | grep -q "serving iSCSI on"; do
        if ! head_is_running "$dir" || [ $SECONDS -ge $deadline ]; then
            echo "the daemon does not serve; it said:" >&2
            tail -n "+$((before + 1))" "$dir/tangelo.log" | tail -n 20 >&2
            return 1
        fi
        sleep 0.05
    done
}

head_is_running() {
    [ -e "$1/pid" ] && kill -0 "$(cat "$1/pid")" 2>/dev/null
}

# head_signal DIR SIGNAL: sends it and waits for the end of the daemon.
head_signal() {
    local dir=$1 pid
    [ -e "$dir/pid" ] || return 0
    pid=$(cat "$dir/pid")
    rm -f "$dir/pid"
    kill "-$2" "$pid" 2>/dev/null || true
    local deadline=$((SECONDS + patience_seconds))
    while kill -0 "$pid" 2>/dev/null; do
        if [ $SECONDS -ge $deadline ]; then
            echo "the daemon $pid does not end; killing it" >&2
            kill -9 "$pid" 2>/dev/null || true
            return 1
        fi
        sleep 0.02
    done
}

head_stop() { head_signal "$1" TERM; }
head_kill() { head_signal "$1" KILL; }

# head_command DIR WORD...: asks the daemon.
head_command() {
    local dir=$1
    shift
    "$tangelo_program" --socket "$(cat "$dir/socket")" "$@"
}

# target_name DIR: the iSCSI name of the array.
target_name() {
    # a degraded array's status ends with 1
    { head_command "$1" status -o json || true; } | jq -r .array.target_name
}
