# Sourced by the scripts that show two heads to a real kernel, after pair.sh: the heads, and a virtual machine whose dm-multipath has a path to each.
# Needs what vm.sh needs.

vm_prefix=(ip netns exec "$(pair_namespace c)")
. "$tree/conformance/vm/vm.sh"
iqn=iqn.2026-11.org.example

set_up() {
    pair_join && pair_command a pool create fast --protection parity-1 --across-heads "$work"/pair/a/drive-*.img &&
        pair_command a volume create v --pool fast --size "$1" && pair_command a host create alice --iqn $iqn:alice &&
        pair_command a map v alice --lun 1 && pair_in_sync 30
}
machine_up() {
    vm "
cat >/run/values <<'VALUES'
target=$1
port=3260
one=$(pair_address a)
two=$(pair_address b)
VALUES
ip route add $(pair_address a) via 10.0.2.2 dev eth0
ip route add $(pair_address b) via 10.0.3.2 dev eth1
modprobe -a iscsi_tcp sd_mod sg
echo InitiatorName=$iqn:alice >/etc/iscsi/initiatorname.iscsi
sed -i 's/^node.startup = .*/node.startup = manual/' /etc/iscsi/iscsid.conf
iscsid
iscsiadm -m iface -I alice -o new
iscsiadm -m iface -I alice -o update -n iface.initiatorname -v $iqn:alice"
}
machine_logs_in() {
    vm '
iscsiadm -m discovery -t sendtargets -p $two:$port -I alice -o new
set_to() { iscsiadm -m node -T $target -I alice -o update -n "$1" -v "$2"; }
set_to node.session.timeo.replacement_timeout 30
set_to node.session.initial_login_retry_max 100000
set_to "node.conn[0].timeo.noop_out_interval" 2
set_to "node.conn[0].timeo.noop_out_timeout" 3
iscsiadm -m node -T $target -I alice -p $one:$port --login
iscsiadm -m node -T $target -I alice -p $two:$port --login
disk alice $one 1
disk alice $two 1'
}
machine_has_paths() {
    vm '
cat >/etc/multipath.conf <<CONF
defaults {
    user_friendly_names no
    find_multipaths no
    polling_interval 1
    max_polling_interval 2
    path_grouping_policy group_by_prio
    failback immediate
    no_path_retry fail
}
CONF
mkdir -p /etc/multipath
modprobe -a dm_multipath dm_service_time scsi_dh_alua
dmesg --clear
multipathd
paths_are() { [ "$(multipathd show paths format "%m %t %o" | grep -cE "$naa +active +running")" -eq "$1" ]; }
path_works() { multipathd show paths format "%d %t %o" | grep -qE "^$(basename "$(disk alice $1 1)") +active +running"; }
naa=$(/lib/udev/scsi_id -g -u "$(disk alice $one 1)")
declare -p naa >>/run/values
priority_is() { multipathd show paths format "%d %p" | grep -qE "^$(basename "$(disk alice $1 1)") +$2( |$)"; }
declare -f paths_are path_works priority_is >>/run/values
within paths_are 2
within test -b /dev/mapper/$naa
multipath -ll $naa'
}
# The one or the other: a busy machine may have seen a takeover already.
paths_of_owner() {
    owner=$(pair_owner) && other=$(pair_other "$owner") &&
        vm "within priority_is $(pair_address "$owner") 50 && within priority_is $(pair_address "$other") 10"
}

# two_heads SIZE: a pair with a volume of that size, which the machine has as /dev/mapper/$naa.
two_heads() {
    local target_name
    pair_up "$work/pair" 3 1G
    verdict "two heads have a pool" set_up "$1"
    target_name=$(pair_command a status -o json | jq -r .array.target_name)
    vm_boot
    verdict "a Linux is up in a virtual machine" machine_up "$target_name"
    verdict "it finds the portals of both heads at one of them, and logs in at both" machine_logs_in
    verdict "multipath: the path to the owner is preferred, the one through its partner works; nothing waits without a path" machine_has_paths
    verdict "the kernel sees that" paths_of_owner
}
