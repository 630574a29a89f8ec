# Part of linux-initiator: what the sg tools say and do.

echo "-- identity"
verdict "sg_inq: vendor, SPC-4, ALUA set by both sides" vm '
says "TANGELO" sg_inq $a
says "version=0x06" sg_inq $a
says "CmdQue=1" sg_inq $a
says "TPGS=3" sg_inq $a'
verdict "sg_vpd: every page that is listed can be read" vm '
pages=$(sg_vpd --page=0 --raw $a | tail -c +5 | od -An -v -tx1)
[ "$(wc -w <<<"$pages")" -ge 7 ]
for page in $pages; do sg_vpd --page=0x$page $a; done'
verdict "sg_vpd: both initiators see one unit, by its NAA name" vm '
of() { sg_vpd --page=di_lu $1 | grep -o "0x6[0-9a-f]\{31\}"; }
[ -n "$(of $a)" ]
same "$(of $a)" "$(of $b)"
[ "$(of $a)" != "$(of $l)" ]'
verdict "sg_vpd: thin, and what is unmapped reads zeros" vm '
says "LBPRZ): 1" sg_vpd --page=lbpv $a
says "LBPU): 1" sg_vpd --page=lbpv $a
says "Provisioning type: 2" sg_vpd --page=lbpv $a
says "Non-rotating" sg_vpd --page=bdc $a'
verdict "the kernel believes it: discard, write same, no rotation" vm '
q=/sys/block/${small#/dev/}/queue
[ "$(cat $q/discard_max_bytes)" -gt 0 ]
[ "$(cat $q/write_zeroes_max_bytes)" -gt 0 ]
same "$(cat $q/rotational)" 0
same "$(cat $q/physical_block_size)" 4096
same "$(cat /sys/block/${large#/dev/}/queue/logical_block_size)" 4096'
verdict "sg_readcap: 10 and 16 agree" vm '
says "blocks=1048576" sg_readcap $a
says "blocks=1048576" sg_readcap --16 $a
says "lbpme=1, lbprz=1" sg_readcap --16 $a
says "block length=4096" sg_readcap $l'
verdict "sg_luns: alice has three units, bob one" vm '
says "imples 3 lun" sg_luns $a
says "imples 1 lun" sg_luns $b'
verdict "sg_opcodes: the commands that hosts rely on" vm '
sg_opcodes $a >/run/opcodes
for command in "Compare and write" "Unmap" "Write same(16)" "Report luns" "Persistent reserve out" "Get LBA status" \
    "Extended copy"; do
    grep -qi "$command" /run/opcodes || { echo "missing: $command"; cat /run/opcodes; exit 1; }
done
says "Command is supported" sg_opcodes --opcode=0x89 $a
says "NOT supported" sg_opcodes --opcode=0x04 $a'
verdict "sg_rtpg: two groups, both active/optimized, none preferred" vm '
same "$(states $a)" "0x1=0x00 0x2=0x00 "
! sg_rtpg $a | grep "Pref=1"'
verdict "sg_stpg: the other group is made non-optimized; bob is told, and finds it so" vm '
sg_turs $b || sg_turs $b
sg_stpg --tp=2 --state=an $a
same "$(states $a)" "0x1=0x00 0x2=0x01 "
says "Asymmetric access state changed" eval "sg_turs -v $b || true"
same "$(states $b)" "0x1=0x00 0x2=0x01 "
sg_stpg --tp=2 --state=ao $a
sg_turs $b || sg_turs $b
same "$(states $b)" "0x1=0x00 0x2=0x00 "'
verdict "sg_stpg: the last active group stays; a group that is not there is refused" vm '
says "Set target port groups command failed" eval "sg_stpg --tp=1,2 --state=s,u $a || true"
says "Illegal request" eval "sg_stpg --tp=7 --state=an $a || true"
same "$(states $a)" "0x1=0x00 0x2=0x00 "'
verdict "sg_modes, sg_requests, sg_turs" vm '
says "Caching" sg_modes -a $a
says "No Sense" sg_requests $a
sg_turs --number=20 $a'

echo "-- commands that write"
vm 'head -c 4096 /dev/urandom >/tmp/block; head -c 4096 /dev/urandom >/tmp/other
cat /tmp/block /tmp/block /tmp/block /tmp/block >/tmp/blocks' || true
verdict "sg_write_same: a pattern over 1 MiB" vm '
head -c 512 /tmp/block >/tmp/pattern
sg_write_same --16 --in=/tmp/pattern --lba=4096 --num=2048 $a
for n in $(seq 8); do cat /tmp/pattern; done >/tmp/patterns
holds $b 4096 8 /tmp/patterns
holds $b 6136 8 /tmp/patterns'
verdict "sg_write_same: unmap over a part of it" vm '
sg_write_same --16 --unmap --in=/dev/zero --xferlen=512 --lba=4096 --num=1024 $a
zeros $b 4096 1024
holds $b 5120 8 /tmp/patterns
says "deallocated" sg_get_lba_status --lba=4096 $a'
verdict "sg_write_same: 10, and without data (NDOB)" vm '
sg_write_same --10 --in=/tmp/pattern --lba=8192 --num=8 $a
holds $b 8192 8 /tmp/patterns
sg_write_same --ndob --unmap --lba=8192 --num=8 $a
zeros $b 8192 8'
verdict "sg_unmap: two ranges in one command" vm '
sg_dd if=/tmp/blocks of=$a bs=512 seek=16384 2>/dev/null
sg_unmap --force --lba=16384,16400 --num=8,8 $a
zeros $b 16384 8
holds $b 16392 8 /tmp/block
zeros $b 16400 8
holds $b 16408 8 /tmp/block'
verdict "sg_compare_and_write: what is equal is replaced" vm '
sg_dd if=/tmp/block of=$a bs=512 seek=20480 2>/dev/null
cat /tmp/block /tmp/other >/tmp/both
sg_compare_and_write --in=/tmp/both --lba=20480 --num=8 --xferlen=8192 $a
holds $b 20480 8 /tmp/other'
verdict "sg_compare_and_write: what differs is MISCOMPARE, and stays" vm '
fails 14 sg_compare_and_write --in=/tmp/both --lba=20480 --num=8 --xferlen=8192 $a
holds $b 20480 8 /tmp/other'
verdict "sg_write_verify and sg_verify" vm '
sg_write_verify --16 --in=/tmp/block --ilen=4096 --lba=24576 --num=8 $a
sg_verify --16 --lba=24576 --count=8 $a
sg_verify --16 --bytchk=1 --in=/tmp/block --ndo=4096 --lba=24576 --count=8 $a
fails 14 sg_verify --16 --bytchk=1 --in=/tmp/other --ndo=4096 --lba=24576 --count=8 $a'
verdict "sg_sync" vm 'sg_sync $a; sg_sync --16 $a'
verdict "past the end: LOGICAL BLOCK ADDRESS OUT OF RANGE" vm '
fails 22 sg_raw -r 512 $a 88 00 00 00 00 00 00 10 00 00 00 00 00 01 00 00
fails 22 sg_raw -s 1024 -i /dev/zero $a 8a 00 00 00 00 00 00 0f ff ff 00 00 00 02 00 00'
verdict "sg_xcopy: inside a unit" vm '
says "Command is supported" sg_opcodes --opcode=0x83,0 $a
says "3PC=1" sg_inq $a
sg_dd if=/tmp/blocks of=$a bs=512 seek=32768 2>/dev/null
sg_xcopy if=$a of=$a bs=512 skip=32768 seek=65536 count=32
holds $b 65536 32 /tmp/blocks'
verdict "sg_xcopy: from one unit to another, 8 MiB" vm '
head -c 8388608 /dev/urandom >/tmp/much
dd if=/tmp/much of=$small bs=1M seek=48 oflag=direct
sg_xcopy if=$a of=$s bs=512 skip=98304 seek=1024 count=16384
holds $s 1024 16384 /tmp/much
rm /tmp/much'
verdict "FORMAT UNIT is refused" vm '
fails 9 sg_raw $a 04 00 00 00 00 00
sg_turs $a'

echo "-- resets"
# Whoever does not reset learns of it by a unit attention.
for kind in device target; do
    verdict "sg_reset: $kind; others are told, and data stays" vm "kind=$kind"'
    udevadm settle
    sg_turs $a || true; sg_turs $b || true; sg_turs $b
    sg_reset --$kind --no-escalate $a
    fails 6 sg_turs $b
    sg_turs $b
    sg_turs $a || sg_turs $a
    holds $b 24576 8 /tmp/block'
done
verdict "sg_reset: twenty of them while blocks are read and written" vm '
head -c 1048576 /dev/urandom >/tmp/mebibyte
rm -f /run/stop
write() { dd if=/tmp/mebibyte of=$small bs=256k seek=40 oflag=direct; }
(while [ ! -e /run/stop ]; do write || exit 1; done) >/run/dd.out 2>&1 &
writer=$!
for n in $(seq 10); do
    sg_reset --device --no-escalate $a
    sg_reset --target --no-escalate $b
done
touch /run/stop
wait $writer || { cat /run/dd.out; exit 1; }
rm -f /run/stop
dd if=$small bs=256k skip=40 count=4 iflag=direct of=/tmp/read
cmp /tmp/read /tmp/mebibyte'
verdict "bus and host: the kernel offers no such reset with iSCSI" vm '
for kind in bus host; do
    (sg_reset --$kind --no-escalate $a 2>&1 || true) | grep "may not be available"
done'
