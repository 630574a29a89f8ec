//! The addresses that this head is to have: added again and again while it owns the array, and given up when it does not.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::interface::Interfaces;
use crate::{FloatingAddress, announce};

/// How often an address is added anew: several times within its lifetime.
const RENEWAL: Duration = Duration::from_secs(1);

/// When others are told, from the moment on when the array is there: a frame may be lost, and the kernel of the head that had the address
/// before may answer for a few seconds.
const ANNOUNCEMENTS: [Duration; 7] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(6),
    Duration::from_secs(10),
];

/// How long a change waits for the kernel before it goes on.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(3);

/// Where this head stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// The other head may have them.
    Released,
    /// They are here, so that the array can listen on them.
    Held,
    /// The array serves hosts: others are told.
    Announced,
}

#[derive(Clone, Debug)]
struct Wanted {
    addresses: Vec<FloatingAddress>,
    stage: Stage,
    number: u64,
}

/// What this head is to have is said here. It is done in a task of its own, which ends with this.
pub struct Floating {
    wanted: watch::Sender<Wanted>,
    done: watch::Receiver<u64>,
}

impl Floating {
    /// Gives up what an earlier process of this head may have left. To be called on the runtime.
    pub fn start(addresses: Vec<FloatingAddress>) -> Floating {
        let (wanted, receiver) = watch::channel(Wanted { addresses, stage: Stage::Released, number: 1 });
        let (sender, done) = watch::channel(0);
        tokio::spawn(keep(receiver, sender));
        Floating { wanted, done }
    }

    /// What the configuration names now.
    pub fn set_addresses(&self, addresses: Vec<FloatingAddress>) {
        self.change(|wanted| wanted.addresses = addresses);
    }

    /// Returns when it is done, or cannot be done.
    pub async fn set_stage(&self, stage: Stage) {
        let number = self.change(|wanted| wanted.stage = stage);
        let mut done = self.done.clone();
        let is_done = done.wait_for(|done| *done >= number);
        if tokio::time::timeout(CHANGE_TIME_MAX, is_done).await.is_err() {
            tracing::error!("floating addresses: the kernel does not answer");
        }
    }

    fn change(&self, change: impl FnOnce(&mut Wanted)) -> u64 {
        let mut number = 0;
        self.wanted.send_modify(|wanted| {
            change(wanted);
            wanted.number += 1;
            number = wanted.number;
        });
        number
    }
}

/// An address that is to be here.
struct Kept {
    address: FloatingAddress,
    hardware: Option<[u8; 6]>,
    /// Why it is not here; told once.
    refusal: Option<String>,
    /// Announcements that were made.
    announced: usize,
}

async fn keep(mut wanted: watch::Receiver<Wanted>, done: watch::Sender<u64>) {
    let mut kept: Vec<Kept> = Vec::new();
    let mut announced_since = None;
    let interfaces = match Interfaces::open() {
        Ok(interfaces) => interfaces,
        Err(why) => {
            let _unread = done.send(u64::MAX);
            return tracing::error!("floating addresses: {why}");
        }
    };
    let mut before: Vec<FloatingAddress> = Vec::new();
    loop {
        let now = wanted.borrow_and_update().clone();
        // also those that an earlier process has left
        let gone =
            |address: &&FloatingAddress| now.stage == Stage::Released || !now.addresses.contains(address);
        let named: std::collections::BTreeSet<_> = before.iter().chain(&now.addresses).cloned().collect();
        for address in named.iter().filter(gone) {
            release(&interfaces, address).await;
        }
        before.clone_from(&now.addresses);
        let stays =
            |address: &FloatingAddress| now.stage > Stage::Released && now.addresses.contains(address);
        kept.retain(|kept| stays(&kept.address));
        for address in now.addresses.iter().filter(|address| stays(address)) {
            if !kept.iter().any(|kept| kept.address == *address) {
                let address = address.clone();
                kept.push(Kept { address, hardware: None, refusal: None, announced: 0 });
            }
        }
        announced_since = match now.stage {
            Stage::Announced => announced_since.or(Some(Instant::now())),
            Stage::Held | Stage::Released => None,
        };
        renew(&interfaces, &mut kept).await;
        let _unread = done.send(now.number);
        // until something else is wanted
        loop {
            let due = announce_due(&mut kept, announced_since).await;
            let next = due.unwrap_or(RENEWAL).min(RENEWAL);
            tokio::select! {
                changed = wanted.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                () = tokio::time::sleep(next) => renew(&interfaces, &mut kept).await,
            }
        }
    }
}

async fn release(interfaces: &Interfaces, address: &FloatingAddress) {
    match interfaces.release(address).await {
        Ok(true) => tracing::info!("{} is not on {} any more", address.address, address.interface),
        Ok(false) => {}
        Err(why) => tracing::error!("{} cannot be taken off {}: {why}", address.address, address.interface),
    }
}

async fn renew(interfaces: &Interfaces, kept: &mut [Kept]) {
    for kept in kept {
        let FloatingAddress { address, interface } = &kept.address;
        match interfaces.hold(&kept.address).await {
            Ok(hardware) => {
                if kept.hardware.is_none() || kept.refusal.is_some() {
                    tracing::info!("{address} is on {interface}");
                }
                (kept.hardware, kept.refusal) = (hardware, None);
            }
            Err(why) if kept.refusal.as_ref() == Some(&why) => {}
            Err(why) => {
                tracing::error!("{address} cannot be added to {interface}: {why}; hosts cannot reach it");
                (kept.refusal, kept.announced) = (Some(why), 0);
            }
        }
    }
}

/// Makes the announcements that are due. Gives the time until the next one.
async fn announce_due(kept: &mut [Kept], since: Option<Instant>) -> Option<Duration> {
    let passed = since?.elapsed();
    let mut next = None;
    for kept in kept {
        let Some(hardware) = kept.hardware.filter(|_| kept.refusal.is_none()) else { continue };
        while let Some(due) = ANNOUNCEMENTS.get(kept.announced) {
            if *due > passed {
                let left = *due - passed;
                next = Some(next.map_or(left, |next: Duration| next.min(left)));
                break;
            }
            // those that were due together are one
            while ANNOUNCEMENTS.get(kept.announced).is_some_and(|due| *due <= passed) {
                kept.announced += 1;
            }
            let address = kept.address.clone();
            let sent = tokio::task::spawn_blocking(move || announce::announce(&address, hardware)).await;
            if let Ok(Err(why)) = sent {
                let FloatingAddress { address, interface } = &kept.address;
                tracing::error!("{address} cannot be announced on {interface}: {why}");
            }
        }
    }
    next
}
