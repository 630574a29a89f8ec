# Part of real-drives: what Linux itself can do to a drive, by the device mapper, loop devices, scsi_debug, null_blk and sysfs.

# on_dm NAME SCRIPT...: an array whose first drive has the device mapper over it.
on_dm="map_over nvme-1; fresh parity-2 dm-nvme-1 virtio-1 scsi-1 megasas-1 virtio-2 -- nvme-2; client_start"
gone_well='
client_lives
becomes 300 "is(\"none\") and whole(5)" $victim
'
# dm NAME EXPECTED [SECONDS] TABLE...: the table is that of a kind with the drive behind it, or `error`.
dm() {
    local expected=$1 within=$2
    shift 2
    step "an array with a spare" "$on_dm; sleep 3"
    if [ "$1" = error ]; then
        step "it begins" "table nvme-1 0 \$(blockdev --getsz \$(path nvme-1)) error"
    else
        step "it begins" "table_of_kind nvme-1 $*"
    fi
    step "taken out, spare joins, data safe" "victim=dm-nvme-1; becomes $within '$expected' \$victim$gone_well"
    step "it ends; the drive stays out" "table nvme-1 \"\$(linear nvme-1)\"; stays 12 'is(\"none\") and whole(5)' dm-nvme-1"
    step "everything acknowledged is read" "client_stop 20"
}
# read_without_two_others SCRIPT: what was mended is as safe as status says.
read_without_two_others() {
    step "two others go, as status permits" "remove virtio-1; remove scsi-1; becomes 60 '(pool.health != \"offline\") and .summary.data_safe'"
    step "everything acknowledged is read" "$1"
    step "they return" "rescan; within is_there virtio-1; within is_there scsi-1"
}
# dm_lies TABLE...: the drive does not say that something is wrong.
dm_lies() {
    step "an array with a spare" "$on_dm 100; sleep 3"
    step "it begins" "table_of_kind nvme-1 $*; sleep 10"
    step "it ends; a scrub finds and mends it" "table nvme-1 \"\$(linear nvme-1)\"
t pool set p --repair-share 90; t pool scrub p || true
becomes 300 'pool.scrub.running == false and pool.scrub.last.complete'
jq -r '\"        errors: \\([.array.pools[0].drives[].errors.checksum]), scrub: \\(.array.pools[0].scrub.last)\"' /run/status 2>/dev/null || true
becomes 60 whole"
    read_without_two_others "client_stop 20"
}

suspended() {
    step "an array with a spare" "$on_dm; sleep 3"
    step "it hangs: MISSING, spare joins, data safe" "dmsetup suspend --noflush --nolockfs dm-nvme-1
victim=dm-nvme-1; becomes 25 'given_up(\"missing\")' \$victim$gone_well"
    step "it answers, is refused, and taken as new" "victim=dm-nvme-1; dmsetup resume dm-nvme-1$back_and_taken"
    step "everything acknowledged is read" "client_stop 25"
}
# A hang that is shorter than what a drive is given.
hiccup() {
    step "an array with a spare" "$on_dm; sleep 3"
    step "it hangs for 8 s" "dmsetup suspend --noflush --nolockfs dm-nvme-1; sleep 8; dmsetup resume dm-nvme-1"
    step "it is in service, and no error counted" "stays 5 'is(\"online\") and whole(5) and errors == 0' dm-nvme-1"
    step "everything acknowledged is read" "client_stop 25"
}
dm_shrinks() {
    step "an array with a spare" "$on_dm; sleep 3"
    step "half its size: taken out, spare joins, data safe" "table nvme-1 \"0 \$((\$(blockdev --getsz \$(path nvme-1)) / 2)) linear \$(readlink -e \$(path nvme-1)) 0\"
victim=dm-nvme-1; becomes 15 'is(\"missing\") or is(\"failed\") or is(\"none\")' \$victim$gone_well"
    step "it has its size again" "table nvme-1 \"\$(linear nvme-1)\"; stays 12 'is(\"none\") and whole(5)' dm-nvme-1"
    step "everything acknowledged is read" client_stop
}
dm_grows() {
    step "an array with a spare" "$on_dm 60; sleep 3"
    step "it is larger: nothing happens" "dmsetup suspend --noflush --nolockfs dm-nvme-1
printf '%s\n' \"\$(linear nvme-1)\" \"\$(blockdev --getsz \$(path nvme-1)) 524288 zero\" | dmsetup load dm-nvme-1
dmsetup resume dm-nvme-1; stays 15 'is(\"online\") and whole(5)' dm-nvme-1"
    step "nor over a restart" "daemon_kill; daemon_start; becomes 30 'is(\"online\") and whole(5)' dm-nvme-1"
    step "everything acknowledged is read" "client_stop 60"
}

# thin POLICY: a thin device whose pool another one fills.
thin() {
    local policy=$1 stop=client_stop_refused
    # One that waits refuses, too, when its time-out has passed and new places are written.
    [[ $policy = 2* ]] || stop="client_stop 60 refusals"
    step "an array with a thin device" "
blank \$(path nvme-1); blank \$(path nvme-3)
modprobe dm_thin_pool
echo 20 >/sys/module/dm_thin_pool/parameters/no_space_timeout
dmsetup create thin-meta --table \"0 32768 linear \$(path nvme-3) 0\"
dmsetup create thin-data --table \"0 262144 linear \$(path nvme-1) 0\"
dmsetup create thin-pool --table \"0 262144 thin-pool /dev/mapper/thin-meta /dev/mapper/thin-data 128 0 $policy\"
dmsetup message thin-pool 0 'create_thin 0'
dmsetup message thin-pool 0 'create_thin 1'
dmsetup create dm-thin --table '0 2097152 thin /dev/mapper/thin-pool 0'
dmsetup create thin-other --table '0 2097152 thin /dev/mapper/thin-pool 1'
fresh parity-2 dm-thin virtio-1 scsi-1 megasas-1 virtio-2 -- nvme-2; client_start; sleep 3"
    step "it is full" "timeout 60 dd if=/dev/urandom of=/dev/mapper/thin-other bs=1M count=200 oflag=direct status=none || true; dmsetup status thin-pool"
    # One that waits hangs until it gives up. What is written over again needs no space: hosts may be served.
    local served='pool.health != "offline" and .summary.data_safe'
    if [[ $policy = 2* ]]; then
        step "hosts are refused, and status says why; nothing is lost" "becomes 60 '.array.problems | map(.reason) | tostring | test(\"[Ff]ull|space\")' dm-thin
stays 5 'is(\"online\") and $served' dm-thin"
    else
        step "nothing is lost" "stays 5 '$served'"
    fi
    step "there is space again, and hosts are served" "
dmsetup remove thin-other
dmsetup suspend thin-pool
dmsetup load thin-pool --table \"0 262144 thin-pool /dev/mapper/thin-meta /dev/mapper/thin-data 128 0 $policy\"
dmsetup resume thin-pool
dmsetup message thin-pool 0 'delete 1'
becomes 60 'is(\"online\") and whole(5) and pool.health == \"healthy\"' dm-thin"
    step "everything acknowledged is read" "$stop"
    step "the device mapper goes" "daemon_kill; dmsetup remove dm-thin; dmsetup remove thin-pool; dmsetup remove thin-data; dmsetup remove thin-meta"
}

# on_loop: an array with a loop device over a file in memory; loop_ends: the device goes.
on_loop="modprobe loop
rm -f /run/loop.img; truncate -s 1G /run/loop.img
losetup /dev/loop0 /run/loop.img
fresh parity-2 loop0 virtio-1 scsi-1 megasas-1 virtio-2 -- nvme-2; client_start"
loop_ends="daemon_kill; losetup -d /dev/loop0 2>/dev/null || true"

# loop HOW SCRIPT: the kernel is told of it.
loop() {
    step "an array with a loop device" "$on_loop; sleep 3"
    step "$1: taken out, spare joins, data safe" "victim=loop0; $2
becomes 15 'is(\"missing\") or is(\"failed\") or is(\"none\")' \$victim$gone_well"
    step "everything acknowledged is read" "client_stop; $loop_ends"
}

# What was cut off reads as zeros or as an error, and grows again where it is written.
loop_cut_off() {
    step "an array with a loop device" "$on_loop; sleep 10"
    step "a scrub finds and mends it, or the drive is taken out" "truncate -s 4096 /run/loop.img
t pool set p --repair-share 90; t pool scrub p
becomes 120 'pool.scrub.running == false and pool.scrub.last.complete'
client_lives
becomes 60 'whole(5)'
becomes 1 'is(\"none\") or errors > 0' loop0"
    read_without_two_others "client_stop 20; $loop_ends"
}

# scsi_debug OPTIONS HOW SCRIPT
debug() {
    step "an array with a drive of scsi_debug ($1)" "modprobe -r scsi_debug 2>/dev/null || true
modprobe scsi_debug dev_size_mb=1024 $1; udevadm settle
fresh parity-2 debug virtio-1 scsi-1 megasas-1 virtio-2 -- nvme-2; client_start; sleep 3; dmesg --clear"
    step "$2" "victim=debug; $3"
    step "everything acknowledged is read" "client_stop 60; daemon_kill; echo 0 >/sys/bus/pseudo/drivers/scsi_debug/opts; modprobe -r scsi_debug"
}

# null_blk ATTRIBUTES... NAME SCRIPT
null() {
    step "an array with a drive of null_blk" "modprobe null_blk nr_devices=0 2>/dev/null || true
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
n=/sys/kernel/config/nullb/nullb0; [ ! -e \$n ] || { echo 0 >\$n/power; rmdir \$n; }
mkdir \$n; echo 1024 >\$n/size; echo 1 >\$n/memory_backed; echo ${3:-512} >\$n/blocksize; echo 1 >\$n/power; udevadm settle
fresh parity-2 nullb0 virtio-1 scsi-1 megasas-1 virtio-2 -- nvme-2; client_start; sleep 3"
    step "$1" "victim=nullb0; n=/sys/kernel/config/nullb/nullb0; $2"
    step "everything acknowledged is read" "client_stop 30; daemon_kill; n=/sys/kernel/config/nullb/nullb0; echo 0 >\$n/power; rmdir \$n"
}

# scsi_state KIND STATE: what the SCSI layer makes of a device that does not recover.
scsi_state() {
    local kind=$1
    step "an array with a spare" "fresh parity-2 $kind-1 $(others "$kind" 4) -- $kind-2; client_start; sleep 2"
    step "$2: taken out, spare joins, data safe" "victim=$kind-1
echo $2 >/sys/block/\$(device \$victim)/device/state
becomes 25 'is(\"missing\") or is(\"failed\") or is(\"none\")' \$victim$gone_well"
    step "running again, and taken as new" "victim=$kind-1; echo running >/sys/block/\$(device \$victim)/device/state$back_and_taken"
    step "everything acknowledged is read" "client_stop 25"
}

# resets KIND SCRIPT: under load, ten times; no drive is lost.
resets() {
    local kind=$1
    step "an array with a spare" "fresh parity-2 $kind-1 $(others "$kind" 4) -- $kind-2; client_start; sleep 2"
    step "ten resets: no drive is lost, no error counted" "of=/sys/block/\$(device $kind-1); g=/dev/\$(ls \$of/device/scsi_generic 2>/dev/null || true)
for n in \$(seq 10); do $2; sleep 1; done
becomes 30 'is(\"online\") and whole(5) and errors == 0' $kind-1"
    step "everything acknowledged is read" "client_stop 40"
}

# away KIND: of as few drives as the protection needs one goes for a while, hosts write, it comes back: nothing to rebuild on before.
away() {
    local kind=$1
    step "an array without a spare" "fresh parity-2 $kind-1 $(others "$kind" 3); client_start; sleep 2"
    step "gone: MISSING, served, and one more would be survived" "remove $kind-1
becomes 10 'is(\"missing\") and survives(1)' $kind-1
sleep 10; client_lives; becomes 1 'is(\"missing\") and survives(1) and .summary.data_safe' $kind-1"
    step "back: in service within seconds, and made whole" "rescan; within is_there $kind-1
becomes 20 'is(\"online\")' $kind-1
becomes 60 'whole(4)'"
    step "everything acknowledged is read" client_stop
}

# renamed: drives are known by the kernel's names; one comes back under another.
renamed() {
    step "an array on the kernel's names" "fresh parity-2 kernel-nvme-1 kernel-virtio-1 kernel-scsi-1 kernel-megasas-1
sed -i 's|^paths = .*|paths = [\"/dev/nvme*n1\", \"/dev/vd?\", \"/dev/sd?\"]|' \$head/tangelo.toml
daemon_kill; daemon_start; client_start; sleep 2"
    step "one goes; another takes its name; it comes back under that one's" "a=\$(device scsi-1); path scsi-1
echo \$a; remove scsi-1; remove scsi-2
becomes 10 'survives(1)'
rescan; within is_there scsi-1; within is_there scsi-2; echo \"        scsi-1 was \$a, is \$(device scsi-1)\"
becomes 20 'whole(4)'"
    step "everything acknowledged is read" client_stop
}

kernel_cases() {
    local out='given_up("failed") or given_up("missing")' debugfs='d=$(echo /sys/kernel/debug/scsi_debug/*:0:0:0); '
    play "nvme: controller resets" resets nvme 'echo 1 >$of/device/reset_controller'
    play "scsi: resets of the unit" resets scsi 'sg_reset --no-escalate --device $g'
    play "megasas: resets of the host" resets megasas 'sg_reset --no-escalate --host $g'
    local kind
    for kind in scsi megasas; do
        play "$kind: offline" scsi_state $kind offline
        cannot "$kind: blocked" "Linux lets nobody put a device into this state by hand; drives that do not answer are played by QEMU and scsi_debug"
    done
    play "scsi: back under another name" renamed
    play "dm: error" dm "$out" 30 error
    play "dm-flakey: writes fail" dm "$out" 30 flakey 0 3600 1 error_writes
    play "dm-flakey: reads fail" dm "$out" 60 flakey 0 3600 1 error_reads
    play "dm-flakey: everything fails, by turns" dm "$out" 120 flakey 3 3
    play "dm-flakey: writes are dropped" dm_lies flakey 0 3600 1 drop_writes
    play "dm-flakey: what is read is wrong" dm_lies flakey 0 3600 5 corrupt_bio_byte 100 r 255 0
    play "dm-flakey: what is written is wrong" dm_lies flakey 0 3600 5 corrupt_bio_byte 100 w 255 0
    play "dm-delay: slow" dm 'is("draining") or is("none")' 150 delay 300
    play "dm: suspended" suspended
    play "dm: suspended for a moment" hiccup
    play "dm: becomes smaller" dm_shrinks
    play "dm: becomes larger" dm_grows
    play "dm-thin: full, says so" thin "2 skip_block_zeroing error_if_no_space"
    play "dm-thin: full, waits" thin "1 skip_block_zeroing"
    play "loop: emptied" loop "size 0" 'truncate -s 0 /run/loop.img; losetup -c /dev/loop0'
    play "loop: half of it" loop "half its size" 'truncate -s 512M /run/loop.img; losetup -c /dev/loop0'
    play "loop: its file is cut off, the device has its size" loop_cut_off
    play "scsi_debug: blocks of 4 KiB" debug "sector_size=4096" "in service" 'becomes 10 "whole(5)" $victim'
    play "scsi_debug: medium errors" debug "" "scrubbed: errors are counted, data safe" 'echo 2 >/sys/bus/pseudo/drivers/scsi_debug/opts
t pool set p --repair-share 90; t pool scrub p; becomes 300 "pool.scrub.running == false and pool.scrub.last.complete"; becomes 60 whole'
    play "scsi_debug: commands time out" debug "every_nth=1" "MISSING, spare joins, data safe" 'echo 5 >/sys/block/$(device debug)/device/timeout; echo 4 >/sys/bus/pseudo/drivers/scsi_debug/opts
becomes 60 "given_up(\"missing\") or given_up(\"failed\")" $victim'"$gone_well"
    play "scsi_debug: aborted commands" debug "every_nth=5" "borne, or taken out; data safe" 'echo 16 >/sys/bus/pseudo/drivers/scsi_debug/opts; sleep 20; client_lives; becomes 60 whole'
    play "scsi_debug: write-protected" debug "" "taken out, spare joins, data safe" 'echo 1 >/sys/module/scsi_debug/parameters/wp
becomes 30 "given_up(\"missing\") or given_up(\"failed\")" $victim'"$gone_well"
    play "null_blk: bad blocks" null "borne, or taken out; data safe" 'echo "+0-262143" >$n/badblocks
becomes 60 "is(\"failed\") or is(\"none\")" $victim'"$gone_well"
    play "null_blk: power off" null "MISSING, spare joins, data safe" 'echo 0 >$n/power
becomes 10 "given_up(\"missing\")" $victim'"$gone_well"
    play "null_blk: blocks of 4 KiB" null "in service" 'becomes 10 "whole(5)" $victim' 4096
}
