# Known to every script that real-drives has carried out in the virtual machine: the daemon in it, and what a kernel can do to drives.

head=/run/head
array=$head/tangelo.sock
initiator=iqn.2026-11.org.example:keeper
portal=10.0.2.15:3260

t() { tangelo --socket $array "$@"; }
# A degraded array's status ends with 1.
status() { t status -o json || true; }
seconds() { cut -d ' ' -f 1 /proc/uptime; }

machine_up() {
    modprobe -a nvme virtio_blk virtio_scsi megaraid_sas sd_mod
    # The client is in the machine, too.
    ip link set lo up
    udevadm trigger --subsystem-match=block
    udevadm settle
}

# path NAME: how Tangelo is told of a drive, NAME as in drives.sh, or dm-NAME for one with the device mapper over it;
# device NAME: what the kernel calls it now.
path() {
    local serial
    serial=$(tr -d - <<<"${1^^}")
    case $1 in
    dm-*) echo "/dev/mapper/$1" ;;
    kernel-*) readlink -e "$(path "${1#kernel-}")" ;;
    debug) [ ! -e /sys/bus/pseudo/drivers/scsi_debug ] || echo "/dev/$(basename /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*:*/block/*)" ;;
    nvme-*) echo "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_$serial" ;;
    virtio-*) echo "/dev/disk/by-id/virtio-$serial" ;;
    scsi-* | megasas-*) echo "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_$serial" ;;
    *) echo "/dev/$1" ;;
    esac
}
paths() {
    local name
    for name in "$@"; do path "$name"; done
}
device() { basename "$(readlink -e "$(path "$1")")"; }

# remove NAME: the kernel takes it away, as when it is pulled; rescan: all that can be found is there again.
remove() {
    local of
    of=/sys/block/$(device "$1")/device
    case $1 in
    nvme-*) echo 1 >"$of/device/remove" ;;
    virtio-*) echo 1 >"$of/../remove" ;;
    *) echo 1 >"$of/delete" ;;
    esac
}
rescan() {
    local host size
    echo 1 >/sys/bus/pci/rescan
    for host in /sys/class/scsi_host/host*; do echo "- - -" >"$host/scan"; done
    # A SAS drive that was unplugged stays, with the size 0. Real controllers tell the kernel that it is back, QEMU's does not.
    for size in /sys/block/sd*/size; do
        [ "$(cat "$size")" != 0 ] || echo 1 >"${size%/size}/device/rescan" || true
    done
    # Who wants a drive waits for it; the other drives' links are not to hold it up.
    udevadm settle --timeout=60 || true
}
# patient NAME: the kernel waits ten minutes for an answer.
patient() {
    local of
    of=/sys/block/$(device "$1")
    case $1 in
    nvme-*) echo 600000 >"$of/queue/io_timeout" ;;
    scsi-* | megasas-*) echo 600 >"$of/device/timeout" ;;
    esac
}
is_there() { [ -n "$(device "$1")" ]; }
# wake NAME: the kernel sets a SCSI device offline that has not answered for long, until it is told otherwise.
wake() {
    local state
    state=/sys/block/$(device "$1")/device/state
    case $1 in
    scsi-* | megasas-*) [ "$(cat "$state")" = running ] || echo running >"$state" ;;
    esac
}

# map_over NAME: makes dm-NAME, the whole of the drive; table NAME TABLE...: what dm-NAME does from now on.
map_over() {
    [ -e "/dev/mapper/dm-$1" ] || dmsetup create "dm-$1" --table "$(linear "$1")"
}
linear() { echo "0 $(blockdev --getsz "$(path "$1")") linear $(readlink -e "$(path "$1")") 0"; }
table() {
    local name=$1
    shift
    # What is in flight is not waited for: a drive does not wait, either.
    dmsetup suspend --noflush --nolockfs "dm-$name"
    dmsetup load "dm-$name" --table "$*"
    dmsetup resume "dm-$name"
}
table_of_kind() {
    local name=$1 length old
    length=$(blockdev --getsz "/dev/mapper/dm-$name")
    old=$(readlink -e "$(path "$name")")
    shift
    table "$name" "0 $length $1 $old 0 ${*:2}"
}

daemon_start() {
    [ ! -e $head/log ] || mv $head/log $head/log-before
    setsid tangelo serve --config $head/tangelo.toml >>$head/log 2>&1 </dev/null &
    echo $! >$head/pid
    # One that has ended need not be waited for.
    within eval 'grep -q "serving iSCSI on" $head/log || ! daemon_lives'
    daemon_lives || { cat $head/log; return 1; }
}
daemon_lives() { kill -0 "$(cat $head/pid)" 2>/dev/null; }
daemon_kill() {
    [ -e $head/pid ] || return 0
    kill -9 "$(cat $head/pid)" 2>/dev/null || true
    # Its end closes the drives; one that hangs holds it up.
    within eval "! daemon_lives"
    rm $head/pid
}

clear_processes() {
    [ ! -e /run/client.pid ] || kill -9 "$(cat /run/client.pid)" 2>/dev/null || true
    daemon_kill
}
# clear_machine: nothing of the last case is left.
clear_machine() {
    clear_processes
    dmsetup remove_all --force
    losetup -D 2>/dev/null || true
    rescan
}

# fresh PROTECTION DRIVE... [-- SPARE...]: an array of its own on drives that are blank, with a volume for the client.
fresh() {
    local protection=$1 name drives=() spares=()
    shift
    for name in "$@"; do
        case $name in
        --) spares=(--) ;;
        *) if [ ${#spares[@]} -gt 0 ]; then spares+=("$(path "$name")"); else drives+=("$(path "$name")"); fi ;;
        esac
    done
    clear_processes
    rm -rf $head
    mkdir -p $head
    for name in "${drives[@]}" "${spares[@]:1}"; do blank "$name"; done
    cat >$head/tangelo.toml <<TOML
state_dir = "$head/state"
[listen]
iscsi = ["$portal"]
[api]
socket = "$array"
[drives]
paths = [$(printf '"%s", ' "${drives[@]}" "${spares[@]:1}" | sed 's/, $//')]
TOML
    daemon_start
    t pool create p --protection "$protection" "${drives[@]}"
    [ ${#spares[@]} -lt 2 ] || t drive spare p "${spares[@]:1}"
    t volume create v --pool p --size 64MiB
    t host create h --iqn $initiator
    t map v h --lun 1
    dmesg --clear
}
blank() {
    # These are made anew for each array; and a thin one would fill its pool.
    case $1 in /dev/mapper/dm-thin | /dev/loop* | /dev/nullb* | "$(path debug)") return 0 ;; esac
    local _ of
    # One that came back this moment may not take anything yet.
    for _ in $(seq 10); do
        # What is discarded reads as zeros with QEMU, and takes no room below it; what is written as zeros does.
        blkdiscard -f "$1" 2>/dev/null || dd if=/dev/zero of="$1" bs=1M oflag=direct status=none || true
        [ "$(head -c 1048576 "$1" | tr -d '\0' | wc -c)" != 0 ] || return 0
        sleep 2
    done
    of=/sys/block/$(basename "$(readlink -e "$1")")
    echo "$1 cannot be blanked: read-only $(cat "$of/ro"), state $(cat "$of/device/state" 2>/dev/null || echo unknown)"
    dmesg | tail -n 5
    return 1
}

# client_start [RATE]: blocks that describe themselves are written and read, so many requests a second, until client_stop, which
# reads all of them. client_works: it has had answers, and goes on having them.
client_start() {
    rm -f /run/client.*
    setsid tangelo bench torture "iscsi://$portal/$(status | jq -r .array.target_name)/1?initiator=$initiator" \
        --seconds 86400 --rate "${1:-30}" --until /run/client.stop >/run/client.out 2>/run/client.err </dev/null &
    echo $! >/run/client.pid
}
client_lives() { kill -0 "$(cat /run/client.pid)" 2>/dev/null || { cat /run/client.out /run/client.err; return 1; }; }
# client_stop [SECONDS [refusals]]: nothing was refused, unless refusals are permitted, and nothing waited for longer.
client_stop() {
    local pause
    touch /run/client.stop
    within eval '! kill -0 "$(cat /run/client.pid)" 2>/dev/null'
    grep "no mismatch" /run/client.out | sed 's/^/        /' || { tail -n 3 /run/client.err; return 1; }
    [ "${2:-}" = refusals ] || grep -q " 0 refused" /run/client.out || { echo "hosts were refused"; return 1; }
    pause=$(sed -n 's/.* \([0-9]*\) ms longest pause.*/\1/p' /run/client.out)
    [ "$pause" -lt $((${1:-10} * slowness * 1000)) ] || { echo "hosts had to wait for $pause ms"; return 1; }
}

# client_stop_refused: some of it was refused, because there was no space.
client_stop_refused() {
    touch /run/client.stop
    within eval '! kill -0 "$(cat /run/client.pid)" 2>/dev/null'
    grep "no mismatch" /run/client.out | sed 's/^/        /' || { tail -n 3 /run/client.err; return 1; }
    grep -vq " 0 refused" /run/client.out || { echo "hosts were not refused"; return 1; }
}

# becomes SECONDS EXPRESSION [NAME]: what status says, as JSON, comes to be so within so many seconds; $path is that of NAME.
becomes() {
    local began now path= limit=$(($1 * slowness))
    [ $# -lt 3 ] || path=$(path "$3")
    began=$(seconds)
    while true; do
        status >/run/status
        now=$(seconds)
        if jq -e --arg path "$path" "$definitions $2" /run/status >/dev/null; then
            awk "BEGIN { printf \"        %s %s: after %.1f s\n\", \"${3:-}\", \"$(tr -d '"\\' <<<"$2")\", $now - $began }"
            return 0
        fi
        awk "BEGIN { exit !($now - $began > $limit) }" || continue
        echo "not within $limit s: $2 ${3:-}"
        explain
        return 1
    done
}
# stays SECONDS EXPRESSION [NAME]: it is so now, and for so many seconds.
stays() {
    local until path=
    [ $# -lt 3 ] || path=$(path "$3")
    until=$(awk "BEGIN { print $(seconds) + $1 }")
    while awk "BEGIN { exit !($(seconds) < $until) }"; do
        status >/run/status
        jq -e --arg path "$path" "$definitions $2" /run/status >/dev/null || { echo "not so: $2 ${3:-}"; explain; return 1; }
        sleep 0.2
    done
}
# latencies: the medians of each drive's last interval with enough operations, reads/writes, in milliseconds.
latencies() {
    status | jq -r 'def ms: if . then . / 1000 | floor else "-" end;
        .array.pools[0].drives | map("\(.path // "" | sub(".*[/_]"; "")) \(.read_latency_us | ms)/\(.write_latency_us | ms)")
        | "        latencies of reads/writes, ms: " + join(", ")' || true
}
explain() {
    latencies
    jq -c '.summary' /run/status
    jq -c '.array.problems[]' /run/status
    jq -c '.array.pools[] | {health, reason, failures_survivable, repair}, (.drives[] | {path, state, errors, note, detail})' /run/status
    t drive list | grep ": " || true
    tail -n 6 $head/log
    dmesg | tail -n 6
}
# Words for what status says.
definitions='
def pool: .array.pools[0];
def drive: pool.drives[] | select(.path == $path);
def state: [drive | .state] | first // "none";
def is($word): state == $word;
# Given up for this reason. A pool that is soon rebuilt has let the drive go before anybody asks; what failed is remembered then.
def given_up($word): is($word) or ([.array.problems[] | select(.code == "drive-given-up" and .about.name == $path and .facts.trouble == $word)] | length) > 0;
def errors: drive | .errors | .read + .write + .checksum;
def listed: [.array.drives[]? | select(.path == $path)] | first;
def survives($n): pool.failures_survivable == $n;
def whole: survives(2) and pool.repair == null and ([pool.drives[] | select(.state != "online")] | length) == 0 and .summary.data_safe;
def whole($drives): whole and (pool.drives | length) == $drives;
'
