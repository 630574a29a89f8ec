//! Between the API's words for pools' upkeep and the engine's.

use ::api as shard;
use control::api;

pub fn engine_upkeep(pool: String, upkeep: api::Upkeep) -> shard::Upkeep {
    use shard::Upkeep as To;
    match upkeep {
        api::Upkeep::DriveAdd(api::NewDrives { drives, force }) => To::DriveAdd { pool, drives, force },
        api::Upkeep::DriveRemove(api::DriveRemoval { drive, cancel }) => {
            To::DriveRemove { pool, drive, cancel }
        }
        api::Upkeep::DriveReplace(api::DriveReplacement { old, new, force }) => {
            To::DriveReplace { pool, old, new, force }
        }
        api::Upkeep::Spare(api::Spares { drives, release }) => To::Spare { pool, drives, release },
        api::Upkeep::Scrub(api::Scrubbing { stop }) => To::Scrub { pool, stop },
        api::Upkeep::Set(new) => {
            let settings = shard::NewSettings {
                defaults: new.defaults,
                repair_share_percent: new.repair_share_percent,
                write_errors: new.write_errors,
                read_errors: new.read_errors,
                checksum_errors: new.checksum_errors,
                error_window_seconds: new.error_window_seconds,
                slow_factor: new.slow_factor,
                slow_latency_ms: new.slow_latency_ms,
                slow_seconds: new.slow_seconds,
                hung_seconds: new.hung_seconds,
                scrub_every_seconds: new.scrub_every_seconds,
                bin_seconds: new.bin_seconds,
            };
            To::Set { pool, settings }
        }
    }
}

pub fn settings(settings: shard::PoolSettings) -> api::Settings {
    api::Settings {
        repair_share_percent: settings.repair_share_percent,
        write_errors: settings.write_errors,
        read_errors: settings.read_errors,
        checksum_errors: settings.checksum_errors,
        error_window_seconds: settings.error_window_seconds,
        slow_factor: settings.slow_factor,
        slow_latency_ms: settings.slow_latency_ms,
        slow_seconds: settings.slow_seconds,
        hung_seconds: settings.hung_seconds,
        scrub_every_seconds: settings.scrub_every_seconds,
        bin_seconds: settings.bin_seconds,
    }
}

pub fn repair(repair: shard::RepairStatus) -> api::Repair {
    api::Repair {
        what: repair.what.to_owned(),
        done_bytes: repair.done_bytes,
        total_bytes: repair.total_bytes,
        bytes_per_second: repair.bytes_per_second,
        seconds_left: repair.seconds_left,
        short_bytes: repair.short_bytes,
    }
}

pub fn scrub(scrub: shard::ScrubStatus) -> api::Scrub {
    api::Scrub {
        running: scrub.running,
        segments_done: scrub.segments_done,
        segments_total: scrub.segments_total,
        batches_repaired: scrub.batches_repaired,
        batches_unreadable: scrub.batches_unreadable,
        last: scrub.last.map(|last| api::LastScrub {
            ended_ms: last.ended_ms,
            complete: last.complete,
            repaired: last.repaired,
            unreadable: last.unreadable,
        }),
    }
}
