# Part of linux-initiator: file systems on both kinds of block, and space that comes back.

echo "-- file systems"
verdict "blkdiscard of all units" vm '
blkdiscard -f $small
blkdiscard -f $large
blkdiscard -f "$(disk alice $one 3)"'
verdict "nothing is used then" used_at_most 8

# on_disk KIND UNIT MKFS-OPTIONS CHECK: mkfs, noise, fstrim, check, blkdiscard.
on_disk() {
    local kind=$1 disk="\$$2" options=$3 check=$4
    verdict "$kind: mkfs and mount, $2 blocks" vm "
    modprobe $kind
    dmesg --clear
    mkfs.$kind $options $disk
    mount $disk /mnt/a"
    verdict "$kind: 64 MiB written, read back after a new mount" vm "
    for n in \$(seq 16); do head -c 4194304 /dev/urandom >/mnt/a/noise-\$n; done
    (cd /mnt/a && sha256sum noise-* >sums)
    umount /mnt/a
    mount $disk /mnt/a
    cd /mnt/a
    sha256sum --quiet -c sums"
    verdict "$kind: the pool holds it" used_at_least 60
    verdict "$kind: 48 MiB deleted, and fstrim" vm '
    rm /mnt/a/noise-{1..12}
    sync
    fstrim -v /mnt/a'
    verdict "$kind: the pool has the space back" used_at_most 40
    verdict "$kind: what was not deleted is there" vm '
    cd /mnt/a
    sha256sum --quiet --ignore-missing -c sums'
    verdict "$kind: nothing wrong, says its check; nor does the kernel" vm "
    umount /mnt/a
    $check $disk
    kernel_is_content sd"
    verdict "$kind: blkdiscard, and everything reads zero" vm "
    blkdiscard -f $disk
    cmp -n 134217728 $disk /dev/zero"
    verdict "$kind: nothing is used then" used_at_most 8
}
on_disk ext4 small "-q -F -E nodiscard" "e2fsck -fn"
on_disk xfs large "-q -f" "xfs_repair -n"
verdict "blkdiscard -z: zeros are written without data" vm '
head -c 4194304 /dev/urandom >/tmp/noise-4
dd if=/tmp/noise-4 of=$small bs=1M oflag=direct
blkdiscard -z -f -o 1048576 -l 1048576 $small
dd if=$small bs=1M count=4 iflag=direct of=/tmp/read
cmp -n 1048576 /tmp/read /tmp/noise-4
cmp -n 1048576 -i 1048576:0 /tmp/read /dev/zero
cmp -n 2097152 -i 2097152 /tmp/read /tmp/noise-4'
