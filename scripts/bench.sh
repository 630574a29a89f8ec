# Sourced by the benchmarks, after daemon.sh: room and drives.

# need_room DIRECTORY MIB HOW: ends the script where there is less, of memory, too, for what lies there; HOW says what helps.
need_room() {
    local available free
    free=$(df --output=avail -B1M "$1" | tail -n 1)
    if [ "$(df --output=fstype "$1" | tail -n 1)" = tmpfs ]; then
        available=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
        free=$((free < available ? free : available))
    fi
    [ "$free" -gt "$2" ] || {
        echo "bench: $2 MiB are needed in $1, $free are free; $3" >&2
        exit 1
    }
}

# six_drives DIRECTORY MIB: written once, not just set aside: pages that nobody has touched yet cost a fault each, and that would
# be measured.
six_drives() {
    local n
    mkdir -p "$1"
    for n in 1 2 3 4 5 6; do dd if=/dev/zero of="$1/drive-$n" bs=1M count="$2" status=none; done
}
