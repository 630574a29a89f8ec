# Sourced by real-drives: a virtual machine with drives of every kind that QEMU emulates, and what QEMU can do to them.
#
# A drive has a name, such as nvme-2: the kind of its controller and a number. QEMU knows the drive as `nvme-2`, its content
# as the node `nvme-2-raw` over the node `nvme-2-file`. The machine knows it by its serial number, which is the name in capitals
# without the dash, NVME2: names of kernels change when drives go and come.

drive_kinds=(nvme virtio scsi megasas)
drives_of_a_kind=3
drive_bytes=1073741824
vm_memory=2560
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
                -blockdev "driver=file,node-name=$name-file,filename=$work/drives/$name.img,cache.no-flush=on"
                -blockdev "driver=raw,node-name=$name-raw,file=$name-file"
            )
            case $kind in
            nvme | virtio) vm_arguments+=(-device "pcie-root-port,id=port-$name,chassis=$chassis") ;;
            esac
            vm_arguments+=(-device "$(device_of "$name")")
        done
    done
}

# unplug NAME, plug NAME: as by hand, out of its slot.
unplug() { vm_qmp device_del "\"id\":\"$1\""; }
plug() { vm_qmp device_add "$(device_as_json "$1")"; }
