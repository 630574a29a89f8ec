//! The drives of a pool get twins while it is not open: the array is stopped for that, and started again.
//!
//! What always holds: if twins cannot be made, the array starts without them, as it was.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use api::{
    Change, ChangeStep, Command, CommandError, CommandErrorKind, DriveState, DriveStatus, InWords, PairStep,
    PoolStatus, Reply,
};
use control::array::Array;
use heads::{InUse, Pairing, RECORD_BYTES, SharedRecord, SharedWish, TwinId, TwinsError, TwinsWish, twin_of};
use setup::PairFile;

use super::super::mailbox::EngineArray;
use super::array::refused;
use super::threads::HeadMailbox;

/// How long a start waits for the other head, if a pool is to be converted.
const PARTNER_TIME: Duration = Duration::from_secs(3);
/// How long all of it may take: hosts wait, and shards that do not run yet are not to be taken for shards that hang.
const REMEMBERED_TIME: Duration = Duration::from_secs(4);
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Has the head make twins.
pub async fn make(head: &HeadMailbox, wish: TwinsWish) -> Result<Vec<Pairing>, TwinsError> {
    head.ask(move |head| head.make_twins(wish)).await.unwrap_or(Err(TwinsError::NotOwner))
}

/// Has the head make drives that both heads see. These have become it.
pub async fn share(head: &HeadMailbox, wish: SharedWish) -> Result<Vec<String>, TwinsError> {
    let drives = if wish.dry_run { Vec::new() } else { wish.drives.clone() };
    let made = head.ask(move |head| head.make_shared(wish)).await;
    made.unwrap_or(Err(TwinsError::NotOwner)).map(|()| drives)
}

/// Whether both heads see the drives of this pool. A pool that does not exist is refused by the array.
pub async fn is_shared(engine: &EngineArray, pool: &str) -> Result<bool, CommandError> {
    let drives = status_of(engine, pool).await.map(|pool| pool.drives).unwrap_or_default();
    Ok(drives.iter().any(|drive| is_shared_at(&drive.path)))
}

/// Whether both heads see the drive at this path. One that cannot be read is none.
pub(super) fn is_shared_at(path: &str) -> bool {
    start_of(path).is_some_and(|start| SharedRecord::decode(&start).is_some())
}

async fn status_of(engine: &EngineArray, pool: &str) -> Result<PoolStatus, CommandError> {
    let status = match engine.call(Command::Status).await? {
        Reply::Status(status) => status,
        other => unreachable!("the array answered a status command with {other:?}"),
    };
    status.pools.into_iter().find(|found| found.name == pool).ok_or_else(|| {
        let hint = "`tangelo pool list` shows what there is";
        CommandError::new(CommandErrorKind::NotFound, format!("there is no pool called \"{pool}\""), hint)
    })
}

/// What converting a pool to one whose drives both heads see would do, and its drives.
pub async fn convert_shared(
    engine: &EngineArray,
    pool: &str,
    dry_run: bool,
) -> Result<(Change, Vec<String>), CommandError> {
    let refuse = |message| Err(CommandError::new(CommandErrorKind::InUse, message, ""));
    let drives = drives_of(&status_of(engine, pool).await?)?;
    if let Some(twin) = drives.iter().find(|drive| drive.twin.is_some()) {
        return refuse(format!("{} has a twin on the other head: pool {pool} is on both heads", twin.path));
    }
    if is_shared(engine, pool).await? {
        return refuse(format!("both heads see the drives of pool {pool} already"));
    }
    let reserve = |drive: &InUse| PairStep::ReserveDrive { drive: drive.path.clone() };
    let steps = [PairStep::RestartArray { alone: false }].into_iter().chain(drives.iter().map(reserve));
    let steps = steps.map(ChangeStep::from).collect();
    let change = Change { dry_run, steps, hosts_affected: Vec::new(), made: None };
    Ok((change, drives.into_iter().map(|drive| drive.path).collect()))
}

/// What converting a pool would do, and its drives.
pub async fn convert(
    head: &HeadMailbox,
    engine: &EngineArray,
    pool: &str,
    dry_run: bool,
) -> Result<(Change, Vec<String>), CommandError> {
    let drives = drives_of(&status_of(engine, pool).await?)?;
    if is_shared(engine, pool).await? {
        let message = format!("both heads see the drives of pool {pool}");
        return Err(CommandError::new(CommandErrorKind::InUse, message, "it needs no twins"));
    }
    let planned = head.ask(move |head| head.plan_twins(drives)).await.unwrap_or(Err(TwinsError::NotOwner));
    let pairings = planned.map_err(|error| refused(&error))?;
    if pairings.is_empty() {
        let message = format!("pool {pool} is on both heads already");
        return Err(CommandError::new(CommandErrorKind::InUse, message, ""));
    }
    let make = |pairing: &Pairing| PairStep::MakeTwin {
        drive: pairing.own.clone(),
        twin: pairing.partners.clone(),
        copied_bytes: pairing.mirrored_bytes,
    };
    let steps = [PairStep::RestartArray { alone: false }].into_iter().chain(pairings.iter().map(make));
    let steps = steps.map(ChangeStep::from).collect();
    let change = Change { dry_run, steps, hosts_affected: Vec::new(), made: None };
    Ok((change, pairings.into_iter().map(|pairing| pairing.own).collect()))
}

fn drives_of(pool: &PoolStatus) -> Result<Vec<InUse>, CommandError> {
    let drive = |drive: &DriveStatus| match drive.state {
        DriveState::Online => {
            let (path, twin) = (drive.path.clone(), twin_at(&drive.path));
            Ok(InUse { path, bytes: drive.size_bytes, twin })
        }
        _ => {
            let message = format!("{} of pool {} is not online", drive.path, pool.name);
            let hint = "replace or remove it first: each drive of the pool gets a twin";
            Err(CommandError::new(CommandErrorKind::InUse, message, hint))
        }
    };
    pool.drives.iter().map(drive).collect()
}

/// Which twin the drive at this path is. One that cannot be read is none.
pub(super) fn twin_at(path: &str) -> Option<TwinId> {
    twin_of(&start_of(path)?)
}

/// The first 16 KiB of a drive, which nobody but its head writes.
fn start_of(path: &str) -> Option<[u8; RECORD_BYTES]> {
    let mut start = [0; RECORD_BYTES];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).ok()?;
    Some(start)
}

/// For the next start, with what is to be done there already.
/// `both_see`: they become drives that both heads see.
pub fn remember(state_dir: &Path, drives: &[String], both_see: bool) -> Result<(), CommandError> {
    let note = |pair: &mut PairFile| {
        let known = if both_see { &mut pair.share } else { &mut pair.convert };
        let new: Vec<String> = drives.iter().filter(|drive| !known.contains(drive)).cloned().collect();
        known.extend(new);
        true
    };
    PairFile::update(state_dir, note)
        .map(drop)
        .map_err(|error| CommandError::new(CommandErrorKind::Io, error.to_string(), ""))
}

/// At a start, before the array: makes the twins that an earlier run was asked for. Asked once: what fails is to be asked for again.
pub async fn make_remembered(state_dir: &Path, head: &HeadMailbox) {
    if tokio::time::timeout(REMEMBERED_TIME, make_them(state_dir, head)).await.is_err() {
        tracing::error!(
            "the pool is not on both heads: that took too long; `tangelo pool convert` tries again"
        );
    }
}

async fn make_them(state_dir: &Path, head: &HeadMailbox) {
    let (mut drives, mut shared) = (Vec::new(), Vec::new());
    let take = |pair: &mut PairFile| {
        (drives, shared) = (std::mem::take(&mut pair.convert), std::mem::take(&mut pair.share));
        !drives.is_empty() || !shared.is_empty()
    };
    if let Err(error) = PairFile::update(state_dir, take) {
        return tracing::error!("{error}");
    }
    if !drives.is_empty() {
        let wish = TwinsWish { drives, force: Vec::new(), keep: true, dry_run: false };
        until_made(async || Ok(twin_steps(make(head, wish.clone()).await?))).await;
    }
    if !shared.is_empty() {
        // what they hold is the pool
        let wish = SharedWish { force: shared.clone(), drives: shared, dry_run: false };
        until_made(async || Ok(share_steps(share(head, wish.clone()).await?))).await;
    }
}

/// Drives have got their twins.
pub fn twin_steps(made: Vec<Pairing>) -> Vec<PairStep> {
    let step = |Pairing { own, partners, .. }| PairStep::TwinDrive { drive: own, twin: partners };
    made.into_iter().map(step).collect()
}

/// Both heads see these drives.
pub fn share_steps(made: Vec<String>) -> Vec<PairStep> {
    made.into_iter().map(|drive| PairStep::ShareDrive { drive }).collect()
}

/// Tries again as long as the other head may not be there yet, and writes to the log what has been made.
async fn until_made(mut make: impl AsyncFnMut() -> Result<Vec<PairStep>, TwinsError>) {
    let until = tokio::time::Instant::now() + PARTNER_TIME;
    loop {
        match make().await {
            Ok(steps) => return steps.iter().for_each(|step| tracing::info!("{}", step.text())),
            Err(TwinsError::Unreachable | TwinsError::Own { error: env::IoError::Busy, .. })
                if tokio::time::Instant::now() < until =>
            {
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            Err(error) => {
                return tracing::error!(
                    "the pool is not on both heads: {error}; `tangelo pool convert` tries again"
                );
            }
        }
    }
}
