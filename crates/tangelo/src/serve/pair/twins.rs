//! The drives of a pool get twins while it is not open: the array is stopped for that, and started again.
//!
//! What always holds: if twins cannot be made, the array starts without them, as it was.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use api::{Change, Command, CommandError, CommandErrorKind, DriveState, DriveStatus, PoolStatus, Reply};
use base::units::size;
use control::array::Array;
use heads::{InUse, Pairing, RECORD_BYTES, TwinId, TwinsError, TwinsWish, twin_of};
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

/// What converting a pool would do, and its drives.
pub async fn convert(
    head: &HeadMailbox,
    engine: &EngineArray,
    pool: &str,
    dry_run: bool,
) -> Result<(Change, Vec<String>), CommandError> {
    let status = match engine.call(Command::Status).await? {
        Reply::Status(status) => status,
        other => unreachable!("the array answered a status command with {other:?}"),
    };
    let found = status.pools.iter().find(|found| found.name == pool).ok_or_else(|| {
        let hint = "`tangelo pool list` shows what there is";
        CommandError::new(CommandErrorKind::NotFound, format!("there is no pool called \"{pool}\""), hint)
    })?;
    let drives = drives_of(found)?;
    let planned = head.ask(move |head| head.plan_twins(drives)).await.unwrap_or(Err(TwinsError::NotOwner));
    let pairings = planned.map_err(|error| refused(&error))?;
    if pairings.is_empty() {
        let message = format!("pool {pool} is on both heads already");
        return Err(CommandError::new(CommandErrorKind::InUse, message, ""));
    }
    let mut lines = vec!["start the array again, which hosts notice as a pause of about a second".to_owned()];
    lines.extend(pairings.iter().map(|pairing| {
        let bytes = size(pairing.mirrored_bytes);
        format!("make {} of the other head the twin of {}; {bytes} are copied", pairing.partners, pairing.own)
    }));
    let change = Change { dry_run, lines, hosts_affected: Vec::new(), made: None };
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
fn twin_at(path: &str) -> Option<TwinId> {
    let mut start = [0; RECORD_BYTES];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).ok()?;
    twin_of(&start)
}

/// For the next start, with what is to be done there already.
pub fn remember(state_dir: &Path, drives: &[String]) -> Result<(), CommandError> {
    let note = |pair: &mut PairFile| {
        let new = drives.iter().filter(|drive| !pair.convert.contains(drive));
        pair.convert = pair.convert.iter().chain(new).cloned().collect();
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
    let mut drives = Vec::new();
    let take = |pair: &mut PairFile| {
        drives = std::mem::take(&mut pair.convert);
        !drives.is_empty()
    };
    if let Err(error) = PairFile::update(state_dir, take) {
        return tracing::error!("{error}");
    }
    if drives.is_empty() {
        return;
    }
    let wish = TwinsWish { drives, force: Vec::new(), keep: true, dry_run: false };
    let until = tokio::time::Instant::now() + PARTNER_TIME;
    loop {
        match make(head, wish.clone()).await {
            Ok(pairings) => {
                for Pairing { own, partners, .. } in pairings {
                    tracing::info!("the twin of {own} is {partners} of the other head");
                }
                return;
            }
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
