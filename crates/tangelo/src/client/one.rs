//! The commands that show a single object.

use control::client::{Server, path_piece};
use control::rest::*;
use serde::de::DeserializeOwned;

use super::upkeep::member;
use super::{Failure, Shown, show};
use crate::cli::{self, Command};
use crate::show::Show;

/// `None`: the command is another one.
pub(super) async fn show_one(command: &Command, server: &Server) -> Option<Result<Shown, Failure>> {
    let of = |kind: &str, name: &str| format!("/v1/{kind}/{}", path_piece(name));
    Some(match command {
        Command::Drive(cli::Drive::Show { drive }) => match member(drive, server) {
            Ok(drive) => get::<OneDrive>(&of("drives", &drive), server).await,
            Err(failure) => Err(failure),
        },
        Command::Pool(cli::Pool::Show { name }) => get::<OnePool>(&of("pools", name), server).await,
        Command::Volume(cli::Volume::Show { name }) => get::<OneVolume>(&of("volumes", name), server).await,
        Command::Snapshot(cli::Snapshot::Show { snapshot }) => {
            let path = format!("{}/{}", of("snapshots", &snapshot.volume), path_piece(&snapshot.snapshot));
            get::<OneSnapshot>(&path, server).await
        }
        Command::Schedule(cli::Schedule::Show { name }) => {
            get::<OneSchedule>(&of("schedules", name), server).await
        }
        Command::Host(cli::Host::Show { name }) => get::<OneHost>(&of("hosts", name), server).await,
        Command::Mapping(cli::Mapping::Show { volume, host }) => {
            let path = format!("{}/{}", of("mappings", host), path_piece(volume));
            get::<OneMapping>(&path, server).await
        }
        _ => return None,
    })
}

async fn get<T: DeserializeOwned + Show>(path: &str, server: &Server) -> Result<Shown, Failure> {
    Ok(show(server.get::<T>(path).await?))
}
