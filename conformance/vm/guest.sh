# Known to every script that the virtual machine carries out: see vm.sh.

# Longer than anything takes in an emulation on a busy machine.
patience_seconds=300

# disk IFACE ADDRESS LUN: the block device of a logical unit, by the session it is seen through; waits for it.
disk() { unit block /dev "$@"; }
# generic IFACE ADDRESS LUN: the same unit's sg device, which nobody but us opens.
generic() { unit scsi_generic /dev "$@"; }

# The kernel's number of a LUN: from 256 on it comes in flat space addressing (SAM-5 §4.7.7.3), whose bits are counted too.
kernel_lun() {
    if [ "$1" -gt 255 ]; then echo $(($1 + 16384)); else echo "$1"; fi
}

unit() {
    local kind=$1 in=$2 session deadline=$((SECONDS + patience_seconds)) found lun
    lun=$(kernel_lun "$5")
    while true; do
        session=$(session_of "$3" "$4") &&
            for found in /sys/class/iscsi_session/"$session"/device/target*/*:*:*:"$lun"/"$kind"/*; do
                [ -e "$found" ] && [ -e "$in/${found##*/}" ] && {
                    echo "$in/${found##*/}"
                    return 0
                }
            done
        [ $SECONDS -lt $deadline ] || {
            echo "no unit $5 of $3 by $4" >&2
            return 1
        }
        sleep 0.2
    done
}

# session_of IFACE ADDRESS: as sysfs calls it, session3.
session_of() {
    local session connection
    for session in /sys/class/iscsi_session/session*; do
        [ -e "$session/ifacename" ] && [ "$(cat "$session/ifacename")" = "$1" ] || continue
        for connection in "$session"/device/connection*/iscsi_connection/connection*; do
            [ "$(cat "$connection/persistent_address" 2>/dev/null)" = "$2" ] && {
                echo "${session##*/}"
                return 0
            }
        done
    done
    return 1
}

# within COMMAND...: again and again until it succeeds, or patience ends.
within() {
    local deadline=$((SECONDS + patience_seconds))
    until "$@"; do
        [ $SECONDS -lt $deadline ] || {
            echo "not in time: $*"
            return 1
        }
        sleep 0.5
    done
}

# says TEXT COMMAND...: must succeed, and say TEXT.
says() {
    local text=$1 output
    shift
    output=$("$@" 2>&1) || {
        echo "it failed ($?); it said: $output"
        return 1
    }
    grep -qiF -- "$text" <<<"$output" || {
        echo "it did not say \"$text\"; it said: $output"
        return 1
    }
}

# fails STATUS COMMAND...: must fail with this exit status: sg tools have one for every kind of answer.
fails() {
    local wanted=$1 output status=0
    shift
    output=$("$@" 2>&1) || status=$?
    [ "$status" -eq "$wanted" ] || {
        echo "exit status $status, not $wanted; it said: $output"
        return 1
    }
}

# access DEVICE: whether one block can be read and be written.
access() {
    local read=0 write=0
    # A unit attention of an earlier change is no answer to this question.
    sg_turs "$1" >/dev/null 2>&1 || true
    sg_raw -r 512 "$1" 28 00 00 00 00 00 00 00 01 00 >/dev/null 2>&1 || read=$?
    sg_raw -s 512 -i /dev/zero "$1" 2a 00 00 00 00 00 00 00 01 00 >/dev/null 2>&1 || write=$?
    echo "read $(outcome $read), write $(outcome $write)"
}
outcome() {
    case $1 in 0) echo yes ;; 24) echo conflict ;; *) echo "status $1" ;; esac
}

# states DEVICE: the target port groups and their access states, as numbers.
states() {
    sg_rtpg "$1" | sed -n 's/.*target port group id : \(0x[0-9a-f]*\).*/\1/p; s/.*asymmetric access state : \(0x[0-9a-f]*\).*/=\1 /p' |
        tr -d '\n'
}

# holds DEVICE BLOCK COUNT FILE: what is read by SCSI commands is the file; zeros DEVICE BLOCK COUNT: is zero.
holds() {
    rm -f /tmp/read
    sg_dd if="$1" bs=512 skip="$2" count="$3" of=/tmp/read 2>/run/holds.out || { cat /run/holds.out; return 1; }
    cmp /tmp/read "$4"
}
zeros() {
    head -c $(($3 * 512)) /dev/zero >/tmp/zeros
    holds "$1" "$2" "$3" /tmp/zeros
}

# same A B
same() {
    [ "$1" = "$2" ] || {
        printf 'different:\n%s\n%s\n' "$1" "$2"
        return 1
    }
}

# out ACTION [OPTIONS] DEVICE: PERSISTENT RESERVE OUT.
out() { sg_persist --no-inquiry --out --"$@"; }
# reservation DEVICE: the holder's key and the type in one line, or "none"; keys DEVICE: the sorted keys.
reservation() {
    sg_persist --no-inquiry --read-reservation "$1" | tr '\n' ' ' |
        sed -n 's/.*NO reservation held.*/none/p; s/.*Key[=:] *\(0x[0-9a-f]*\).*type: *\(.*[a-z]\) *$/\1 \2/p'
}
keys() {
    sg_persist --no-inquiry --read-keys "$1" | sed -n 's/^ *\(0x[0-9a-f]*\)$/\1/p' | sort | tr '\n' ' '
}

# A load that knows what it wrote: 40 files of 1 MiB in a directory, written anew again and again, each followed by
# fsync. What is noted was acknowledged.
content() {
    echo "file $1"
    head -c "$(($1 * 61 % 60000 + 1000000))" /tmp/noise | tail -c 1000000
}
load_start() {
    [ -e /tmp/noise ] || head -c 1200000 /dev/urandom >/tmp/noise
    rm -f /run/stop /run/load.*
    setsid bash -c 'load_run "$1"' load "$1" >/run/load.out 2>&1 </dev/null &
    within test -s /run/load.done
}
load_run() {
    local n=0
    echo $$ >/run/load.pid
    while [ ! -e /run/stop ]; do
        content $n | dd "of=$1/file-$((n % 40))" bs=256k iflag=fullblock conv=fsync status=none || {
            echo "file $n was not written" >/run/load.errors
            return
        }
        echo "$((n % 40)) $n $(cut -d ' ' -f 1 /proc/uptime)" >>/run/load.done
        n=$((n + 1))
    done
}
# load_goes_on: something is written from now on.
load_goes_on() {
    local before
    before=$(wc -l </run/load.done)
    within eval '[ "$(wc -l </run/load.done)" -gt '$((before + 1))' ] || [ -e /run/load.errors ]'
    [ ! -e /run/load.errors ] || { cat /run/load.errors /run/load.out; return 1; }
}
load_stop() {
    touch /run/stop
    within eval '! kill -0 "$(cat /run/load.pid)" 2>/dev/null'
    awk 'NR > 1 && $3 - last > longest { longest = $3 - last } { last = $3 }
        END { printf "%d files written, the longest wait %.1f s\n", NR, longest }' /run/load.done >/run/load.summary
    cat /run/load.summary
    [ ! -e /run/load.errors ] || { cat /run/load.errors /run/load.out; return 1; }
}
# load_check DIRECTORY: reads all that was acknowledged; not from memory if it was mounted anew.
load_check() {
    awk '{ newest[$1] = $2 } END { for (slot in newest) print slot, newest[slot] }' /run/load.done >/run/load.newest
    [ -s /run/load.newest ]
    while read -r slot n; do
        content "$n" | cmp - "$1/file-$slot" || return 1
    done </run/load.newest
}
export -f load_run content

# kernel_is_content: no error of a file system since dmesg was cleared, nor of a block device of this kind.
kernel_is_content() {
    ! dmesg | grep -E "EXT4-fs (error|warning)|XFS.*(rror|orrupt|hutdown)|Remounting|(critical .*|I/O) error,? .*dev $1"
}

[ ! -e /run/values ] || . /run/values
