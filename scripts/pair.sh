# Sourced by the demo and the conformance scripts: two heads (a, b), a witness (w) and a client (c) in network namespaces of their own.
#
#   pair_up DIR DRIVES SIZE     makes them; pair_join sets the pair up; pair_down ends everything
#
# Each of a, b and w is a directory of DIR. All traffic is between the namespaces, which end with the script.

pair_nodes="a b w c"

# Network namespaces need root. Who is not gets a user namespace, with a /run of its own, in which the script begins anew. The script has
# put its path and its arguments into `self`.
if [ "$(id -u)" -ne 0 ]; then
    exec unshare --user --map-root-user --net --mount "${self[@]}"
fi
read -r _ pair_outer_id _ </proc/self/uid_map
[ "$pair_outer_id" = 0 ] || mount -t tmpfs tmpfs /run

pair_address() {
    case $1 in
    a) echo 10.77.0.1 ;;
    b) echo 10.77.0.2 ;;
    w) echo 10.77.0.3 ;;
    c) echo 10.77.0.4 ;;
    esac
}
pair_other() { [ "$1" = a ] && echo b || echo a; }
pair_namespace() { echo "tangelo-$$-$1"; }
# pair_exec NODE COMMAND...: in its namespace.
pair_exec() {
    local node=$1
    shift
    ip netns exec "$(pair_namespace "$node")" "$@"
}

pair_up() {
    local node space n
    pair_dir=$1
    mkdir -p "$pair_dir"
    ip netns add "$(pair_namespace switch)"
    pair_exec switch ip link add bridge type bridge
    pair_exec switch ip link set dev bridge up
    for node in $pair_nodes; do
        space=$(pair_namespace "$node")
        ip netns add "$space"
        ip link add net0 netns "$space" type veth peer name "to-$node" netns "$(pair_namespace switch)"
        pair_exec "$node" ip link set dev lo up
        pair_exec "$node" ip address add "$(pair_address "$node")/24" dev net0
        pair_exec "$node" ip link set dev net0 up
        pair_exec switch ip link set dev "to-$node" master bridge up
        [ "$node" != c ] || continue
        mkdir -p "$pair_dir/$node"
        : >"$pair_dir/$node/ends"
    done
    for node in a b; do
        for n in $(seq "$2"); do truncate -s "$3" "$pair_dir/$node/drive-$n.img"; done
        cat >"$pair_dir/$node/tangelo.toml" <<TOML
state_dir = "state"
memory = "512MiB"

[listen]
iscsi = ["$(pair_address $node):3260"]

[api]
socket = "$(pair_socket $node)"

[drives]
paths = ["drive-*.img"]

[cores]
count = 1
TOML
    done
    echo 'state_dir = "state"' >"$pair_dir/w/tangelo.toml"
}
# The kernel's limit for the path of a Unix socket is short.
pair_socket() { echo "/tmp/tangelo-$$-$1.sock"; }
# pair_program NODE: what is installed there, if that is not the program of all.
pair_program() { if [ -x "$pair_dir/$1/tangelo" ]; then echo "$pair_dir/$1/tangelo"; else echo "$tangelo_program"; fi; }
pair_command() {
    local node=$1
    shift
    "$(pair_program "$node")" --socket "$(pair_socket "$node")" "$@"
}

# Ctrl-C in the terminal is for the script, so everything has a session of its own. The process that is started is the program itself.
pair_start_member() {
    local dir=$pair_dir/$1
    (exec ip netns exec "$(pair_namespace "$1")" setsid "$(pair_program "$1")" register serve --config "$dir/tangelo.toml" >>"$dir/register.log" 2>&1 </dev/null) &
    echo $! >"$dir/member"
    disown $!
}
# A daemon, started again as its unit would, until it ends in order.
pair_start() {
    local dir=$pair_dir/$1
    rm -f "$dir/hold"
    (
        trap - EXIT INT TERM
        set +e
        while true; do
            (exec ip netns exec "$(pair_namespace "$1")" setsid "$(pair_program "$1")" serve --config "$dir/tangelo.toml" >>"$dir/tangelo.log" 2>&1 </dev/null) &
            echo $! >"$dir/pid"
            wait $! 2>/dev/null
            status=$?
            echo "ended $status" >>"$dir/ends"
            [ $status -ne 0 ] || break
            sleep 0.05
            while [ -e "$dir/hold" ]; do sleep 0.05; done
        done
    ) 2>/dev/null &
    echo $! >"$dir/keeper"
    disown $!
}
pair_signal() { kill "-$2" "$(cat "$pair_dir/$1/pid")"; }
pair_kill() { pair_signal "$1" KILL; }
# It is not started again for now, and then it is.
pair_hold() { touch "$pair_dir/$1/hold"; }
pair_release() { rm -f "$pair_dir/$1/hold"; }
# etcd ends with its supervisor.
pair_kill_member() { kill -KILL "$(cat "$pair_dir/$1/member")"; }

# pair_volatile NODE: from now on its drives lose a random part of what was not durable, when the power is cut (cargo xtask helper
# volatile-drives). To be called while its daemon does not run. Their names stay.
pair_volatile() {
    local dir=$pair_dir/$1 drive
    mkdir "$dir/durable" "$dir/drives"
    mv "$dir"/drive-*.img "$dir/durable"
    (exec setsid "$xtask_program" helper volatile-drives "$dir/durable" "$dir/drives" --seed $RANDOM >>"$dir/volatile.log" 2>&1 </dev/null) &
    echo $! >"$dir/volatile"
    disown $!
    pair_within 10 test -e "$dir/drives/.power" || { cat "$dir/volatile.log"; return 1; }
    for drive in "$dir"/durable/*; do ln -s "drives/${drive##*/}" "$dir/${drive##*/}"; done
}
# pair_power_off NODE: its drives answer nothing more, its network is silent, and then daemon and member are gone. pair_power_on NODE: its drives
# have lost something, and it starts again.
pair_power_off() {
    pair_hold "$1"
    echo off >"$pair_dir/$1/drives/.power" || return 1
    pair_exec "$1" ip link set dev net0 down
    pair_kill_member "$1"
    pair_kill "$1"
}
pair_power_on() {
    echo on >"$pair_dir/$1/drives/.power" || return 1
    pair_exec "$1" ip link set dev net0 up
    pair_start_member "$1"
    pair_release "$1"
}
# pair_power NODE FACT: what its drives have seen so far: cuts, kept, dropped, durable_writes, ...
pair_power() { jq ".$2" "$pair_dir/$1/drives/.power"; }

# Its server is gone: daemon, member of etcd, and what would start them again.
pair_lose() {
    local file
    for file in keeper pid member; do kill -KILL "$(cat "$pair_dir/$1/$file")"; done
}

# pair_cut NODE NODE: each drops what is for the other, and nobody is told. pair_heal ends that.
pair_cut() {
    pair_exec "$1" ip route add blackhole "$(pair_address "$2")/32"
    pair_exec "$2" ip route add blackhole "$(pair_address "$1")/32"
}
pair_heal() {
    pair_exec "$1" ip route del blackhole "$(pair_address "$2")/32"
    pair_exec "$2" ip route del blackhole "$(pair_address "$1")/32"
}

# pair_within SECONDS COMMAND...: it comes true.
pair_within() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -ge $deadline ]; then
            echo "not in time: $*"
            return 1
        fi
        sleep 0.1
    done
}
pair_status() { { pair_command "$1" pair status -o json 2>/dev/null || [ $? -eq 1 ]; } | jq -r ".pair.$2"; }
pair_is() { [ "$(pair_status "$1" "$2")" = "$3" ]; }

# pair_join [FIRST]: the three commands of an administrator; FIRST (a) founds the pair. `pair_takeover_after`: another time than the usual.
pair_join() {
    local made first=${1:-a} second
    second=$(pair_other "$first")
    made=$(pair_exec "$first" "$(pair_program "$first")" pair create ${pair_takeover_after:+--takeover-after "$pair_takeover_after"} --listen "$(pair_address "$first")" --config "$pair_dir/$first/tangelo.toml") || return 1
    pair_start_member "$first"
    # one that runs alone so far starts again
    [ ! -e "$pair_dir/$first/pid" ] || { pair_signal "$first" TERM && pair_within 30 pair_has_ended "$first"; } || return 1
    pair_start "$first"
    pair_within 30 pair_is "$first" role owner || return 1
    pair_token=$(grep -o "pair join [^ ]*" <<<"$made" | cut -d' ' -f3)
    pair_exec "$second" "$(pair_program "$second")" pair join "$pair_token" --listen "$(pair_address "$second")" --config "$pair_dir/$second/tangelo.toml" || return 1
    pair_start_member "$second"
    pair_start "$second"
    pair_within 30 pair_has_members "$first" 2 || return 1
    pair_exec w "$(pair_program w)" witness join "$(grep -o "witness join [^ ]*" <<<"$made" | cut -d' ' -f3)" --listen "$(pair_address w)" --config "$pair_dir/w/tangelo.toml" || return 1
    pair_start_member w
    pair_within 30 pair_has_members "$first" 3 || return 1
}
pair_has_members() { [ "$(pair_status "$1" 'members | length')" = "$2" ]; }
pair_repeat_token() {
    mkdir -p "$pair_dir/again"
    echo 'state_dir = "state"' >"$pair_dir/again/tangelo.toml"
    pair_exec c "$tangelo_program" pair join "$pair_token" --listen "$(pair_address c)" --config "$pair_dir/again/tangelo.toml"
}

# The head that says so itself.
pair_owner() {
    local node deadline=$((SECONDS + 30))
    while [ $SECONDS -lt $deadline ]; do
        for node in a b; do
            if pair_is $node role owner; then
                echo $node
                return 0
            fi
        done
        sleep 0.1
    done
    echo "no head owns the array" >&2
    return 1
}
pair_both_in_sync() { pair_is a loss_of_the_owner survived && pair_is b loss_of_the_owner survived; }
pair_in_sync() { pair_within "$1" pair_both_in_sync; }

# pair_gap HEAD SINCE: milliseconds from that moment until this head has served hosts after it.
pair_gap() {
    local deadline=$((SECONDS + 30)) line served
    while [ $SECONDS -lt $deadline ]; do
        line=$(grep "serving iSCSI on" "$pair_dir/$1/tangelo.log" | tail -n 1 | cut -d' ' -f1)
        served=$(date -d "$line" +%s%N 2>/dev/null || echo 0)
        if [ "$served" -gt "$2" ]; then
            echo $(((served - $2) / 1000000))
            return 0
        fi
        sleep 0.05
    done
    echo "head $1 does not serve" >&2
    return 1
}
pair_percentiles() {
    sort -n "$1" | awk '{ v[NR] = $1 } function at(p) { i = int((NR - 1) * p / 100) + 1; return v[i] }
        END { if (NR == 0) print "nothing was measured"; else printf("%d times, p50 %d ms, p95 %d ms, longest %d ms\n", NR, at(50), at(95), at(100)) }'
}
pair_report() {
    local node
    for node in a b; do
        echo "-- head $node:"
        pair_command $node pair status || true
        tail -n 12 "$pair_dir/$node/tangelo.log"
    done
}

# pair_equal DRIVE...: both sides hold the same behind the records, block by block. Both heads stand still meanwhile: one that stops in order
# would leave the other one to write alone. They are no use afterwards. A write may be on its way when they are stopped, so it is tried
# a few times.
pair_equal() {
    local try n differ
    for try in 1 2 3; do
        pair_in_sync 60 || return 1
        pair_signal "$(pair_owner)" STOP
        pair_signal "$(pair_other "$(pair_stopped)")" STOP
        differ=false
        for n in "$@"; do cmp -i 16384 "$pair_dir/a/drive-$n.img" "$pair_dir/b/drive-$n.img" || differ=true; done
        $differ || return 0
        pair_signal a CONT
        pair_signal b CONT
        sleep 1
    done
    return 1
}
pair_has_ended() { ! kill -0 "$(cat "$pair_dir/$1/keeper")"; }
pair_stopped() {
    local node
    for node in a b; do
        ! grep -q "^State:.T" "/proc/$(cat "$pair_dir/$node/pid")/status" || echo $node
    done
}

# The daemon that had the drives is gone.
pair_unmount() {
    # whoever waits for a drive without power gets an answer
    ! [ "$(pair_power "$1" power)" = false ] || echo on >"$pair_dir/$1/drives/.power" || true
    umount -l "$pair_dir/$1/drives" || true
    kill -KILL "$(cat "$pair_dir/$1/volatile")" 2>/dev/null || true
}
pair_down() {
    local node file
    for node in a b w; do
        for file in keeper pid member; do
            [ ! -e "$pair_dir/$node/$file" ] || kill -KILL "$(cat "$pair_dir/$node/$file")" 2>/dev/null || true
        done
        rm -f "$(pair_socket $node)"
        [ ! -e "$pair_dir/$node/volatile" ] || pair_unmount $node
    done
    for node in $pair_nodes switch; do
        ip netns pids "$(pair_namespace "$node")" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
        ip netns del "$(pair_namespace "$node")" 2>/dev/null || true
    done
}
