# Sourced by real-drives: a virtual machine with drives of every kind that QEMU emulates, and what QEMU can do to them.
#
# A drive has a name, such as nvme-2: the kind of its controller and a number. QEMU knows the drive as `nvme-2`, its content
# as the node `nvme-2-raw` over the node `nvme-2-file`. The machine knows it by its serial number, which is the name in capitals
# without the dash, NVME2: names of kernels change when drives go and come.

drive_kinds=(nvme virtio scsi megasas)
drives_of_a_kind=3
drive_bytes=1073741824
vm_memory=3584
vm_image=$target/vm-drives
vm_packages=(
    jq
    +nvme +virtio_blk +virtio_scsi +megaraid_sas +mptsas +ahci +loop +dm_flakey +dm_delay +dm_thin_pool +dm_zero
    +scsi_debug +null_blk
)
vm_programs=("$tangelo_program")

# serial_of NAME
serial_of() { tr -d - <<<"${1^^}"; }

# device_of NAME: the arguments of QEMU's -device; device_as_json NAME: the same for QMP.
device_of() {
    local fields="id=$1,drive=$1-raw,serial=$(serial_of "$1")"
    case $1 in
    nvme-*) echo "nvme,$fields,bus=port-$1" ;;
    # By default a full file system stops the whole machine.
    virtio-*) echo "virtio-blk-pci,$fields,bus=port-$1,werror=report" ;;
    scsi-*) echo "scsi-hd,$fields,bus=virtio-bus.0,werror=report" ;;
    megasas-*) echo "scsi-hd,$fields,bus=megasas-bus.0,werror=report" ;;
    esac
}
device_as_json() {
    local fields
    fields=$(device_of "$1")
    echo "\"driver\":\"${fields%%,*}\",$(sed 's/\([^=,]*\)=\([^,]*\)/"\1":"\2"/g' <<<"${fields#*,}")"
}

# drives_of_the_machine: adds all drives to the arguments of the machine.
drives_of_the_machine() {
    local kind n name chassis=10
    mkdir -p "$work/drives"
    vm_arguments+=(
        -device "pcie-root-port,id=port-virtio-bus,chassis=1"
        -device "virtio-scsi-pci,id=virtio-bus,bus=port-virtio-bus"
        -device "megasas,id=megasas-bus"
    )
    for kind in "${drive_kinds[@]}"; do
        for n in $(seq $drives_of_a_kind); do
            name=$kind-$n
            chassis=$((chassis + 1))
            truncate -s $drive_bytes "$work/drives/$name.img"
            vm_arguments+=(
                -blockdev "driver=file,node-name=$name-file,filename=$work/drives/$name.img,cache.no-flush=on,discard=unmap"
                -blockdev "driver=raw,node-name=$name-raw,file=$name-file,discard=unmap,detect-zeroes=unmap"
            )
            case $kind in
            nvme | virtio) vm_arguments+=(-device "pcie-root-port,id=port-$name,chassis=$chassis") ;;
            esac
            vm_arguments+=(-device "$(device_of "$name")")
        done
    done
}

# What is to be undone when a case ends in the middle.
declare -A unplugged=() injected=() throttled=() resized=()
undo_all() {
    local name
    for name in "${!injected[@]}"; do heal "$name" || replug "$name" || return 1; done
    for name in "${!throttled[@]}"; do throttle "$name" 0 0 || return 1; done
    for name in "${!resized[@]}"; do resize "$name" $drive_bytes || return 1; done
    for name in "${!unplugged[@]}"; do plug "$name" || return 1; done
}

# unplug NAME, plug NAME: as by hand, out of its slot.
unplug() {
    unplugged[$1]=1
    vm_qmp device_del "\"id\":\"$1\""
}
# A device that was told to go may not be gone yet.
plug() {
    local _
    for _ in $(seq 50); do
        if vm_qmp device_add "$(device_as_json "$1")"; then
            unset "unplugged[$1]"
            return 0
        fi
        sleep 0.2
    done
    return 1
}

# inject NAME RULE...: from now on QEMU fails operations of the drive, by rules of its blkdebug; heal NAME ends that. A rule is the
# inside of a JSON object, such as "iotype":"write". The content's file gets a filter above it while the machine works with it.
inject() {
    local name=$1 rule rules=""
    shift
    injected[$name]=1
    for rule in "$@"; do rules+="${rules:+,}{\"event\":\"none\",$rule}"; done
    vm_qmp blockdev-add "\"driver\":\"blkdebug\",\"discard\":\"unmap\",\"node-name\":\"$name-bad\",\"image\":\"$name-file\",\"inject-error\":[$rules]" &&
        content_of "$name" "$name-bad"
}
heal() {
    content_of "$1" "$1-file" && vm_qmp blockdev-del "\"node-name\":\"$1-bad\"" && unset "injected[$1]"
}
content_of() { vm_qmp blockdev-reopen "\"options\":[{\"node-name\":\"$1-raw\",\"file\":\"$2\",$raw_options}]"; }
# What is zero takes no room on this side.
raw_options='"driver":"raw","discard":"unmap","detect-zeroes":"unmap"'
# replug NAME: as heal, for a drive whose flushes fail: QEMU cannot change what is under a drive without one.
replug() {
    unset "injected[$1]"
    unplug "$1" && vm "within eval '! is_there $1'" && vm_gone "$1-raw" && vm_gone "$1-bad" &&
        vm_qmp blockdev-add "\"node-name\":\"$1-raw\",\"file\":\"$1-file\",$raw_options" && plug "$1" &&
        vm "rescan; within is_there $1"
}
# vm_gone NODE: removed as soon as the device that used it is gone, too.
vm_gone() {
    local _
    for _ in $(seq 100); do
        vm_qmp blockdev-del "\"node-name\":\"$1\"" && return 0
        sleep 0.2
    done
    return 1
}

# throttle NAME BYTES OPERATIONS: so much a second and no more; 0 is no limit. One byte a second is a drive that hangs. The kernel
# must not lose its patience with it (`patient` in drives-guest.sh): when it aborts what is throttled, or resets the controller, QEMU
# waits for that, and all of the machine with it.
throttle() {
    if [ "$2$3" = 00 ]; then unset "throttled[$1]"; else throttled[$1]=1; fi
    local device=$1
    case $1 in virtio-*) device=/machine/peripheral/$1/virtio-backend ;; esac
    vm_qmp block_set_io_throttle "\"id\":\"$device\",\"bps\":$2,\"bps_rd\":0,\"bps_wr\":0,\"iops\":$3,\"iops_rd\":0,\"iops_wr\":0"
}

# resize NAME BYTES: the drive has another size, and says so.
resize() {
    vm_qmp block_resize "\"node-name\":\"$1-raw\",\"size\":$2" || return 1
    if [ "$2" = $drive_bytes ]; then unset "resized[$1]"; else resized[$1]=1; fi
}
