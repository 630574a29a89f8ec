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
head_kill "$dir"
sleep 10
head_start "$dir"
verdict "both paths go away for ten seconds (kill -9), and come back; the load goes on" vm '
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
