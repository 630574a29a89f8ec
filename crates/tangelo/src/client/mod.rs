//! Every command but `serve`: asks the array's API, shows the answer, gives the exit code.

mod alert;
mod ask;
mod copies;
mod events;
mod names;
mod one;
mod pair;
mod password;
#[cfg(test)]
mod tests;
mod transfer;
#[cfg(test)]
mod transfer_tests;
mod upkeep;
mod user;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use api::{AccessState, GroupAccess, NewBacking, NewChap, NewHost, NewVolume};
use base::BLOCK_BYTES;
use control::client::{ClientError, Server, is_wrong_usage, path_piece};
use control::rest::*;
use control::secret_file;
use serde_json::json;

use self::ask::Ask;
use crate::cli::{self, Cli, Global, Output};
use crate::show::Show;

/// On the status screen: of more snapshots, only how many there are.
const STATUS: &str = "/v1/status?snapshots=24";

/// Why a command has no answer to show.
enum Failure {
    Client(ClientError),
    /// What was typed cannot be asked.
    Usage(String),
    /// A file here could not be read or written.
    File(String),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        Failure::Client(error)
    }
}

/// Carries out the command. 0 fine, 1 degraded or refused, 2 wrong usage or critical.
pub fn run(cli: &Cli, out: &mut dyn Write, errors: &mut dyn Write) -> io::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let global = &cli.global;
    if let cli::Command::Events(wanted @ cli::Events { follow: true, .. }) = &cli.command {
        let server = global.server();
        let failure = runtime.block_on(events::follow(wanted, &server, global.output, out))?;
        return report(failure, global.output, out, errors);
    }
    match runtime.block_on(answer(&cli.command, global)) {
        Ok(answer) => {
            match global.output {
                Output::Table => out.write_all(answer.text.as_bytes())?,
                Output::Json => writeln!(out, "{}", answer.json)?,
            }
            Ok(answer.exit_code)
        }
        Err(failure) => report(failure, global.output, out, errors),
    }
}

fn report(failure: Failure, output: Output, out: &mut dyn Write, errors: &mut dyn Write) -> io::Result<u8> {
    let (code, message, hint, exit_code) = match &failure {
        Failure::Usage(message) => (json!("usage"), message.clone(), "", 2),
        Failure::File(message) => (json!("file"), message.clone(), "", 2),
        Failure::Client(error) => {
            let (code, exit_code) = match error {
                ClientError::Refused(refusal) => {
                    (json!(refusal.kind), if is_wrong_usage(error) { 2 } else { 1 })
                }
                _ => (json!("unreachable"), 2),
            };
            (code, error.to_string(), error.hint(), exit_code)
        }
    };
    if output == Output::Json {
        let error = json!({ "schema": SCHEMA, "error": { "code": code, "message": message, "hint": hint } });
        writeln!(out, "{error:#}")?;
    } else {
        writeln!(errors, "error: {message}")?;
        if !hint.is_empty() {
            writeln!(errors, " hint: {hint}")?;
        }
    }
    Ok(exit_code)
}

/// An answer in every form it may be printed in.
struct Shown {
    text: String,
    json: String,
    exit_code: u8,
}

fn show<T: Show>(answer: T) -> Shown {
    let json = serde_json::to_string_pretty(&answer).expect("answers can be said in JSON");
    Shown { text: answer.text(), json, exit_code: answer.exit_code() }
}

async fn answer(command: &cli::Command, global: &Global) -> Result<Shown, Failure> {
    let server = &global.server();
    if let Some(shown) = one::show_one(command, server).await {
        return shown;
    }
    match command {
        cli::Command::Status => pair::status(server).await,
        cli::Command::Drive(drive) => upkeep::drive(drive, server).await,
        cli::Command::Pool(pool @ (cli::Pool::Rename(_) | cli::Pool::Delete { .. })) => {
            names::pool(pool, server).await
        }
        cli::Command::Pool(pool) => upkeep::pool(pool, server).await,
        cli::Command::Volume(cli::Volume::List) => Ok(show(server.get::<VolumeList>("/v1/volumes").await?)),
        cli::Command::Volume(cli::Volume::Create(create)) => {
            let volume = new_volume(create, server)?;
            changed(server.post(&change_path("/v1/volumes", &create.change), &volume).await?)
        }
        cli::Command::Volume(volume @ (cli::Volume::Resize { .. } | cli::Volume::Access { .. })) => {
            change_volume(volume, server).await
        }
        cli::Command::Volume(cli::Volume::Clone { from, name, change }) => {
            copies::clone(from, name, change, server).await
        }
        cli::Command::Volume(volume @ (cli::Volume::Export(_) | cli::Volume::Import(_))) => {
            transfer::volume(volume, global.output, server).await
        }
        cli::Command::Volume(cli::Volume::Rename(rename)) => names::rename("volumes", rename, server).await,
        cli::Command::Host(cli::Host::Rename(rename)) => names::rename("hosts", rename, server).await,
        cli::Command::Host(cli::Host::Set(set)) => names::set_host(set, server).await,
        cli::Command::Volume(volume) => copies::volume(volume, server).await,
        cli::Command::Snapshot(snapshot) => copies::snapshot(snapshot, server).await,
        cli::Command::Schedule(schedule) => copies::schedule(schedule, server).await,
        cli::Command::Host(cli::Host::List) => Ok(show(server.get::<HostList>("/v1/hosts").await?)),
        cli::Command::Host(cli::Host::Create(create)) => {
            let host = new_host(create)?;
            changed(server.post(&change_path("/v1/hosts", &create.change), &host).await?)
        }
        cli::Command::Host(cli::Host::Delete { name, unmap, change }) => {
            let path = format!("/v1/hosts/{}?unmap={unmap}&dry_run={}", path_piece(name), change.dry_run);
            changed(server.delete(&path).await?)
        }
        cli::Command::Pair(pair) => pair::pair(pair, server).await,
        cli::Command::Alert(alert) => alert::alert(alert, server).await,
        cli::Command::User(user) => user::user(user, server).await,
        cli::Command::Token(token) => user::token(token, server).await,
        cli::Command::Web(web) => user::web(web, server).await,
        cli::Command::Events(events) => Ok(show(events::list(events, server).await?)),
        cli::Command::Map(mapping) => map(mapping, server).await,
        cli::Command::Unmap(mapping) => unmap(mapping, server).await,
        cli::Command::Mapping(cli::Mapping::List) => {
            Ok(show(server.get::<MappingList>("/v1/mappings").await?))
        }
        cli::Command::Host(cli::Host::Show { .. }) | cli::Command::Mapping(cli::Mapping::Show { .. }) => {
            unreachable!("these have been shown")
        }
        cli::Command::Serve(_)
        | cli::Command::Bench(_)
        | cli::Command::Witness(_)
        | cli::Command::Register(_)
        | cli::Command::Completions { .. }
        | cli::Command::Complete { .. }
        | cli::Command::Man { .. } => {
            unreachable!("these ask nobody")
        }
    }
}

async fn map(map: &cli::Map, server: &Server) -> Result<Shown, Failure> {
    let (volume, host) = (map.volume.clone(), map.host.clone());
    let mapping = NewMapping { volume, host, lun: map.lun, read_only: map.read_only };
    changed(server.post(&change_path("/v1/mappings", &map.change), &mapping).await?)
}

async fn unmap(unmap: &cli::Unmap, server: &Server) -> Result<Shown, Failure> {
    let path = format!("/v1/mappings/{}/{}", path_piece(&unmap.host), path_piece(&unmap.volume));
    changed(server.delete(&change_path(&path, &unmap.change)).await?)
}

async fn change_volume(volume: &cli::Volume, server: &Server) -> Result<Shown, Failure> {
    match volume {
        cli::Volume::Resize { name, size, force, change } => {
            let path = format!("/v1/volumes/{}", path_piece(name));
            let update = VolumeUpdate { size_bytes: round_up(*size), force: *force };
            let ask = Ask::patch(path, &update);
            match force {
                true => ask.destroy(change, server).await,
                // what holds data is refused
                false => ask.change(&cli::Change { dry_run: change.dry_run }, server).await,
            }
        }
        cli::Volume::Access { name, group, state, change } => {
            let state = match state {
                cli::Access::ActiveOptimized => AccessState::ActiveOptimized,
                cli::Access::ActiveNonOptimized => AccessState::ActiveNonOptimized,
                cli::Access::Standby => AccessState::Standby,
                cli::Access::Unavailable => AccessState::Unavailable,
            };
            let path = format!("/v1/volumes/{}/access", path_piece(name));
            let access = GroupAccess { group: *group, state };
            changed(server.post(&change_path(&path, change), &access).await?)
        }
        other => unreachable!("{other:?} is carried out elsewhere"),
    }
}

fn changed(changed: Changed) -> Result<Shown, Failure> {
    Ok(show(changed))
}

fn change_path(path: &str, change: &cli::Change) -> String {
    if change.dry_run { format!("{path}?dry_run=true") } else { path.to_owned() }
}

fn new_volume(create: &cli::VolumeCreate, server: &Server) -> Result<NewVolume, Failure> {
    let backing = match &create.backing {
        cli::Backing { pool: Some(pool), .. } => NewBacking::Pool(pool.clone()),
        cli::Backing { raw: Some(path), .. } => NewBacking::Raw(absolute(path, server)?),
        cli::Backing { memory: true, .. } => NewBacking::Memory,
        _ => NewBacking::Null,
    };
    Ok(NewVolume {
        name: create.name.clone(),
        backing,
        size_bytes: create.size.map(round_up),
        block_bytes: create.block_size,
        write_back: create.write_back,
    })
}

/// A size as volumes can have it.
fn round_up(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(BLOCK_BYTES as u64).unwrap_or(bytes)
}

fn new_host(create: &cli::HostCreate) -> Result<NewHost, Failure> {
    Ok(NewHost {
        name: create.name.clone(),
        initiators: create.iqn.clone(),
        chap: chap(&create.chap_user, &create.chap_secret_file)?,
        mutual_chap: chap(&create.mutual_chap_user, &create.mutual_chap_secret_file)?,
    })
}

fn chap(user: &Option<String>, file: &Option<PathBuf>) -> Result<Option<NewChap>, Failure> {
    let (Some(user), Some(file)) = (user, file) else { return Ok(None) };
    Ok(Some(NewChap { user: user.clone(), secret: read_secret(file)? }))
}

/// The file's content without the line end that editors leave behind it.
fn read_secret(path: &Path) -> Result<String, Failure> {
    let refuse = |reason: String| Failure::Usage(format!("{}: {reason}", path.display()));
    let text = secret_file::read(path).map_err(|error| refuse(format!("the CHAP secret: {error}")))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// The path as the head knows it. One that is relative is taken from here, which only makes sense on the head.
fn absolute(path: &Path, server: &Server) -> Result<String, Failure> {
    let refuse = |reason: &str| Failure::Usage(format!("{}: {reason}", path.display()));
    if path.is_relative() && !matches!(server, Server::Socket(_)) {
        return Err(refuse("with --server, paths are the server's: give an absolute one"));
    }
    let absolute = std::path::absolute(path).map_err(|error| refuse(&error.to_string()))?;
    // "./x" and "x" are the same; ".." stays, since what it means depends on links.
    absolute.to_str().map(str::to_owned).ok_or_else(|| refuse("the path is not UTF-8 text"))
}
