# Part of real-drives: what is played, and what status must say of it.
#
# A case is a function, which gets the kind of the drive that suffers; it has a fresh array of its own. A step is a script in the machine.
# What is measured, its lines that begin with blanks, is shown.

title=""
broken=false
# play NAME FUNCTION [WORD...]
play() {
    [ $form != list ] || { echo "$1"; return 0; }
    [[ $1 =~ $only ]] || return 0
    title=$1 broken=false
    echo "-- $title"
    vm clear_machine >/dev/null || broken=true
    "${@:2}"
    $broken && vm 'echo "its log:"; tail -n 15 $head/log' || true
    undo_all >/dev/null || { echo "the machine cannot be put in order again after: $title" >&2; exit 1; }
}
# cannot NAME REASON: what would be played, and why it is not.
cannot() {
    [[ $1 =~ $only ]] || return 0
    echo "not played: $1: $2"
}
# step NAME SCRIPT: after one that failed, the others of this case are not played, and none of them counts as passed.
step() {
    if $broken; then
        echo "        left out: $1"
        return 0
    fi
    local before=$failed began=$SECONDS
    verdict "$1" vm "$2"
    if [ "$failed" -gt "$before" ]; then broken=true; else sed -n '/^        /p' "$work/step.out"; fi
    [ -z "${TIMES:-}" ] || echo "        $((SECONDS - began)) s"
}
# qmp_step NAME COMMAND...: the same for what QEMU does.
qmp_step() {
    $broken && return 0
    local before=$failed
    verdict "$1" "${@:2}"
    [ "$failed" -eq "$before" ] || broken=true
}

# others KIND COUNT: drives of other kinds, which stay well.
others() {
    local kind n=0
    for n in 1 2 3; do
        for kind in "${drive_kinds[@]}"; do [ "$kind" = "$1" ] || echo "$kind-$n"; done
    done | head -n "$2" | tr '\n' ' '
}

# A drive is gone: MISSING in ten seconds, hosts served, the spare in its place, and safe for any two more.
lost_and_replaced='
becomes 10 "given_up(\"missing\")" $victim
client_lives
becomes 300 "is(\"none\") and whole(5)" $victim
[ "$(status | jq "[.array.pools[0].drives[] | select(.errors.checksum > 0)] | length")" = 0 ]
'
# It is back, out of date: said, left alone, taken as a new one.
back_and_taken='
within is_there $victim
back() { t drive list | grep "^ *$(path $victim): refused: pool p goes on without it"; }
within back
stays 3 "is(\"none\") and whole(5)" $victim
t drive add p $(path $victim) --force $(path $victim)
becomes 300 "is(\"online\") and whole(6)" $victim
'

# pulled HOW KIND...: a drive of each kind is taken out, one after the other, of an array that is at work.
pulled() {
    local how=$1 kind
    shift
    for kind in "$@"; do
        play "$kind: pulled by $how, and back" pulled_one "$how" "$kind"
    done
}
pulled_one() {
    local kind=$2 lost=$lost_and_replaced
    step "an array with a spare" "fresh parity-2 $kind-1 $(others "$kind" 4) -- $kind-2; client_start"
    case $1 in
    the\ kernel)
        step "MISSING, spare joins, data safe" "victim=$kind-1; remove \$victim$lost_and_replaced"
        step "back: refused, then taken as new" "victim=$kind-1; rescan$back_and_taken"
        ;;
    QEMU)
        # For a moment a SAS controller answers with plain errors (DID_BAD_TARGET, EIO) for a drive that is not there any more.
        [ "$kind" = megasas ] && lost=${lost_and_replaced/'given_up(\"missing\")'/'given_up(\"missing\") or given_up(\"failed\")'}
        qmp_step "unplugged" unplug "$kind-1"
        step "MISSING, spare joins, data safe" "victim=$kind-1$lost"
        qmp_step "plugged in" plug "$kind-1"
        step "back: refused, then taken as new" "victim=$kind-1; rescan$back_and_taken"
        ;;
    esac
    step "everything acknowledged is read" client_stop
}

# idle KIND: nothing is asked of the array.
idle() {
    local kind=$1
    step "an array with a spare" "fresh parity-2 $kind-1 $(others "$kind" 4) -- $kind-2; client_start; sleep 3; client_stop"
    step "MISSING while nothing is asked, and replaced" "victim=$kind-1; remove \$victim
becomes 10 'is(\"missing\") or is(\"none\")' \$victim
becomes 60 'is(\"none\") and whole(5)' \$victim"
    step "it returns" "rescan; within is_there $kind-1"
}

# fails_by KIND OPERATION: QEMU fails all operations of this kind, with what its controller makes of EIO.
fails_by() {
    local kind=$1 operation=$2
    step "an array with a spare" "fresh parity-2 $kind-1 $(others "$kind" 4) -- $kind-2; client_start; sleep 2"
    qmp_step "every $operation fails" inject "$kind-1" "\"iotype\":\"$operation\",\"errno\":5"
    step "FAILED, spare joins, data safe" "becomes 60 'given_up(\"failed\")' $kind-1
client_lives
becomes 90 'is(\"none\") and whole(5)' $kind-1"
    if [ "$operation" = flush ]; then qmp_step "well again" replug "$kind-1"; else qmp_step "well again" heal "$kind-1"; fi
    step "it stays out" "stays 12 'is(\"none\") and whole(5)' $kind-1"
    step "everything acknowledged is read" client_stop
}

# sectors KIND: some places cannot be read; they can be written.
sectors() {
    local kind=$1 n rules=()
    # 24 places in the first 64 MiB
    for n in $(seq 24); do rules+=("\"iotype\":\"read\",\"errno\":5,\"sector\":$((n * 5464))"); done
    step "an array with a spare" "fresh parity-2 $kind-1 $(others "$kind" 4) -- $kind-2; client_start 30; sleep 10"
    qmp_step "places that cannot be read" inject "$kind-1" "${rules[@]}"
    step "a scrub meets them, the drive stays or is replaced, data safe" "t pool set p --repair-share 90; t pool scrub p
becomes 300 'pool.scrub.running == false and pool.scrub.last.complete'
client_lives
becomes 60 whole
becomes 1 'is(\"none\") or (drive | .errors.read > 0)' $kind-1
jq -r '\"        errors: \\([.array.pools[0].drives[].errors.read]), scrub: \\(.array.pools[0].scrub.last)\"' /run/status"
    step "everything acknowledged is read" client_stop
    qmp_step "well again" heal "$kind-1"
}

# hangs KIND: no answer to anything, for 60 s.
hangs() {
    local kind=$1
    step "an array with a spare" "fresh parity-2 $kind-1 $(others "$kind" 4) -- $kind-2; patient $kind-1; client_start; sleep 2"
    qmp_step "it hangs" throttle "$kind-1" 1 0
    step "MISSING, spare joins, data safe" "becomes 25 'given_up(\"missing\")' $kind-1
client_lives
becomes 90 'is(\"none\") and whole(5)' $kind-1"
    step "no other drive is blamed" "sleep 30; becomes 1 'whole(5)'; [ \$(jq '[.array.pools[0].drives[].errors | .read + .write + .checksum] | add' /run/status) = 0 ]"
    qmp_step "it answers" throttle "$kind-1" 0 0
    step "it stays out, and is taken as new" "victim=$kind-1; [ -e \$(path \$victim) ] || rescan$back_and_taken"
    step "everything acknowledged is read" "client_stop 25"
}

# slow KIND: 5 operations a second. A drive is slow at 16 times its siblings' median, which is 5 to 50 ms in this machine, by what else
# its processor has to do. With 20 a second, about as many as the client causes, the drive takes 100 ms, and the machine decides. With 5
# everything that the client has asked for waits in the drive's queue, for seconds.
slow() {
    local kind=$1
    step "an array with a spare" "fresh parity-2 $kind-1 $(others "$kind" 4) -- $kind-2; patient $kind-1; client_start; sleep 2"
    qmp_step "it is slow" throttle "$kind-1" 0 5
    step "emptied, the spare in its place, data safe" "sleep 30; latencies
becomes 180 'is(\"draining\") or is(\"none\")' $kind-1
latencies
client_lives
becomes 180 'is(\"none\") and whole(5)' $kind-1"
    qmp_step "it is fast" throttle "$kind-1" 0 0
    step "everything acknowledged is read" "client_stop 20"
}

# protected KIND: write-protected while it is used.
protected() {
    local kind=$1
    step "an array with a spare" "fresh parity-2 $kind-1 $(others "$kind" 4) -- $kind-2; client_start; sleep 2"
    step "write-protected: taken out, spare joins, data safe" "blockdev --setro \$(path $kind-1)
becomes 60 'given_up(\"failed\") or given_up(\"missing\")' $kind-1
client_lives
becomes 90 'is(\"none\") and whole(5)' $kind-1"
    step "writable again, and taken as new" "victim=$kind-1; blockdev --setrw \$(path $kind-1)$back_and_taken"
    step "everything acknowledged is read" client_stop
}

# shrinks KIND: it has half its size.
shrinks() {
    local kind=$1
    step "an array with a spare" "fresh parity-2 $kind-1 $(others "$kind" 4) -- $kind-2; client_start; sleep 2"
    qmp_step "it has half its size" resize "$kind-1" $((drive_bytes / 2))
    step "the kernel knows" "for f in /sys/block/\$(device $kind-1)/device/rescan /sys/block/\$(device $kind-1)/device/rescan_controller; do [ ! -e \$f ] || echo 1 >\$f; done
small() { [ \"\$(cat /sys/block/\$(device $kind-1)/size)\" = $((drive_bytes / 1024)) ]; }
within small"
    step "taken out, spare joins, data safe" "becomes 15 'is(\"failed\") or is(\"missing\") or is(\"none\")' $kind-1
client_lives
becomes 60 'is(\"none\") and whole(5)' $kind-1"
    step "everything acknowledged is read" client_stop
    qmp_step "it has its size again" resize "$kind-1" "$drive_bytes"
    step "the kernel knows that, too" "for f in /sys/block/\$(device $kind-1)/device/rescan /sys/block/\$(device $kind-1)/device/rescan_controller; do [ ! -e \$f ] || echo 1 >\$f; done"
}

short_cases() {
    play "a drive of each kind goes, and they come back" short_life
}
# One array through it all: each time as many go as status says would be survived.
short_life() {
    step "an array of every kind, with three spares" "map_over nvme-1
fresh parity-2 dm-nvme-1 nvme-2 virtio-1 scsi-1 megasas-1 -- nvme-3 virtio-2 scsi-2; client_start; sleep 2; becomes 5 'whole(5)'"
    step "nvme pulled by the kernel: MISSING, spare joins, data safe" "victim=nvme-2; remove nvme-2$lost_and_replaced"
    qmp_step "virtio unplugged" unplug virtio-1
    step "MISSING, spare joins, data safe" "victim=virtio-1$lost_and_replaced"
    step "scsi pulled, and only errors from another: FAILED, MISSING, spare joins, data safe" "remove scsi-1
table nvme-1 0 \$(blockdev --getsz \$(path nvme-1)) error
becomes 10 'is(\"missing\") and survives(0)' scsi-1
becomes 30 'is(\"failed\")' dm-nvme-1
client_lives
becomes 300 'whole(4)'"
    qmp_step "virtio plugged in" plug virtio-1
    step "they are back: refused, then taken as new" "rescan
table nvme-1 \"\$(linear nvme-1)\"
for victim in nvme-2 virtio-1 scsi-1 dm-nvme-1; do
    within is_there \$victim
    back() { t drive list | grep \"^ *\$(path \$victim): refused: pool p goes on without it\"; }
    within back
    becomes 1 'is(\"none\") and pool.health == \"healthy\"' \$victim
    t drive add p \$(path \$victim) --force \$(path \$victim)
done
becomes 300 'whole(8)'"
    step "everything acknowledged is read" client_stop
}
long_cases() {
    pulled "the kernel" "${drive_kinds[@]}"
    pulled QEMU "${drive_kinds[@]}"
    local kind
    for kind in "${drive_kinds[@]}"; do
        play "$kind: pulled from an idle array" idle "$kind"
        play "$kind: every write fails" fails_by "$kind" write
        play "$kind: every read fails" fails_by "$kind" read
        case $kind in
        nvme) cannot "nvme: every flush fails" "QEMU's NVMe controller takes FUA and does not pass it on, so that nothing is flushed" ;;
        megasas) cannot "megasas: every flush fails" "Linux's driver answers flushes itself: they are the controller's business, whose drives are logical" ;;
        *) play "$kind: every flush fails" fails_by "$kind" flush ;;
        esac
        play "$kind: places that cannot be read" sectors "$kind"
        play "$kind: hangs" hangs "$kind"
        play "$kind: slow" slow "$kind"
        play "$kind: write-protected" protected "$kind"
        if [ "$kind" = nvme ]; then
            cannot "nvme: becomes smaller" "QEMU's NVMe controller holds its content at one size; dm: becomes smaller plays it"
        else
            play "$kind: becomes smaller" shrinks "$kind"
        fi
        play "$kind: away for a while, nothing to rebuild on" away "$kind"
    done
    kernel_cases
    cannot "dm-dust" "Debian's kernel has no such module; places that cannot be read are played by QEMU's blkdebug"
    cannot "null_blk: injected time-outs" "Debian's kernel has no CONFIG_FAULT_INJECTION; time-outs are played by scsi_debug and by QEMU"
}
list_cases() { long_cases; }
