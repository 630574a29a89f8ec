# Sourced by scripts that need a Linux whose kernel is the initiator: one virtual machine under QEMU, in software
# alone. Needs `target`, `tree`, and `work`, a directory to work in; vm_kill ends it by its process id.
#
# Its network is QEMU's own: no root, no address of this machine. 127.0.0.1 and 127.0.0.2 are the host's, each behind
# a network card whose cable vm_cable pulls. Three agents carry out commands side by side: fd 11-13 are their answers,
# 21-23 their orders.

vm_image=${vm_image:-$target/vm}
# Debian packages (and +modules of the kernel) beside those that every machine has, its memory in MiB, more arguments for
# QEMU, programs that are put into its /usr/bin, and what QEMU is started by, such as `ip netns exec NAME`: set before this is sourced.
vm_packages=("${vm_packages[@]}")
vm_memory=${vm_memory:-1024}
vm_arguments=("${vm_arguments[@]}")
vm_programs=("${vm_programs[@]}")
vm_prefix=("${vm_prefix[@]}")
vm_dir=""
# Software emulation on a busy machine: longer than anything takes.
vm_patience_seconds=${VM_PATIENCE:-900}

# vm_boot: makes the image if need be, starts the machine and waits for its agents.
vm_boot() {
    local n arguments kernel_options="console=ttyS0 quiet loglevel=4 net.ifnames=0 mitigations=off nokaslr"
    # Software emulation that waits for a processor: its clocks are not to be compared with each other.
    kernel_options+=" tsc=reliable no_timer_check panic=-1"
    "$tree/conformance/vm/build-image" "$vm_image" "${vm_packages[@]}"
    vm_dir=$work/vm
    mkdir -p "$vm_dir/added/usr/bin"
    # An initrd may be several archives, one after the other.
    install -m 755 "$tree/conformance/vm/init" "$tree/conformance/vm/guest.sh" "$vm_dir/added"
    for n in "${vm_programs[@]}"; do install -m 755 -s "$n" "$vm_dir/added/usr/bin"; done
    cp "$vm_image/root.cpio" "$vm_dir/initrd"
    (cd "$vm_dir/added" && find init guest.sh usr/bin -type f | cpio --quiet -o -H newc -R 0:0) >>"$vm_dir/initrd"
    arguments=(
        -accel tcg,thread=multi,tb-size=256 -machine q35,usb=off,hpet=off -cpu max -smp 2 -m $vm_memory
        -nodefaults -no-user-config -display none -no-reboot
        -kernel "$vm_image/linux" -initrd "$vm_dir/initrd"
        -append "$kernel_options"
        -serial "file:$vm_dir/console.log"
        -chardev "pipe,id=monitor,path=$vm_dir/monitor" -mon chardev=monitor
        -chardev "pipe,id=qmp,path=$vm_dir/qmp" -mon chardev=qmp,mode=control
        -device virtio-rng-pci -device virtio-serial-pci
    )
    mkfifo "$vm_dir"/{monitor,qmp}.{in,out}
    for n in 0 1; do
        arguments+=(-netdev "user,id=net$n,net=10.0.$((n + 2)).0/24,restrict=off"
            -device "virtio-net-pci,id=card$n,netdev=net$n,mac=52:54:00:00:00:0$n,romfile=")
    done
    for n in 1 2 3; do
        mkfifo "$vm_dir/agent-$n".{in,out}
        arguments+=(-chardev "pipe,id=agent$n,path=$vm_dir/agent-$n"
            -device "virtserialport,chardev=agent$n,name=agent$n")
    done
    arguments+=("${vm_arguments[@]}")
    setsid nice -n "${VM_NICE:-5}" "${vm_prefix[@]}" qemu-system-x86_64 "${arguments[@]}" >"$vm_dir/qemu.log" 2>&1 </dev/null &
    echo $! >"$vm_dir/qemu-pid"
    disown
    # Read and write, so that opening waits for nobody.
    exec 10<>"$vm_dir/monitor.out" 20<>"$vm_dir/monitor.in" 14<>"$vm_dir/qmp.out" 24<>"$vm_dir/qmp.in"
    echo '{"execute":"qmp_capabilities"}' >&24
    exec 11<>"$vm_dir/agent-1.out" 21<>"$vm_dir/agent-1.in"
    exec 12<>"$vm_dir/agent-2.out" 22<>"$vm_dir/agent-2.in"
    exec 13<>"$vm_dir/agent-3.out" 23<>"$vm_dir/agent-3.in"
    local deadline=$((SECONDS + vm_patience_seconds))
    until grep -q "VM: ready" "$vm_dir/console.log" 2>/dev/null; do
        if ! kill -0 "$(cat "$vm_dir/qemu-pid")" 2>/dev/null || [ $SECONDS -ge $deadline ]; then
            echo "the virtual machine does not come up; it said:" >&2
            tail -n 20 "$vm_dir/qemu.log" "$vm_dir/console.log" >&2
            return 1
        fi
        sleep 0.2
    done
}

# vm_start AGENT SCRIPT: gives an order, of which every command must succeed; vm_finish AGENT waits for its end,
# prints what it said, and returns its status.
vm_start() {
    base64 -w 0 <<<"set -euo pipefail
$2" >&"2$1"
    echo >&"2$1"
}
vm_finish() {
    local status answer
    # An agent that did not answer in time might answer the wrong question later.
    if [ -e "$vm_dir/lost" ]; then
        echo "the virtual machine did not answer before: $(cat "$vm_dir/lost")"
        return 1
    fi
    if ! read -r -t "$vm_patience_seconds" status answer <&"1$1"; then
        echo "agent $1, after $vm_patience_seconds s" >"$vm_dir/lost"
        echo "the virtual machine does not answer; its console:"
        tail -n 20 "$vm_dir/console.log"
        return 1
    fi
    base64 -d <<<"$answer"
    return "$status"
}

# vm SCRIPT: carries it out in the machine.
vm() {
    vm_start 1 "$1"
    vm_finish 1
}

# vm_cable CARD on|off
vm_cable() {
    echo "set_link card$1 $2" >&20
}

# vm_qmp COMMAND [ARGUMENTS]: asks QEMU itself; arguments are the inside of a JSON object. What it answers is printed.
vm_qmp() {
    local line
    vm_qmp_number=$((${vm_qmp_number:-0} + 1))
    echo "{\"execute\":\"$1\",\"arguments\":{${2:-}},\"id\":$vm_qmp_number}" >&24
    while read -r -t 60 line <&14; do
        case $line in
        *"\"id\": $vm_qmp_number"[,}]*)
            echo "$line"
            case $line in *'"error":'*) return 1 ;; *) return 0 ;; esac
            ;;
        esac
    done
    echo "QEMU does not answer $1"
    return 1
}

vm_kill() {
    [ -n "$vm_dir" ] && [ -e "$vm_dir/qemu-pid" ] || return 0
    kill -9 "$(cat "$vm_dir/qemu-pid")" 2>/dev/null || true
    rm -f "$vm_dir/qemu-pid"
}
