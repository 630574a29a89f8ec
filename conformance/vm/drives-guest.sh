# Known to every script that real-drives has carried out in the virtual machine: the daemon in it, and what a kernel can do to drives.

head=/run/head
array=$head/tangelo.sock
initiator=iqn.2026-11.org.example:keeper
portal=10.0.2.15:3260

t() { tangelo --socket $array "$@"; }
# A degraded array's status ends with 1.
status() { t status -o json || true; }

# path NAME: how Tangelo is told of a drive, NAME as in drives.sh; device NAME: what the kernel calls it now.
path() {
    local serial
    serial=$(tr -d - <<<"${1^^}")
    case $1 in
    nvme-*) echo "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_$serial" ;;
    virtio-*) echo "/dev/disk/by-id/virtio-$serial" ;;
    scsi-* | megasas-*) echo "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_$serial" ;;
    *) echo "/dev/mapper/$1" ;;
    esac
}
device() { basename "$(readlink -e "$(path "$1")")"; }

# remove NAME: the kernel takes it away, as when it is pulled; rescan: all that can be found is there again.
remove() {
    local of=/sys/block/$(device "$1")/device
    case $1 in
    nvme-*) echo 1 >"$of/device/remove" ;;
    virtio-*) echo 1 >"$of/../remove" ;;
    *) echo 1 >"$of/delete" ;;
    esac
}
rescan() {
    local host
    echo 1 >/sys/bus/pci/rescan
    for host in /sys/class/scsi_host/host*; do echo "- - -" >"$host/scan"; done
    udevadm settle
}

daemon_start() {
    setsid tangelo serve --config $head/tangelo.toml >>$head/log 2>&1 </dev/null &
    echo $! >$head/pid
    within grep -q "serving iSCSI on" $head/log
}
# make_pool PROTECTION DRIVE...: an array with a volume for the client.
make_pool() {
    local protection=$1
    shift
    t pool create p --protection "$protection" "$@"
    t volume create v --pool p --size 64MiB
    t host create h --iqn $initiator
    t map v h --lun 1
}

# client_start: blocks that describe themselves are written and read until client_stop, which reads all of them.
client_start() {
    rm -f /run/client.*
    setsid tangelo bench torture "iscsi://$portal/$(status | jq -r .array.target_name)/1?initiator=$initiator" \
        --seconds 86400 --rate "${1:-100}" --until /run/client.stop >/run/client.out 2>/run/client.err </dev/null &
    echo $! >/run/client.pid
}
client_stop() {
    touch /run/client.stop
    within eval '! kill -0 "$(cat /run/client.pid)" 2>/dev/null'
    grep "no mismatch" /run/client.out || { tail -n 3 /run/client.err; return 1; }
    grep -q " 0 refused" /run/client.out || { echo "hosts were refused"; return 1; }
}

# becomes SECONDS EXPRESSION: status, as JSON, comes to be so within so many seconds; says after how many.
becomes() {
    local began now
    began=$(cut -d ' ' -f 1 /proc/uptime)
    while true; do
        status >/run/status
        now=$(cut -d ' ' -f 1 /proc/uptime)
        if jq -e "$definitions $2" /run/status >/dev/null; then
            awk "BEGIN { printf \"        %s: after %.1f s\n\", \"$(tr -d '"\\' <<<"$2")\", $now - $began }"
            return 0
        fi
        awk "BEGIN { exit !($now - $began > $1) }" || continue
        echo "not within $1 s: $2"
        jq -c '.array.pools[] | {health, reason, failures_survivable, repair, drives: [.drives[] | {path, state, errors, note, detail}]}' /run/status
        t status || true
        dmesg | tail -n 8
        return 1
    done
}
# Words for what status says.
definitions='
def pool: .array.pools[0];
def drive($path): pool.drives[] | select(.path == $path);
def state($path): [drive($path) | .state] | first // "none";
def survives($n): pool.failures_survivable == $n;
def whole($n): survives($n) and pool.repair == null and ([pool.drives[] | select(.state != "online")] | length) == 0;
'
