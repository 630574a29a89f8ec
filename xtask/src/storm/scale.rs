//! A thousand LUNs, 256 sessions of one host that see them all: how long a start takes, and how much memory.

use std::time::{Duration, Instant};

use iscsi::initiator::{Event, Request};

use super::link::Link;
use super::{array, words};
use crate::shell::Result;

const VOLUMES: usize = 1000;
const SESSIONS: usize = 256;
/// A volume's size; thin, so that it costs nothing.
const VOLUME_BYTES: u64 = 1 << 30;
/// A start takes seconds.
const START_MAX: Duration = Duration::from_secs(10);
/// What the daemon may take with all of it, beyond an idle one: 2 KiB for each LUN of each session.
const MEMORY_KIB_MAX: u64 = 2 * (VOLUMES * SESSIONS) as u64;

/// See the module's words.
pub fn run() -> Result {
    let began = Instant::now();
    let mut head = array("scale", 1, VOLUMES, VOLUME_BYTES)?;
    println!("scale: {VOLUMES} volumes made and mapped in {} s", began.elapsed().as_secs());
    let stopped = head.stop()?;
    let started = head.start()?;
    let idle = head.usage()?;
    println!(
        "scale: stop {} ms, start until hosts are served {} ms; idle: {}",
        stopped.as_millis(),
        started.as_millis(),
        words(idle)
    );
    let target = head.target_name()?;
    let began = Instant::now();
    let mut sessions = Vec::new();
    for number in 0..SESSIONS {
        let mut session = Link::log_in_as(head.address, &target, 0, number as u16)?;
        let luns = count_luns(&mut session)?;
        if luns != VOLUMES {
            return Err(format!("session {number} sees {luns} LUNs"));
        }
        sessions.push(session);
    }
    let usage = head.usage()?;
    println!(
        "scale: {SESSIONS} sessions logged in and shown {VOLUMES} LUNs each in {} ms; {}",
        began.elapsed().as_millis(),
        words(usage)
    );
    sessions.into_iter().for_each(Link::log_out);
    if started > START_MAX {
        return Err(format!("a start took {started:?}"));
    }
    if usage.rss_kib > idle.rss_kib + MEMORY_KIB_MAX {
        return Err(format!("{} KiB are too much", usage.rss_kib));
    }
    head.remove()
}

/// REPORT LUNS.
fn count_luns(session: &mut Link) -> Result<usize> {
    let mut cdb = [0; 16];
    cdb[0] = 0xA0;
    cdb[6..10].copy_from_slice(&(1u32 << 16).to_be_bytes());
    let mut request = Request::new(0, cdb);
    request.expected_in = 1 << 16;
    session.send(request);
    while session.turn()? {
        if let Some(Event::Completed(_, completion)) = session.next_event() {
            return Ok((completion.data_in.len().saturating_sub(8)) / 8);
        }
    }
    Err("the session has ended".to_owned())
}
