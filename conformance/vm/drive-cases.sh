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
    "${@:2}"
    $broken && vm 'echo "its log:"; tail -n 15 $head/log' || true
}
# step NAME SCRIPT: after one that failed, the others of this case are not played, and none of them counts as passed.
step() {
    if $broken; then
        echo "        left out: $1"
        return 0
    fi
    local before=$failed
    verdict "$title: $1" vm "$2"
    if [ "$failed" -gt "$before" ]; then broken=true; else sed -n '/^        /p' "$work/step.out"; fi
}
# qmp_step NAME COMMAND...: the same for what QEMU does.
qmp_step() {
    $broken && return 0
    local before=$failed
    verdict "$title: $1" "${@:2}"
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
becomes 10 "is(\"missing\")" $victim
client_lives
becomes 60 "is(\"none\") and whole(5)" $victim
[ "$(status | jq "[.array.pools[0].drives[] | select(.errors.checksum > 0)] | length")" = 0 ]
'
# It is back, out of date: said, left alone, taken as a new one.
back_and_taken='
within is_there $victim
back() { t drive list | grep "^ *$(path $victim): refused: pool p goes on without it"; }
within back
stays 3 "is(\"none\") and whole(5)" $victim
t drive add p $(path $victim) --force $(path $victim)
becomes 60 "is(\"online\") and whole(6)" $victim
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
    local kind=$2
    step "an array with a spare" "fresh parity-2 $kind-1 $(others "$kind" 4) -- $kind-2; client_start"
    case $1 in
    the\ kernel)
        step "MISSING, spare joins, data safe" "victim=$kind-1; remove \$victim$lost_and_replaced"
        step "back: refused, then taken as new" "victim=$kind-1; rescan$back_and_taken"
        ;;
    QEMU)
        qmp_step "unplugged" unplug "$kind-1"
        step "MISSING, spare joins, data safe" "victim=$kind-1$lost_and_replaced"
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

short_cases() {
    pulled "the kernel" nvme virtio scsi
}
long_cases() {
    pulled "the kernel" "${drive_kinds[@]}"
    pulled QEMU "${drive_kinds[@]}"
    local kind
    for kind in "${drive_kinds[@]}"; do play "$kind: pulled from an idle array" idle "$kind"; done
}
list_cases() { long_cases; }
