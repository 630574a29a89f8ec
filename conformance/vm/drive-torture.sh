# Part of real-drives: for so many minutes drives of all kinds go, hang, fail, are write-protected and come back, at random, while
# blocks are written and verified, and the daemon is killed now and then. So many at once as status says would be survived: it is
# taken at its word, also in the middle of a repair.

RANDOM=$seed
echo "seed $seed, $minutes minutes"
declare -A harmed=() counts=()
count() { counts[$1]=$((${counts[$1]:-0} + 1)); }
# draw N: a number below N, in $drawn, and not by a subshell, whose numbers do not follow from the seed.
draw() { drawn=$((RANDOM % $1)); }
# pick COUNT SALT: so many of the lines.
pick() { shuf -n "$1" --random-source=<(yes "$2"); }
one_of() { draw $# && picked=${*:drawn+1:1}; }
pause() { draw "$1" && sleep "$drawn"; }
one_in() { draw "$1" && [ "$drawn" = 0 ]; }

# members STATE: of the pool, by name; claim: how many failures would be survived, says status.
members() {
    vm "status | jq -r '.array.pools[0].drives[] | select(.state == \"$1\") | .path'" |
        sed -E 's/.*(NVME|VIRTIO|SCSI|MEGASAS)([0-9])$/\L\1-\2/'
}
claim() { vm "status | jq 'if .summary.data_safe then .array.pools[0].failures_survivable else 0 end'"; }

# harm NAME: one of the things that happen to drives.
harm() {
    local how
    one_of pulled unplugged hangs writes reads sectors protected offline slow
    how=$picked
    draw 64
    case $how-$1 in
    offline-nvme* | offline-virtio*) how=pulled ;;
    esac
    count "$how"
    harmed[$1]=$how
    echo "harm $1: $how"
    case $how in
    pulled) vm "remove $1" ;;
    unplugged) unplug "$1" ;;
    hangs) vm "patient $1" && throttle "$1" 1 0 ;;
    slow) vm "patient $1" && throttle "$1" 0 20 ;;
    writes) inject "$1" '"iotype":"write","errno":5' ;;
    reads) inject "$1" '"iotype":"read","errno":5' ;;
    sectors) inject "$1" "\"iotype\":\"read\",\"errno\":5,\"sector\":$((drawn * 4096))" '"iotype":"write","errno":5,"once":true' ;;
    protected) vm "blockdev --setro $(printf '$(path %s)' "$1")" ;;
    offline) vm "echo offline >/sys/block/$(printf '$(device %s)' "$1")/device/state" ;;
    esac
}
# unharm NAME: it is well again, whatever it holds.
unharm() {
    local how=${harmed[$1]}
    unset "harmed[$1]"
    echo "well again: $1 ($how)"
    case $how in
    pulled) vm "rescan; within is_there $1" ;;
    unplugged) plug "$1" && vm "within is_there $1" ;;
    hangs | slow) throttle "$1" 0 0 ;;
    writes | reads | sectors) heal "$1" || replug "$1" ;;
    protected) vm "blockdev --setrw $(printf '$(path %s)' "$1")" ;;
    offline) vm "echo running >/sys/block/$(printf '$(device %s)' "$1")/device/state" ;;
    esac
    # The kernel may have given up what did not answer.
    vm "is_there $1 || rescan; within is_there $1; wake $1"
}
# strike: as many drives as status says would be survived, or fewer. What it cannot know yet, a drive that is harmed and still
# online, counts.
strike() {
    local victims=() name claim
    claim=$(claim)
    for name in $(members online); do
        if [ -n "${harmed[$name]:-}" ]; then claim=$((claim - 1)); else victims+=("$name"); fi
    done
    echo "claims $claim more"
    [ "$claim" -gt 0 ] || return 0
    draw "$claim"
    mapfile -t victims < <(printf '%s\n' "${victims[@]}" | pick $((1 + drawn)) $RANDOM)
    for name in "${victims[@]}"; do harm "$name" || return 1; done
}
round() {
    strike || return 1
    ! one_in 4 || { count "kill -9" && vm 'daemon_kill; daemon_start' || return 1; }
    pause 12
    # in the middle of the repair of the first
    ! one_in 2 || strike || return 1
    pause 30
    vm client_lives || return 1
    # Half of the time it has to recover before anything comes back.
    ! one_in 2 || vm "becomes 240 '(pool.failures_survivable >= 1) and .summary.data_safe'" || return 1
    local name
    for name in "${!harmed[@]}"; do unharm "$name" || return 1; done
    vm "daemon_lives && client_lives && becomes 300 'survives(2) and pool.repair == null and .summary.data_safe'" || return 1
    vm '
t drive list -o json >/run/list
for path in $(jq -r ".drives[] | select(.state == \"unused\" or .state == \"failed\") | .path" /run/list); do
    [ "$(status | jq "[.array.pools[0].drives[] | select(.state == \"online\")] | length")" -ge 6 ] && { t drive wipe "$path" --yes && t drive spare p "$path" || true; } || t drive add p "$path" --force "$path" || true
done
becomes 300 "survives(2) and pool.repair == null and .summary.data_safe"'
}

# life SECONDS: of one array, whose client reads all of it at the end.
life() {
    local until=$((SECONDS + $1))
    vm "fresh parity-2 nvme-1 virtio-1 scsi-1 megasas-1 nvme-2 virtio-2 -- scsi-2 megasas-2 nvme-3 virtio-3
client_start 100; sleep 5" || return 1
    while [ $SECONDS -lt $until ]; do
        round || return 1
        rounds=$((rounds + 1))
    done
    # What is refused is counted, and how long was waited: hung drives are waited for.
    vm "client_stop 120"
}
rounds=0 lives=0 bad=""
end=$((SECONDS + minutes * 60))
while [ -z "$bad" ] && [ $((end - SECONDS)) -ge 30 ]; do
    left=$((end - SECONDS))
    lives=$((lives + 1))
    life $((left < 660 ? left : 600)) >"$work/life.out" 2>&1 || bad="array $lives, round $rounds"
    grep "blocks checked" "$work/life.out" || true
done
verdict "$rounds rounds with $lives arrays: never refused, whole after each, everything read at the end" eval '
    [ -z "$bad" ] || { echo "$bad"; tail -n 40 "$work/life.out"; vm "status >/run/status; explain; tail -n 20 \$head/log; dmesg | tail -n 30"; false; }'
for what in "${!counts[@]}"; do echo "        ${counts[$what]} times: $what"; done | sort
verdict "something was done" [ $rounds -gt 0 ]
