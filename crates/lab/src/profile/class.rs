//! The class to which a function's time is assigned. Names of Linux, of the C library and of Rust crates decide;
//! nothing else is known of a program, so every target is treated alike.

use serde::{Deserialize, Serialize};

/// Kinds of work of a server.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    KernelCopying,
    KernelPages,
    KernelWaking,
    KernelRest,
    UserMoving,
    UserChecksums,
    UserRest,
}

/// Parts of names: copies between the kernel and a program, and what checks them.
const COPYING: [&str; 14] = [
    "copy_to_iter",
    "copy_from_iter",
    "copy_folio_from_iter",
    "copy_page_to_iter",
    "copy_page_from_iter",
    "copy_to_user",
    "copy_from_user",
    "copy_user",
    "rep_movs",
    "skb_copy",
    "memcpy",
    "memmove",
    "check_object_size",
    "virt_addr_valid",
];

/// How names begin, underscores apart: tmpfs, and the pages of files.
const PAGES: [&str; 14] = [
    "shmem_",
    "filemap_",
    "xas_",
    "xa_",
    "folio_",
    "folios_",
    "generic_perform_write",
    "generic_file_",
    "pagecache_",
    "page_cache_",
    "clear_page",
    "clear_highpage",
    "lru_",
    "find_get_entries",
];

/// How names begin, underscores apart: waking others, sleeping, and choosing who runs. While somebody is woken, interrupts are off,
/// and a clock's samples of that time are taken as they are on again: in `_raw_spin_unlock_irqrestore`.
const WAKING: [&str; 38] = [
    "raw_spin_unlock_irqrestore",
    "sock_def_readable",
    "try_to_wake_up",
    "ttwu_",
    "wake_",
    "autoremove_wake",
    "default_wake",
    "ep_poll_callback",
    "pollwake",
    "select_task_rq",
    "select_idle",
    "available_idle_cpu",
    "enqueue_task",
    "enqueue_entity",
    "dequeue_task",
    "dequeue_entit",
    "place_entity",
    "pick_",
    "put_prev_",
    "set_next_",
    "update_curr",
    "update_load_avg",
    "update_rq_clock",
    "check_preempt",
    "schedule",
    "sched_",
    "finish_task_switch",
    "prepare_task_switch",
    "switch_",
    "resched_",
    "futex_",
    "prepare_to_wait",
    "finish_wait",
    "io_cqring_wait",
    "hrtimer_",
    "psi_",
    "sysvec_reschedule",
    "sysvec_call_function",
];

/// Parts of names: interrupts that are sent to another core.
const INTERRUPTS: [&str; 4] = ["send_ipi", "ipi_send", "_send_call_func", "smp_call_function"];

const MOVING: [&str; 7] =
    ["memcpy", "memmove", "mempcpy", "memset", "bzero", "copy_nonoverlapping", "::copy_"];

/// What the room of parity does with data beside computing.
const STREAMING: [&str; 1] = ["parity::stream::"];

const CHECKSUMS: [&str; 7] = ["crc", "checksum", "parity::", "::xor", "xor_", "raid6", "gf_"];

impl Class {
    pub const ALL: [Class; 7] = [
        Class::KernelCopying,
        Class::KernelPages,
        Class::KernelWaking,
        Class::KernelRest,
        Class::UserMoving,
        Class::UserChecksums,
        Class::UserRest,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Class::KernelCopying => "kernel: copying",
            Class::KernelPages => "kernel: tmpfs and page cache",
            Class::KernelWaking => "kernel: waking and scheduling",
            Class::KernelRest => "kernel: network, system calls",
            Class::UserMoving => "user: moving data",
            Class::UserChecksums => "user: checksums and parity",
            Class::UserRest => "user: everything else",
        }
    }

    /// Of a function. What has no name is counted as the rest of where it is.
    pub fn of(name: &str, is_kernel: bool) -> Class {
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        let stem = name.trim_start_matches('_');
        let begins = |starts: &[&str]| starts.iter().any(|start| stem.starts_with(start));
        match is_kernel {
            true if has(&COPYING) => Class::KernelCopying,
            true if begins(&WAKING) || has(&INTERRUPTS) => Class::KernelWaking,
            true if begins(&PAGES) => Class::KernelPages,
            true => Class::KernelRest,
            false if has(&STREAMING) => Class::UserMoving,
            false if has(&CHECKSUMS) => Class::UserChecksums,
            false if has(&MOVING) => Class::UserMoving,
            false => Class::UserRest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_sorted() {
        let kernel = [
            ("_copy_from_iter", Class::KernelCopying),
            ("copy_folio_from_iter_atomic", Class::KernelCopying),
            ("rep_movs_alternative", Class::KernelCopying),
            ("skb_copy_datagram_iter", Class::KernelCopying),
            ("__check_object_size", Class::KernelCopying),
            ("shmem_file_read_iter", Class::KernelPages),
            ("filemap_get_entry", Class::KernelPages),
            ("xas_load", Class::KernelPages),
            ("__folio_batch_release", Class::KernelPages),
            ("clear_page_erms", Class::KernelPages),
            ("try_to_wake_up", Class::KernelWaking),
            ("__wake_up_common", Class::KernelWaking),
            ("_raw_spin_unlock_irqrestore", Class::KernelWaking),
            ("finish_task_switch.isra.0", Class::KernelWaking),
            ("__schedule", Class::KernelWaking),
            ("kvm_send_ipi_mask", Class::KernelWaking),
            // these only sound like it
            ("__cond_resched", Class::KernelRest),
            ("tcp_schedule_loss_probe.part.0", Class::KernelRest),
            ("tcp_ack", Class::KernelRest),
            ("do_syscall_64", Class::KernelRest),
            ("_raw_spin_unlock_irq", Class::KernelRest),
            ("[unknown]", Class::KernelRest),
        ];
        let user = [
            ("__memmove_avx_unaligned_erms", Class::UserMoving),
            ("__memset_avx2_unaligned_erms", Class::UserMoving),
            ("block::payload::Payload::copy_to", Class::UserMoving),
            ("parity::stream::copy_past_caches", Class::UserMoving),
            ("parity::stream::bring_closer", Class::UserMoving),
            ("crc_fast::crc32::fusion::x86::iscsi::crc32_iscsi_sse_v4s3x3", Class::UserChecksums),
            ("parity::x86::avx2::xor::wide", Class::UserChecksums),
            ("scsi::unit::LogicalUnit::finish", Class::UserRest),
            ("__vdso_clock_gettime", Class::UserRest),
            ("[unknown]", Class::UserRest),
        ];
        for (names, is_kernel) in [(&kernel[..], true), (&user[..], false)] {
            for (name, class) in names {
                assert_eq!(Class::of(name, is_kernel), *class, "{name}");
            }
        }
    }

    #[test]
    fn the_page_of_the_handbook_names_every_class() {
        let handbook = include_str!("../../../../docs/benchmarking.md");
        Class::ALL.iter().for_each(|class| assert!(handbook.contains(class.name()), "{}", class.name()));
    }
}
