//! `cargo xtask storm`: a real daemon on file drives, over real TCP on loopback, in circumstances that no host should make
//! but some do.
//!
//! - the storm: sessions that write and read while commands are aborted, units and targets reset, and sessions dropped and
//!   replaced, at random. No write may be lost, late or torn, no compare-and-write may match twice, and the daemon's
//!   memory and descriptors stay as they were.
//! - `--connects`: connections that are killed at every stage of a login and after it, as many as are asked for.
//! - `--scale`: a thousand LUNs and 256 sessions: how long a start takes, and how much memory.

mod connects;
mod content;
mod head;
mod link;
mod plan;
mod scale;
mod session;
mod tally;

use std::time::{Duration, Instant};

use clap::Args;

use self::head::{Head, Usage};
use self::session::Session;
use self::tally::Shared;
use crate::shell::Result;

#[derive(Args)]
pub struct Options {
    /// Minutes that the storm lasts; 0 for none
    #[arg(long, default_value = "10")]
    minutes: f64,
    /// Sessions of the storm, eight to a host
    #[arg(long, default_value = "64", value_parser = clap::value_parser!(u16).range(1..=512))]
    sessions: u16,
    /// Connections to make and kill
    #[arg(long, default_value = "0")]
    connects: u64,
    /// Also 1,000 LUNs and 256 sessions
    #[arg(long)]
    scale: bool,
    /// What decides everything but time; fresh if not given
    #[arg(long)]
    seed: Option<u64>,
}

/// Memory that may be in use afterwards, in percent of what was in use before, and in KiB beyond it.
const GROWTH_PERCENT_MAX: u64 = 25;
const GROWTH_KIB_MAX: u64 = 64 << 10;
/// Descriptors that may be open afterwards, beyond those before: the API's, not yet closed.
const DESCRIPTORS_MAX: usize = 4;

pub fn run(options: &Options) -> Result {
    let seed = options.seed.unwrap_or_else(crate::simulate::fresh_seed);
    if options.minutes > 0.0 {
        storm(options, seed)?;
    }
    if options.connects > 0 {
        connects::run(options.connects)?;
    }
    if options.scale {
        scale::run()?;
    }
    Ok(())
}

/// An array with hosts and volumes, every volume at its LUN for every host.
fn array(name: &str, hosts: usize, volumes: usize, bytes: u64) -> Result<Head> {
    let head = Head::new(name)?;
    head.create_pool()?;
    for host in 0..hosts {
        head.command(&["host", "create", &format!("h{host}"), "--iqn", &link::initiator_name(host)])?;
    }
    for volume in 0..volumes {
        let (name, size) = (format!("v{volume}"), format!("{}KiB", bytes >> 10));
        head.command(&["volume", "create", &name, "--pool", "p", "--size", &size])?;
        for host in 0..hosts {
            let (host, lun) = (format!("h{host}"), volume.to_string());
            head.command(&["map", &name, &host, "--lun", &lun])?;
        }
    }
    Ok(head)
}

fn storm(options: &Options, seed: u64) -> Result {
    let sessions = usize::from(options.sessions);
    let mut head = array("storm", link::hosts(sessions), usize::from(plan::LUNS), plan::VOLUME_BYTES)?;
    let idle = head.usage()?;
    let shared = Shared::new(head.address, head.target_name()?);
    let length = Duration::from_secs_f64(options.minutes * 60.0);
    println!("storm: {sessions} sessions for {} s, seed {seed}; idle: {}", length.as_secs(), words(idle));
    let result = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..sessions)
            .map(|number| {
                let shared = &shared;
                scope.spawn(move || {
                    let ran = Session::new(shared, number, seed).and_then(Session::run);
                    // one that fails ends the storm
                    shared.end();
                    ran.map_err(|why| format!("session {number}: {why}"))
                })
            })
            .collect();
        let watched = watch(&mut head, &shared, length);
        shared.end();
        let ends: Vec<Result> =
            workers.into_iter().map(|worker| worker.join().expect("it returns")).collect();
        ends.into_iter().collect::<Result<Vec<()>>>().and(watched)
    });
    shared.tally.lines().iter().for_each(|line| println!("storm: {line}"));
    let warm = result?;
    let after = settled(&head, idle)?;
    println!("storm: warm: {}; after: {}", words(warm), words(after));
    check_flat("storm", warm, after, idle.descriptors)?;
    head.remove()?;
    println!("storm: no lost, late or duplicated write; memory and descriptors flat");
    Ok(())
}

/// Lets the time pass; what was in use after a fifth of it, when everything has been touched.
fn watch(head: &mut Head, shared: &Shared, length: Duration) -> Result<Usage> {
    let began = Instant::now();
    let mut warm = None;
    let mut told = began;
    while began.elapsed() < length && !shared.is_over() {
        std::thread::sleep(Duration::from_millis(100));
        head.check_running()?;
        if warm.is_none() && began.elapsed() > length / 5 {
            warm = Some(head.usage()?);
        }
        if told.elapsed() > Duration::from_secs(30) {
            told = Instant::now();
            println!("storm: {} s: {}", began.elapsed().as_secs(), words(head.usage()?));
        }
    }
    warm.map_or_else(|| head.usage(), Ok)
}

/// What is in use when connections have been given up: not at once.
fn settled(head: &Head, before: Usage) -> Result<Usage> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let now = head.usage()?;
        if now.descriptors <= before.descriptors || Instant::now() > deadline {
            return Ok(now);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn check_flat(what: &str, before: Usage, after: Usage, descriptors: usize) -> Result {
    let allowed = before.rss_kib + before.rss_kib * GROWTH_PERCENT_MAX / 100 + GROWTH_KIB_MAX;
    if after.rss_kib > allowed {
        return Err(format!("{what}: memory has grown from {} to {} KiB", before.rss_kib, after.rss_kib));
    }
    if after.descriptors > descriptors + DESCRIPTORS_MAX {
        return Err(format!("{what}: {} descriptors are open, {descriptors} were", after.descriptors));
    }
    Ok(())
}

fn words(usage: Usage) -> String {
    format!("{} MiB, {} descriptors", usage.rss_kib >> 10, usage.descriptors)
}
