//! The commands for pools, and for adding, removing and replacing their drives.

use std::path::PathBuf;

use api::{NewPool, NewSettings};
use control::client::{Server, path_piece};
use control::rest::*;

use super::ask::Ask;
use super::{Failure, Shown, absolute, change_path, changed, show};
use crate::cli;

pub(super) async fn drive(drive: &cli::Drive, server: &Server) -> Result<Shown, Failure> {
    let of_pool = |pool: &str, what: &str| format!("/v1/pools/{}/drives{what}", path_piece(pool));
    match drive {
        cli::Drive::Show { .. } => unreachable!("it has been shown"),
        cli::Drive::List => Ok(show(server.get::<DriveList>("/v1/drives").await?)),
        cli::Drive::Add { pool, drives, force, change } => {
            let new = NewDrives { drives: paths(drives, server)?, force: paths(force, server)? };
            changed(server.post(&change_path(&of_pool(pool, ""), change), &new).await?)
        }
        cli::Drive::Remove { pool, drive, cancel, change } => {
            let removal = DriveRemoval { drive: member(drive, server)?, cancel: *cancel };
            changed(server.post(&change_path(&of_pool(pool, "/remove"), change), &removal).await?)
        }
        cli::Drive::Replace { pool, old, new, force, change } => {
            let (old, new) = (member(old, server)?, absolute(new, server)?);
            let replacement = DriveReplacement { old, new, force: *force };
            changed(server.post(&change_path(&of_pool(pool, "/replace"), change), &replacement).await?)
        }
        cli::Drive::Spare { pool, drives, release, change } => {
            let spares = Spares { drives: paths(drives, server)?, release: *release };
            let path = format!("/v1/pools/{}/spares", path_piece(pool));
            changed(server.post(&change_path(&path, change), &spares).await?)
        }
        cli::Drive::Wipe { drive, change } => {
            let wipe = DriveWipe { path: absolute(drive, server)? };
            Ask::post("/v1/drives/wipe", &wipe).destroy(change, server).await
        }
        cli::Drive::Clear { drive, change, .. } => {
            let drive = drive.as_ref().map(|drive| member(drive, server)).transpose()?;
            changed(server.post(&change_path("/v1/drives/clear", change), &DriveClear { drive }).await?)
        }
        cli::Drive::Locate { path, seconds } => {
            let locating = Locating { path: absolute(path, server)?, seconds: *seconds };
            changed(server.post("/v1/drives/locate", &locating).await?)
        }
    }
}

pub(super) async fn pool(pool: &cli::Pool, server: &Server) -> Result<Shown, Failure> {
    let of_pool = |pool: &str, what: &str| format!("/v1/pools/{}/{what}", path_piece(pool));
    match pool {
        cli::Pool::List => Ok(show(server.get::<PoolList>("/v1/pools").await?)),
        cli::Pool::Create(create) => {
            let pool = new_pool(create, server)?;
            changed(server.post(&change_path("/v1/pools", &create.change), &pool).await?)
        }
        cli::Pool::Scrub { name, every: Some(seconds), change, .. } => {
            let settings = NewSettings { scrub_every_seconds: Some(*seconds), ..NewSettings::default() };
            changed(server.post(&change_path(&of_pool(name, "settings"), change), &settings).await?)
        }
        cli::Pool::Scrub { name, stop, change, .. } => {
            let scrubbing = Scrubbing { stop: *stop };
            changed(server.post(&change_path(&of_pool(name, "scrub"), change), &scrubbing).await?)
        }
        cli::Pool::Set(set) => {
            let settings = NewSettings::from_values(set.defaults, set.settings.0);
            changed(server.post(&change_path(&of_pool(&set.name, "settings"), &set.change), &settings).await?)
        }
        cli::Pool::Upgrade { name, change } => {
            changed(server.post(&change_path(&of_pool(name, "upgrade"), change), &()).await?)
        }
        cli::Pool::Convert { name, shared, change, .. } => {
            let converting = Converting { shared: *shared };
            changed(server.post(&change_path(&of_pool(name, "convert"), change), &converting).await?)
        }
        other => unreachable!("{other:?} is carried out elsewhere"),
    }
}

fn new_pool(create: &cli::PoolCreate, server: &Server) -> Result<NewPool, Failure> {
    let (drives, force) = (paths(&create.drives, server)?, paths(&create.force, server)?);
    if let Some(stranger) = force.iter().find(|path| !drives.contains(path)) {
        return Err(Failure::Usage(format!(
            "--force {stranger}: it is none of the drives that the pool is made of"
        )));
    }
    Ok(NewPool {
        name: create.name.clone(),
        protection: create.protection.name(),
        width: create.width,
        drives,
        force,
        across_heads: create.across_heads,
        shared: create.shared,
    })
}

fn paths(paths: &[PathBuf], server: &Server) -> Result<Vec<String>, Failure> {
    paths.iter().map(|path| absolute(path, server)).collect()
}

/// A drive of a pool: an id has neither slashes nor dots.
pub(super) fn member(name: &str, server: &Server) -> Result<String, Failure> {
    let is_id = name.len() >= 4 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { Ok(name.to_owned()) } else { absolute(std::path::Path::new(name), server) }
}
