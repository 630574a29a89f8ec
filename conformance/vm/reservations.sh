# Part of linux-initiator: persistent reservations between two initiators, by sg_persist. SPC-4 §5.9 is the rule;
# alice's key is 0xa11ce, bob's 0xb0b.

# Unit attentions that are due are taken note of, so that they are no answer to a later command.
quiet='quiet() { sg_turs $a >/dev/null 2>&1 || true; sg_turs $b >/dev/null 2>&1 || true; }
both() { quiet; out register-ignore --param-sark=0xa11ce $a; out register-ignore --param-sark=0xb0b $b; }
cleared() { quiet; out register-ignore --param-sark=0xa11ce $a; out clear --param-rk=0xa11ce $a; quiet; }
'

echo "-- reservations: registering"
verdict "report capabilities: all six types, APTPL, ALL_TG_PT, SPEC_I_PT" vm "$quiet"'
quiet
sg_persist --no-inquiry --report-capabilities $a >/run/out
for field in "(SIP_C)" "(ATP_C)" "(PTPL_C)" "(TMV)" "Write Exclusive" "Exclusive Access" \
    "Write Exclusive, registrants only" "Exclusive Access, registrants only" \
    "Write Exclusive, all registrants" "Exclusive Access, all registrants"; do
    grep -qF "$field: 1" /run/out || { echo "missing: $field"; cat /run/out; exit 1; }
done'
verdict "nobody is registered" vm 'same "$(keys $a)" ""; same "$(reservation $a)" none'
verdict "register: both, and each sees both keys" vm '
out register --param-sark=0xa11ce $a
out register --param-sark=0xb0b $b
same "$(keys $a)" "0xa11ce 0xb0b "
same "$(keys $b)" "0xa11ce 0xb0b "'
verdict "register with a wrong key is a conflict; with the right one it changes the key" vm '
fails 24 out register --param-rk=0xbad --param-sark=0x1 $a
out register --param-rk=0xa11ce --param-sark=0xa11ce2 $a
same "$(keys $b)" "0xa11ce2 0xb0b "
out register-ignore --param-sark=0xa11ce $a
same "$(keys $b)" "0xa11ce 0xb0b "'
verdict "read full status: both names, ports and keys, nobody holds" vm '
sg_persist --no-inquiry --read-full-status $a >/run/out
grep -q ":alice,i,0x" /run/out
grep -q ":bob,i,0x" /run/out
same "$(grep -c "not reservation holder" /run/out)" 2'
verdict "unregister: key zero" vm '
out register --param-rk=0xb0b --param-sark=0 $b
same "$(keys $a)" "0xa11ce "
fails 24 out reserve --param-rk=0xb0b --prout-type=1 $b'

echo "-- reservations: every type"
# reservation_type TYPE NAME UNREGISTERED REGISTERED: what bob may do while alice holds it.
reservation_type() {
    verdict "type $1, $2: held by alice; bob unregistered: $3; registered: $4" vm "$quiet
type=$1"'
cleared
out register --param-sark=0xa11ce $a
fails 24 out reserve --param-rk=0xbad --prout-type=$type $a
out reserve --param-rk=0xa11ce --prout-type=$type $a
held=$(reservation $b)
same "${held#0x* }" "'"$2"'"
same "$(access $a)" "read yes, write yes"
same "$(access $b)" "'"$3"'"
out register --param-sark=0xb0b $b
same "$(access $b)" "'"$4"'"
same "$(access $a)" "read yes, write yes"
sg_persist --no-inquiry --read-full-status $b >/run/out
same "$(grep -c "<< Reservation holder >>" /run/out)" '"$5"'
other=$((type == 1 ? 3 : 1))
fails 24 out reserve --param-rk=0xb0b --prout-type=$other $b
quiet
fails 5 out release --param-rk=0xa11ce --prout-type=$other $a
out release --param-rk=0xa11ce --prout-type=$type $a
same "$(reservation $b 2>/dev/null || reservation $b)" none
same "$(keys $b)" "0xa11ce 0xb0b "
same "$(access $b)" "read yes, write yes"'
}
reservation_type 1 "Write Exclusive" "read yes, write conflict" "read yes, write conflict" 1
reservation_type 3 "Exclusive Access" "read conflict, write conflict" "read conflict, write conflict" 1
reservation_type 5 "Write Exclusive, registrants only" "read yes, write conflict" "read yes, write yes" 1
reservation_type 6 "Exclusive Access, registrants only" "read conflict, write conflict" "read yes, write yes" 1
reservation_type 7 "Write Exclusive, all registrants" "read yes, write conflict" "read yes, write yes" 2
reservation_type 8 "Exclusive Access, all registrants" "read conflict, write conflict" "read yes, write yes" 2

echo "-- reservations: taking over"
verdict "release of a registrants-only type tells the others: RESERVATIONS RELEASED" vm "$quiet"'
cleared
both
out reserve --param-rk=0xa11ce --prout-type=5 $a
out release --param-rk=0xa11ce --prout-type=5 $a
same "$(sg_turs $b 2>&1 | grep -ci "Reservations released")" 1
sg_turs $b'
verdict "a release by somebody else changes nothing" vm "$quiet"'
both
out reserve --param-rk=0xa11ce --prout-type=1 $a
out release --param-rk=0xb0b --prout-type=1 $b
same "$(reservation $b)" "0xa11ce Write Exclusive"'
verdict "preempt: the holder goes, and is told: REGISTRATIONS PREEMPTED" vm "$quiet"'
quiet
out preempt --param-rk=0xb0b --param-sark=0xa11ce --prout-type=3 $b
same "$(reservation $b)" "0xb0b Exclusive Access"
same "$(keys $b)" "0xb0b "
same "$(sg_turs $a 2>&1 | grep -ci "Registrations preempted")" 1
same "$(access $a)" "read conflict, write conflict"'
verdict "preempt by one who is not registered is a conflict" vm '
fails 24 out preempt --param-rk=0xa11ce --param-sark=0xb0b --prout-type=3 $a'
verdict "preempt-abort under a write load: the writer is fenced" vm "$quiet"'
cleared
both
out reserve --param-rk=0xa11ce --prout-type=5 $a
quiet
(dd if=/dev/zero of=$small bs=64k seek=160 count=4096 oflag=direct 2>&1 || echo "status $?") >/run/dd.out &
writer=$!
sleep 2
head -c 4096 /dev/urandom >/tmp/block
out preempt-abort --param-rk=0xb0b --param-sark=0xa11ce --prout-type=5 $b
sg_dd if=/tmp/block of=$b bs=512 seek=20480 2>/dev/null
wait $writer
# Whoever wrote a disk makes udev read it, and that may take note of a unit attention.
udevadm settle
grep -q "status 1" /run/dd.out || { cat /run/dd.out; exit 1; }
# The commands that were aborted are not answered: the writer has waited for them, and has reset the unit.
quiet
same "$(reservation $b)" "0xb0b Write Exclusive, registrants only"
same "$(keys $b)" "0xb0b "
sg_turs $a || true
same "$(access $a)" "read yes, write conflict"
holds $b 20480 8 /tmp/block'
verdict "clear: all are gone, and told: RESERVATIONS PREEMPTED" vm "$quiet"'
both
quiet
out clear --param-rk=0xb0b $b
same "$(sg_turs $a 2>&1 | grep -ci "Reservations preempted")" 1
same "$(keys $b)" ""
same "$(reservation $b)" none
same "$(access $a)" "read yes, write yes"'
verdict "register and move: the reservation goes to bob" vm "$quiet"'
both
out reserve --param-rk=0xa11ce --prout-type=1 $a
port=$(sg_persist --no-inquiry --read-full-status $a | sed -n "s/.*unique port id: \(.*:bob,i,0x[0-9a-f]*\).*/\1/p")
quiet
out register-move --param-rk=0xa11ce --param-sark=0xb0b --relative-target-port=1 --transport-id="$port" $a
same "$(reservation $b)" "0xb0b Write Exclusive"
same "$(access $a)" "read yes, write conflict"
same "$(access $b)" "read yes, write yes"
quiet
out clear --param-rk=0xb0b $b'
verdict "specify initiator ports: alice registers bob" vm "$quiet"'
cleared
port=$(sg_persist --no-inquiry --read-full-status $a | sed -n "s/.*unique port id: \(.*:bob,i,0x[0-9a-f]*\).*/\1/p")
[ -n "$port" ] || { both; port=$(sg_persist --no-inquiry --read-full-status $a |
    sed -n "s/.*unique port id: \(.*:bob,i,0x[0-9a-f]*\).*/\1/p"); cleared; }
out register --param-sark=0x77 --transport-id="$port" $a
same "$(keys $b)" "0x77 0x77 "
out clear --param-rk=0x77 $b'

verdict "replace lost reservation is of a later standard: refused" vm "$quiet"'
both
fails 5 out replace-lost --param-rk=0xa11ce --param-sark=0xb0b --prout-type=1 $a
out clear --param-rk=0xa11ce $a
quiet'

echo "-- reservations: over a restart"
# Both sessions come back by themselves: the initiator logs in anew.
verdict "APTPL: registered for ever, and reserved" vm "$quiet"'
quiet
out register-ignore --param-sark=0xa11ce --param-aptpl $a
out register-ignore --param-sark=0xb0b --param-aptpl $b
out reserve --param-rk=0xa11ce --prout-type=5 $a
says "PTPL_A): 1" sg_persist --no-inquiry --report-capabilities $a'
head_kill "$dir"
head_start "$dir"
verdict "APTPL: all of it is there after kill -9" vm "$quiet"'
within sg_turs $a
within sg_turs $b
same "$(keys $b)" "0xa11ce 0xb0b "
same "$(reservation $b)" "0xa11ce Write Exclusive, registrants only"
same "$(access $b)" "read yes, write yes"
out register-ignore --param-sark=0 $b
quiet
same "$(access $b)" "read yes, write conflict"'
verdict "without APTPL: registered again" vm "$quiet"'
cleared
both
out reserve --param-rk=0xa11ce --prout-type=3 $a'
head_kill "$dir"
head_start "$dir"
verdict "without APTPL: nothing is left after kill -9" vm "$quiet"'
within sg_turs $a
within sg_turs $b
same "$(keys $b)" ""
same "$(reservation $b)" none
same "$(access $b)" "read yes, write yes"'
