//! Connections that are killed: before a byte, in the middle of a login, after it, with commands and data under way.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iscsi::initiator::{Initiator, InitiatorParams};

use super::link::{self, Link};
use super::plan::{self, Operation, Prng, Work};
use super::tally::Shared;
use super::{array, check_flat, settled, words};
use crate::shell::Result;

const WORKERS: usize = 8;
/// Commands under way when a session is killed.
const COMMANDS: u64 = 8;

/// See the module's words.
pub fn run(connects: u64) -> Result {
    let mut head = array("connects", link::hosts(WORKERS), usize::from(plan::LUNS), plan::VOLUME_BYTES)?;
    let idle = head.usage()?;
    let shared = Shared::new(head.address, head.target_name()?);
    // buffers and maps are made once
    kill(&shared, connects.div_ceil(20))?;
    let warm = settled(&head, idle)?;
    println!("connects: idle: {}; warm: {}", words(idle), words(warm));
    let began = Instant::now();
    kill(&shared, connects)?;
    let rate = connects as f64 / began.elapsed().as_secs_f64();
    head.check_running()?;
    let after = settled(&head, idle)?;
    println!("connects: {connects} connections made and killed, {rate:.0} a second; after: {}", words(after));
    check_flat("connects", warm, after, idle.descriptors)?;
    let last = Link::log_in(head.address, &shared.target, 0)?;
    last.log_out();
    head.remove()
}

fn kill(shared: &Shared, connects: u64) -> Result {
    let left = AtomicU64::new(connects);
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                scope.spawn(move || -> Result {
                    let mut prng = Prng::new(0xC0_FFEE ^ (number as u64) << 40);
                    while take() {
                        one(shared, number, &mut prng)?;
                    }
                    Ok(())
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("it returns"))
            .collect::<Result<Vec<()>>>()
            .map(drop)
    })
}

/// One connection, and its end.
fn one(shared: &Shared, number: usize, prng: &mut Prng) -> Result {
    let stage = prng.below(4);
    if stage < 2 {
        let mut stream = connect(shared)?;
        if stage == 1 {
            // a part of the first login request
            let mut params = InitiatorParams::new(&link::initiator_name(0), Some(&shared.target));
            params.isid[5] = number as u8;
            let login = Initiator::new(params).take_output().concat();
            let part = 1 + prng.below(login.len() as u64) as usize;
            // it may have been closed at once: too many logins at the same time
            let _sent = stream.write_all(&login[..part]);
        }
        return Ok(());
    }
    let mut link = Link::log_in(shared.address, &shared.target, number)?;
    if stage == 3 {
        let first = plan::own_blocks(number)[0];
        for version in 1..=COMMANDS {
            let work = if version % 2 == 0 { Work::Read } else { Work::Write(version) };
            link.send(plan::request(&Operation { places: vec![first], work }));
        }
        link.push();
        // some of the answers are on their way, so that the kernel resets the connection
        std::thread::sleep(Duration::from_micros(prng.below(2000)));
    }
    link.drop_now();
    Ok(())
}

fn connect(shared: &Shared) -> Result<TcpStream> {
    TcpStream::connect(shared.address).map_err(|error| format!("a connection is refused: {error}"))
}
