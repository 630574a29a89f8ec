//! Erases a drive, so that it can be used anew.

use env::DriveHandle;
use pool::Content;
use task::Io;

use crate::drive_commands::done;
use crate::error::drive_error;
use crate::manager::Manager;
use crate::probed::Probed;
use api::{ChangeStep, CommandError, DriveHolds, DriveStep, Reply};

impl Manager {
    /// Refused if a pool, a volume or another process uses the drive, and if a pool has not been rebuilt without it.
    pub(crate) async fn wipe_drive(&self, path: &str, dry_run: bool) -> Result<Reply, CommandError> {
        let paths = [path.to_owned()];
        // named, and so forced: the caller knows that the drive is not blank
        let taken = self.take_drives(&paths, &paths).await?;
        let Probed { handle, info, content } = taken.first().expect("one was taken");
        let erase = DriveStep::EraseDrive {
            drive: path.to_owned(),
            size_bytes: info.size_bytes,
            holds: Some(self.labelled(content).unwrap_or_else(|| held(content))),
        };
        let losses = self.losses(&taken).into_iter().map(ChangeStep::from);
        let steps = [erase.into()].into_iter().chain(losses).collect();
        if let Err(error) = self.go_ahead() {
            self.close_drive(*handle).await;
            return Err(error);
        }
        self.waits_for(format!("it waits for {path} to be written"));
        let wiped = match dry_run {
            true => Ok(()),
            false => pool::wipe(&self.context.io, *handle, info.size_bytes).await,
        };
        self.close_drive(*handle).await;
        wiped.map_err(|error| drive_error(path, error))?;
        self.look_at_drives().await;
        Ok(done(steps, dry_run, None))
    }
}

/// What a drive holds, for people to read; `None`: nothing. Of a drive that has a record of a twin, only what pools leave counts.
pub async fn what_it_holds(io: &Io, drive: DriveHandle, has_record: bool) -> Option<String> {
    let content = pool::probe(io, drive).await;
    let is_empty = match content {
        Content::Blank => true,
        Content::Foreign(_) => has_record,
        _ => false,
    };
    (!is_empty).then(|| held(&content).to_string())
}

/// The content of a drive.
fn held(content: &Content) -> DriveHolds {
    match content {
        Content::Blank => DriveHolds::Nothing,
        Content::Foreign(what) => DriveHolds::Foreign { what: what.clone() },
        Content::Member(label) => DriveHolds::Member { pool: label.pool_name.clone(), array: None },
        Content::FutureVersion(_) | Content::UnknownFeatures(_) => DriveHolds::OtherVersion,
        Content::Damaged => DriveHolds::Damaged,
        Content::Unreadable(error) => DriveHolds::Unreadable { error: *error },
    }
}
