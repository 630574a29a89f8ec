# Part of linux-initiator: the daemon killed under load, two paths, and changes that a rescan sees.

echo "-- killed under load"
# The initiator waits for us longer than a restart takes; a file system must not notice.
verdict "ext4 under load, one path" vm '
iscsiadm -m node -T $target -I bob -p $one:$port --logout
dmesg --clear
mkfs.ext4 -q -F $small
mount $small /mnt/a
load_start /mnt/a'
for n in 1 2 3; do
    head_kill "$dir"
    head_start "$dir"
    verdict "kill -9 and restart, number $n: the load goes on" vm 'load_goes_on'
done
verdict "no write failed" vm 'load_stop'
sed -n 's/^/        /p' "$work/step.out"
verdict "every acknowledged file is there; e2fsck and the kernel find nothing" vm '
umount /mnt/a
e2fsck -fn $small
mount $small /mnt/a
load_check /mnt/a
umount /mnt/a
kernel_is_content sd'

echo "-- two paths"
verdict "alice logs in by both portals" vm '
iscsiadm -m node -T $target -I alice -p $one:$port --logout
# A path that is silent is given up soon, so that the other one is taken.
set_to() { iscsiadm -m node -T $target -I alice -o update -n "$1" -v "$2"; }
set_to node.session.timeo.replacement_timeout 5
set_to "node.conn[0].timeo.noop_out_interval" 2
set_to "node.conn[0].timeo.noop_out_timeout" 3
iscsiadm -m node -T $target -I alice --login
disk alice $one 1
disk alice $two 1'
# Two sessions of one initiator have ISIDs of their own, so they are two initiator ports (RFC 7143 §4.4.3).
verdict "ALL_TG_PT: registers one initiator port at both target ports; the other session stays out" vm '
first=$(generic alice $one 1)
second=$(generic alice $two 1)
quiet() { sg_turs $first || sg_turs $first; sg_turs $second || sg_turs $second; }
quiet
out register-ignore --param-sark=0xa11ce --param-alltgpt $first
same "$(keys $second)" "0xa11ce 0xa11ce "
out reserve --param-rk=0xa11ce --prout-type=6 $first
same "$(access $first)" "read yes, write yes"
same "$(access $second)" "read conflict, write conflict"
out register-ignore --param-sark=0xa11ce $second
same "$(access $second)" "read yes, write yes"
out clear --param-rk=0xa11ce $first
quiet
same "$(keys $second)" ""'
verdict "multipath: one map of two active paths" vm '
cat >/etc/multipath.conf <<CONF
defaults {
    user_friendly_names no
    find_multipaths no
    polling_interval 1
    max_polling_interval 2
    path_grouping_policy group_by_prio
    failback immediate
    no_path_retry 60
}
CONF
mkdir -p /etc/multipath
modprobe -a dm_multipath dm_service_time scsi_dh_alua
dmesg --clear
multipathd
paths_are() { [ "$(multipathd show paths format "%m %t %o" | grep -cE "$naa +active +running")" -eq "$1" ]; }
naa=$(/lib/udev/scsi_id -g -u "$(disk alice $one 1)")
declare -p naa >>/run/values
declare -f paths_are >>/run/values
within paths_are 2
within test -b /dev/mapper/$naa
multipath -ll $naa'
verdict "multipath -ll: the ALUA handler of the kernel, one group of priority 50" vm '
multipath -ll $naa >/run/map
grep -q "hwhandler=.1 alua." /run/map
same "$(grep -c "prio=50 status=active" /run/map)" 1
same "$(grep -c "active ready running" /run/map)" 2'
verdict "xfs on the map, under load" vm '
mkfs.xfs -q -f /dev/mapper/$naa
mount /dev/mapper/$naa /mnt/a
load_start /mnt/a'
for card in 1 0; do
    vm_cable $card off
    verdict "portal $((card + 1)) goes away: the map has one path, and the load goes on" vm '
    within paths_are 1
    load_goes_on'
    vm_cable $card on
    verdict "portal $((card + 1)) comes back: two paths, and the load goes on" vm '
    within paths_are 2
    load_goes_on'
done
# reach GROUP STATE: what the administrator says of the unit; ranks A B: the priorities of its paths by the first and the
# second portal, as multipath -ll has them.
reach() { command volume access small --group "$1" --state "$2"; }
ranks='path_of() { basename "$(disk alice $1 1)"; }
rank_of() { multipathd show paths format "%d %p" | awk -v path="$(path_of $1)" "\$1 == path { print \$2 }"; }
ranks() { [ "$(rank_of $one) $(rank_of $two)" = "$1" ]; }
active_paths() {
    multipath -ll $naa | awk "/status=/ { here = /status=active/ } here && /active ready +running/ { for (i = 1; i <= NF; i++) if (\$i ~ /^sd/) print \$i }"
}
writes_by() { [ "$(active_paths)" = "$(path_of $1)" ]; }
'
verdict "an administrator makes portal 2 non-optimized" reach 2 active-non-optimized
verdict "multipath ranks it 10, and writes by portal 1" vm "$ranks"'
within ranks "50 10"
within writes_by $one
load_goes_on'
verdict "portal 2 is optimized again, and portal 1 is not" eval 'reach 2 active-optimized && reach 1 active-non-optimized'
verdict "multipath follows: it writes by portal 2" vm "$ranks"'
within ranks "10 50"
within writes_by $two
load_goes_on'
verdict "portal 1 on standby" reach 1 standby
verdict "multipath ranks it 1, its checker calls it ghost, and the load goes on" vm "$ranks"'
within ranks "1 50"
within eval "multipath -ll \$naa | grep -q ghost"
load_goes_on'
vm_cable 1 off
verdict "portal 2 goes away: the kernel makes portal 1 active by SET TARGET PORT GROUPS, and the load goes on" vm "$ranks"'
within writes_by $one
load_goes_on'
vm_cable 1 on
verdict "portal 1 is optimized, says the array" same "$(status_of "$dir" '.array.volumes[] | select(.name == "small") | .access[0].state')" active_optimized
# Of this volume, which no host has, nobody else changes states: a kernel makes the path active that comes back first.
state() { same "$(status_of "$dir" ".array.volumes[] | select(.name == \"$1\") | .access[1].state")" "$2"; }
command volume create bystander --pool p --size 64MiB >/dev/null
command volume access bystander --group 2 --state standby >/dev/null
head_kill "$dir"
sleep 10
head_start "$dir"
verdict "both paths go away for ten seconds (kill -9), and come back; the load goes on" vm '
within paths_are 2
load_goes_on'
verdict "access states are kept over it" state bystander standby
verdict "both portals are optimized" eval 'reach 1 active-optimized && reach 2 active-optimized'
verdict "multipath: one group of two paths again" vm "$ranks"'
within ranks "50 50"
within paths_are 2
load_goes_on'
verdict "no write failed" vm 'load_stop'
sed -n 's/^/        /p' "$work/step.out"
verdict "every acknowledged file is there; xfs_repair finds nothing" vm '
umount /mnt/a
xfs_repair -n /dev/mapper/$naa
mount /dev/mapper/$naa /mnt/a
load_check /mnt/a
umount /mnt/a
# A single path may fail: that is what the map is for.
kernel_is_content dm
multipath -f $naa'

echo "-- rescan"
verdict "a unit that is mapped meanwhile" sh -c "
    t() { '$tangelo_program' --socket '$(cat "$dir/socket")' \"\$@\"; }
    t volume create late --pool p --size 64MiB && t map late alice --lun 300"
verdict "is seen after iscsiadm -R" vm '
iscsiadm -m session -R
late=$(disk alice $one 300)
same "$(blockdev --getsize64 $late)" 67108864
dd if=/dev/urandom of=$late bs=1M count=4 oflag=direct'
if command volume --help | grep -q resize; then
    verdict "a volume is resized" command volume resize late 128MiB
    verdict "the size is seen after iscsiadm -R" vm '
    late=$(disk alice $one 300)
    iscsiadm -m session -R
    bytes_are() { [ "$(blockdev --getsize64 $late)" = "$1" ]; }
    within bytes_are 134217728'
else
    # An open end, not a pass: it counts as nothing, and is told.
    echo "ABSENT  online resize: there is no command for it yet"
fi
verdict "it is unmapped" command unmap late alice
verdict "and gone: the kernel is told so" vm '
late=$(disk alice $one 300)
! dd if=$late of=/dev/null bs=4096 count=1 iflag=direct'
verdict "alice logs out" vm '
multipath -F || true
iscsiadm -m node -T $target --logout
! ls /sys/class/iscsi_session/* 2>/dev/null'
verdict "the array has no session left" same "$(status_of "$dir" '.array.sessions | length')" 0
