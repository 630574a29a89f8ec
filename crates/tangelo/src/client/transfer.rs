//! Exports a volume into a file, and imports a file into a volume. Holes stay holes on the way.
//!
//! What always holds: a file gets its name when it holds the whole export and is durable. Until then it is called
//! `FILE.CONTENT.part`; `CONTENT` identifies the content. An export of a snapshot resumes at the end of its part.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base::BLOCK_BYTES;
use base::units::size;
use bytes::Bytes;
use control::client::{Download, Outgoing, Server, Upload, path_piece};
use control::rest::{Changed, Exported, SCHEMA};
use control::transfer::records::{self, Piece};

use super::ask::{self, must_confirm};
use super::{Failure, Shown, changed, show};
use crate::cli::{self, Output};

/// Files are read in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;
/// How often a person is told how far it is.
const PROGRESS: Duration = Duration::from_millis(300);
static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

fn at(path: &Path, error: &io::Error) -> Failure {
    Failure::File(format!("{}: {error}", path.display()))
}

fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Tells a person at a terminal how far it is.
struct Progress {
    what: &'static str,
    of_bytes: Option<u64>,
    told: Option<Instant>,
    shows: bool,
}

impl Progress {
    fn new(what: &'static str, of_bytes: Option<u64>) -> Progress {
        Progress { what, of_bytes, told: None, shows: io::stderr().is_terminal() }
    }

    fn at(&mut self, bytes: u64) {
        if !self.shows || self.told.is_some_and(|then| then.elapsed() < PROGRESS) {
            return;
        }
        self.told = Some(Instant::now());
        let of = self.of_bytes.map_or(String::new(), |all| format!(" of {}", size(all)));
        let _ = write!(io::stderr(), "\r{} {}{of}\x1b[K", self.what, size(bytes));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.told.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

pub(super) async fn volume(volume: &cli::Volume, output: Output, server: &Server) -> Result<Shown, Failure> {
    match volume {
        cli::Volume::Export(wanted) => export(wanted, output, server).await,
        cli::Volume::Import(wanted) => import(wanted, server).await,
        other => unreachable!("{other:?} is carried out elsewhere"),
    }
}

async fn export(export: &cli::VolumeExport, output: Output, server: &Server) -> Result<Shown, Failure> {
    let (volume, snapshot) = match export.from.split_once('@') {
        Some((volume, snapshot)) => (volume, Some(snapshot)),
        None => (export.from.as_str(), None),
    };
    let path = match snapshot {
        Some(name) => format!("/v1/snapshots/{}/{}/data", path_piece(volume), path_piece(name)),
        None => format!("/v1/volumes/{}/data", path_piece(volume)),
    };
    if is_standard(&export.file) {
        if output == Output::Json {
            return Err(Failure::Usage(
                "-o json and an export to standard output exclude each other".to_owned(),
            ));
        }
        let out = io::stdout().as_fd().try_clone_to_owned().map_err(|error| at(&export.file, &error))?;
        let mut download = server.download(&path).await?;
        write_all(&mut download, File::from(out), (&export.file, 0), false).await?;
        return Ok(Shown { text: String::new(), json: String::new(), exit_code: 0 });
    }
    let known = std::fs::metadata(&export.file).ok();
    let (size_bytes, data_bytes) = match &known {
        // a device, or a pipe: it has no holes, and another name makes no sense
        Some(known) if !known.is_file() => {
            let out = OpenOptions::new().write(true).open(&export.file);
            let out = out.map_err(|error| at(&export.file, &error))?;
            let is_device = known.file_type().is_block_device();
            if is_device && !export.force {
                return Err(Failure::Usage(format!(
                    "{} is a block device: --force overwrites it",
                    export.file.display()
                )));
            }
            let mut download = server.download(&path).await?;
            let data_bytes = write_all(&mut download, out, (&export.file, 0), false).await?;
            (download.size_bytes, data_bytes)
        }
        Some(_) if !export.force => {
            return Err(Failure::Usage(format!("{} exists: --force replaces it", export.file.display())));
        }
        _ => export_to_file(&path, &export.file, snapshot.is_some(), server).await?,
    };
    Ok(show(Exported {
        schema: SCHEMA,
        source: export.from.clone(),
        file: export.file.display().to_string(),
        size_bytes,
        data_bytes,
    }))
}

/// The name of the file as long as it is a part.
fn part_of(file: &Path, content: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{content}.part"));
    name.into()
}

/// The size of the volume, and how much data was moved now.
async fn export_to_file(
    path: &str,
    file: &Path,
    can_resume: bool,
    server: &Server,
) -> Result<(u64, u64), Failure> {
    let mut download = server.download(path).await?;
    let part = part_of(file, &download.content);
    let out = OpenOptions::new().write(true).create(true).truncate(false).open(&part);
    let mut out = out.map_err(|error| at(&part, &error))?;
    let there = out.metadata().map_err(|error| at(&part, &error))?.len();
    let from = if can_resume { there / BLOCK_BYTES as u64 * BLOCK_BYTES as u64 } else { 0 };
    if from > 0 {
        let content = std::mem::take(&mut download.content);
        drop(download);
        download = server.download(&format!("{path}?from_bytes={from}")).await?;
        if download.content != content {
            return Err(Failure::File("the snapshot was replaced just now: export it again".to_owned()));
        }
    }
    out.seek(SeekFrom::Start(from)).map_err(|error| at(&part, &error))?;
    match write_all(&mut download, out, (&part, from), true).await {
        Ok(data_bytes) => {
            std::fs::rename(&part, file).map_err(|error| at(file, &error))?;
            let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
            let directory = directory.unwrap_or(Path::new("."));
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            synced.map_err(|error| at(directory, &error))?;
            Ok((download.size_bytes, data_bytes))
        }
        Err(failure) if can_resume => {
            let goes_on = "the same command goes on where it broke off";
            let _ = writeln!(io::stderr(), "{} holds what has come; {goes_on}", part.display());
            Err(failure)
        }
        Err(failure) => {
            // another export is of another moment
            let _ = std::fs::remove_file(&part);
            Err(failure)
        }
    }
}

/// Writes what comes from byte `from` on. How much data that was.
async fn write_all(
    download: &mut Download,
    mut out: File,
    (path, from): (&Path, u64),
    sparse: bool,
) -> Result<u64, Failure> {
    let mut progress = Progress::new("exported", Some(download.size_bytes));
    let (mut position, mut data_bytes) = (from, 0);
    loop {
        let Some(piece) = download.next().await? else { break };
        let (until, data) = match piece {
            Piece::Data { offset_bytes, data } => (offset_bytes, data),
            Piece::End { size_bytes } => (size_bytes, Bytes::new()),
        };
        let written = match sparse {
            true if data.is_empty() => out.set_len(until),
            true => out.seek(SeekFrom::Start(until)).map(drop),
            false => write_zeros(&mut out, until.saturating_sub(position)),
        };
        written.and_then(|()| out.write_all(&data)).map_err(|error| at(path, &error))?;
        position = until + data.len() as u64;
        data_bytes += data.len() as u64;
        progress.at(position);
    }
    match sparse {
        true => out.sync_all().map_err(|error| at(path, &error))?,
        // a pipe cannot be made durable
        false => drop(out.sync_all()),
    }
    Ok(data_bytes)
}

fn write_zeros(out: &mut File, mut bytes: u64) -> io::Result<()> {
    while bytes > 0 {
        let now = bytes.min(ZEROS.len() as u64);
        out.write_all(&ZEROS[..now as usize])?;
        bytes -= now;
    }
    Ok(())
}

async fn import(import: &cli::VolumeImport, server: &Server) -> Result<Shown, Failure> {
    let mut source = Source::open(&import.file)?;
    let size_option = source.length_bytes.map_or(String::new(), |bytes| format!("&size_bytes={bytes}"));
    let path = |dry_run: bool| {
        let (name, overwrite) = (path_piece(&import.name), import.overwrite);
        format!("/v1/volumes/{name}/data?dry_run={dry_run}&overwrite={overwrite}{size_option}")
    };
    let would = async || -> Result<Changed, Failure> {
        let (outgoing, body) = Upload::new();
        drop(outgoing);
        Ok(server.upload(&path(true), body).await?)
    };
    if import.change.dry_run {
        return changed(would().await?);
    }
    if import.overwrite && !import.change.yes {
        // standard input is the image
        if is_standard(&import.file) {
            return Err(Failure::Usage(ask::NOBODY_TO_ASK.to_owned()));
        }
        must_confirm(&would().await?)?;
    }
    let (outgoing, body) = Upload::new();
    let reading = tokio::task::spawn_blocking(move || source.send(&outgoing));
    let uploaded = server.upload::<Changed>(&path(false), body).await;
    match reading.await.expect("reading a file does not panic") {
        // the server has noticed that the rest did not come
        Err(error) => Err(at(&import.file, &error)),
        Ok(()) => changed(uploaded?),
    }
}

/// What is imported.
struct Source {
    file: File,
    /// Whether it knows its holes.
    is_regular: bool,
    length_bytes: Option<u64>,
}

impl Source {
    fn open(path: &Path) -> Result<Source, Failure> {
        if is_standard(path) {
            let file = io::stdin().as_fd().try_clone_to_owned().map_err(|error| at(path, &error))?;
            // a file that was redirected here may have been read in part
            return Ok(Source { file: file.into(), is_regular: false, length_bytes: None });
        }
        let open = || {
            let mut file = File::open(path)?;
            let kind = file.metadata()?.file_type();
            if kind.is_dir() {
                return Err(io::Error::from(io::ErrorKind::IsADirectory));
            }
            let has_length = kind.is_file() || kind.is_block_device();
            let length_bytes = if has_length { Some(file.seek(SeekFrom::End(0))?) } else { None };
            if has_length {
                file.seek(SeekFrom::Start(0))?;
            }
            Ok(Source { file, is_regular: kind.is_file(), length_bytes })
        };
        open().map_err(|error| at(path, &error))
    }

    /// Sends everything but zeros, and the end. A server that takes no more has a reason, which it tells.
    fn send(&mut self, outgoing: &Outgoing) -> io::Result<()> {
        let mut progress = Progress::new("imported", self.length_bytes);
        let mut position = 0;
        loop {
            if self.is_regular {
                match self.skip_hole(position)? {
                    Some(data) => position = data,
                    None => break,
                }
            }
            let piece = self.read_piece()?;
            if piece.is_empty() {
                break;
            }
            for run in runs(&piece) {
                let head = records::head(position + run.start as u64, run.len() as u64);
                if !outgoing.send_blocking(head) || !outgoing.send_blocking(piece.slice(run)) {
                    return Ok(());
                }
            }
            position += piece.len() as u64;
            progress.at(position);
        }
        outgoing.send_blocking(records::end(self.length_bytes.unwrap_or(position)));
        Ok(())
    }

    /// Where there is data from here on; `None` where there is no more.
    fn skip_hole(&mut self, position: u64) -> io::Result<Option<u64>> {
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(position)) {
            Ok(data) => {
                // pieces begin at blocks
                let data = data / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
                self.file.seek(SeekFrom::Start(data)).map(Some)
            }
            Err(rustix::io::Errno::NXIO) => Ok(None),
            // a file system that does not know
            Err(_) => {
                self.is_regular = false;
                self.file.seek(SeekFrom::Start(position)).map(Some)
            }
        }
    }

    /// A whole piece, but at the end.
    fn read_piece(&mut self) -> io::Result<Bytes> {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        (&mut self.file).take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        Ok(piece.into())
    }
}

/// Ranges of blocks that are not all zeros.
fn runs(piece: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, block) in piece.chunks(BLOCK_BYTES).enumerate() {
        if *block == ZEROS[..block.len()] {
            continue;
        }
        let start = index * BLOCK_BYTES;
        match runs.last_mut() {
            Some(last) if last.end == start => last.end += block.len(),
            _ => runs.push(start..start + block.len()),
        }
    }
    runs
}
