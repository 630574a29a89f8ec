# Part of linux-initiator: a thin pool that runs full under a volume larger than itself, and what the kernel makes of it.

echo "-- a pool that runs full"
for n in 1 2; do fallocate -l 1GiB "$dir/thin-$n.img"; done
command pool create thin --protection mirror-2 "$dir"/thin-{1,2}.img >/dev/null
command volume create overbooked --pool thin --size 4GiB >/dev/null
command map overbooked alice --lun 9 >/dev/null
command host create filler --iqn $name:filler >/dev/null
command map overbooked filler --lun 9 >/dev/null
filler=$name:filler
thin() { status_of "$dir" ".array.pools[] | select(.name == \"thin\") | .$1"; }
# filled_to PERCENT: another host, which is not emulated, has written from the beginning on; it leaves the first MiB out.
filled_to() {
    local mib=$(($(thin capacity_bytes) * $1 / 100 >> 20))
    qemu-io -c "write -q -P 0x5a 1M $((mib - 1))M" --image-opts "$(image "$dir" $filler 9)"
}
verdict "the unit is seen, and sg_logs tells of its pool" vm '
iscsiadm -m session -R
full=$(disk alice $one 9)
g=$(generic alice $one 9)
declare -p full g >>/run/values
sg_turs $g || sg_turs $g
says "Available LBA mapping" sg_logs --page=0xc $g
dmesg --clear'
verdict "another host fills 80 % of the pool" filled_to 80
verdict "nothing is said of it" vm '
sleep 12
sg_turs $g
! dmesg | grep "thin provisioning"'
verdict "another host fills 92 % of the pool" filled_to 92
verdict "the kernel is told: THIN PROVISIONING SOFT THRESHOLD REACHED, 38h/07h" vm '
told() {
    dd if=$full of=/dev/null bs=4096 count=1 iflag=direct status=none
    dmesg | grep -q "reached a thin provisioning soft threshold"
}
within told'
verdict "a write without space ends with ENOSPC: SPACE ALLOCATION FAILED, 27h/07h" vm '
head -c 1048576 /dev/urandom >/tmp/mebibyte
dd if=/tmp/mebibyte of=$full bs=1M oflag=direct conv=notrunc
fill() { for n in $(seq 2048 2248); do dd if=/tmp/mebibyte of=$full bs=1M seek=$n oflag=direct conv=notrunc || return 1; done; }
! fill >/run/fill.out 2>&1
grep -q "No space left on device" /run/fill.out || { cat /run/fill.out; exit 1; }
dmesg | grep -q "critical space allocation error"
fails 7 sg_raw -s 1048576 -i /tmp/mebibyte $g 8a 00 00 00 00 00 00 70 00 00 00 00 08 00 00 00'
verdict "what is there can be read and written anew" vm '
dd if=$full of=/tmp/read bs=1M count=1 iflag=direct
cmp /tmp/read /tmp/mebibyte
dd if=/tmp/mebibyte of=$full bs=1M seek=8 oflag=direct conv=notrunc'
verdict "blkdiscard of a part: there is space again, and sg_logs tells of it" vm '
blkdiscard -f -o 268435456 -l 134217728 $full
again() { dd if=/tmp/mebibyte of=$full bs=1M seek=3000 oflag=direct conv=notrunc status=none; }
within again
dd if=$full of=/tmp/read bs=1M skip=3000 count=1 iflag=direct
cmp /tmp/read /tmp/mebibyte'
verdict "the volume goes" eval 'command volume delete overbooked --unmap --eradicate --yes && command host delete filler'
