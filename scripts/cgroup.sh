# Sourced by run-scaling-bench: control groups that hold single threads to a share of a core. Both hierarchies of the kernel: version
# 1, where a thread's number is written to `tasks`, and version 2, where groups of threads lie below one that has their process.

# Period of a quota in us: short beside a run, long beside what a turn of a shard takes.
cgroup_period_us=5000

# cgroup_begin PID...: makes a group for these processes' threads. Where that cannot be had, it fails, and cgroup_why says why.
cgroup_begin() {
    local mounted pid
    cgroup_name=tangelo-bench-$$
    mounted=$(awk '$3 == "cgroup" && $4 ~ /(^|,)cpu(,|$)/ { print $2; exit }' /proc/mounts)
    if [ -n "$mounted" ]; then
        cgroup_version=1
        cgroup_why="version 1 is mounted at $mounted, and no group can be made there"
        cgroup_top=$mounted/$cgroup_name
        mkdir "$cgroup_top" 2>/dev/null || { cgroup_top= && return 1; }
        return 0
    fi
    mounted=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    cgroup_why="none are mounted"
    [ -n "$mounted" ] || return 1
    cgroup_version=2
    cgroup_why="version 2 is mounted at $mounted, and its cpu controller is not given to us"
    # root has all of it, others what was delegated to the group that they are in
    [ -w "$mounted/cgroup.procs" ] || mounted=$mounted$(sed -n 's/^0:://p' /proc/self/cgroup)
    grep -qw cpu "$mounted/cgroup.controllers" 2>/dev/null || return 1
    grep -qw cpu "$mounted/cgroup.subtree_control" || echo +cpu >"$mounted/cgroup.subtree_control" 2>/dev/null || return 1
    cgroup_top=$mounted/$cgroup_name
    mkdir "$cgroup_top" 2>/dev/null || { cgroup_top= && return 1; }
    for pid in "$@"; do echo "$pid" >"$cgroup_top/cgroup.procs" 2>/dev/null || return 1; done
    # groups below it hold threads of these processes
    mkdir "$cgroup_top/probe" && echo threaded >"$cgroup_top/probe/cgroup.type" 2>/dev/null &&
        echo +cpu >"$cgroup_top/cgroup.subtree_control" 2>/dev/null || return 1
    rmdir "$cgroup_top/probe"
}

# cgroup_hold NAME THREAD: puts one thread, and what it starts from now on, into a group of its own; without a quota yet.
cgroup_hold() {
    mkdir "$cgroup_top/$1" || return 1
    if [ "$cgroup_version" = 1 ]; then
        echo "$2" >"$cgroup_top/$1/tasks"
    else
        echo threaded >"$cgroup_top/$1/cgroup.type" && echo "$2" >"$cgroup_top/$1/cgroup.threads"
    fi
}

# cgroup_quota NAME PERCENT: of one core.
cgroup_quota() {
    local quota_us=$((cgroup_period_us * $2 / 100))
    if [ "$cgroup_version" = 1 ]; then
        echo $cgroup_period_us >"$cgroup_top/$1/cpu.cfs_period_us" && echo $quota_us >"$cgroup_top/$1/cpu.cfs_quota_us"
    else
        echo "$quota_us $cgroup_period_us" >"$cgroup_top/$1/cpu.max"
    fi
}

# cgroup_periods NAME: how many periods it had something to do in, and how many of those it was held back in, so far.
cgroup_periods() {
    awk '$1 == "nr_periods" { all = $2 } $1 == "nr_throttled" { held = $2 } END { print all, held }' "$cgroup_top/$1/cpu.stat"
}

# cgroup_end: once the processes are gone. The kernel takes a moment to see that a group is empty.
cgroup_end() {
    local n
    [ -n "${cgroup_top:-}" ] || return 0
    for n in $(seq 50); do
        find "$cgroup_top" -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null
        rmdir "$cgroup_top" 2>/dev/null && cgroup_top= && return 0
        sleep 0.1
    done
    echo "bench: the control group $cgroup_top could not be removed" >&2
}
