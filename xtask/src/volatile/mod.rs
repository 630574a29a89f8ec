//! For conformance/pair: a directory of drives whose power can be cut, as a file system (FUSE).
//!
//! ```text
//!   xtask helper volatile-drives BACKING MOUNTPOINT      the files of BACKING are seen in MOUNTPOINT; ends when it is unmounted
//!   echo off >MOUNTPOINT/.power                          from now on the drives answer nothing
//!   echo on >MOUNTPOINT/.power                           a random part of what was not durable is lost; they answer again
//!   cat MOUNTPOINT/.power                                what has happened so far (JSON)
//! ```
//!
//! The kernel passes every request on (`FOPEN_DIRECT_IO`), with `O_DSYNC` among the flags of a write that `RWF_DSYNC` or the file asks
//! for. One thread carries the requests out in the order of their arrival, so the moment at which the power goes is one for all drives.
//!
//! What always holds: a write that was on its way when the power went may be on the drive, whole, in part or not at all; it is answered
//! with an error when the power is back. Whoever had a drive open then gets nothing but errors from it.

mod drive;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

use base::prng::Prng;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use crate::shell::Result;
use drive::{Drive, Loss};

/// The kernel keeps nothing that it has heard.
const NOTHING_KEPT: Duration = Duration::ZERO;
const CONTROL: INodeNo = INodeNo(2);
const CONTROL_NAME: &str = ".power";
const FIRST_DRIVE: u64 = 3;
/// What programs such as cmp read at a time.
const READ_BYTES: u32 = 128 << 10;
/// `O_DSYNC` and `O_SYNC` of Linux, on x86 and ARM.
const DURABLE_BITS: i32 = 0o4_010_000;

pub fn serve(backing: &Path, mountpoint: &Path, seed: u64) -> Result {
    let drives = VolatileDrives(Mutex::new(State::new(backing, seed)?));
    let mut options = fuser::Config::default();
    options.mount_options = vec![fuser::MountOption::FSName("volatile-drives".to_owned())];
    fuser::mount(drives, mountpoint, &options).map_err(|error| {
        format!("{}: cannot be mounted: {error}; it needs root and /dev/fuse", mountpoint.display())
    })
}

/// A request that came after the power had gone.
enum Held {
    Write { drive: u64, offset_bytes: u64, data: Vec<u8>, reply: ReplyWrite },
    Read(ReplyData),
    Other(ReplyEmpty),
}

/// What has happened, for those who want to know whether anything has.
#[derive(Default)]
struct Tally {
    cuts: u64,
    loss: Loss,
    writes: u64,
    durable_writes: u64,
    flushes: u64,
    writes_held: u64,
}

struct State {
    backing: PathBuf,
    drives: BTreeMap<u64, (String, Drive)>,
    /// Some while there is no power.
    held: Option<Vec<Held>>,
    /// Counts the power cuts; a handle is the number of its time.
    time: u64,
    random: Prng,
    tally: Tally,
}

impl State {
    fn new(backing: &Path, seed: u64) -> Result<State> {
        let mut state = State {
            backing: backing.to_owned(),
            drives: BTreeMap::new(),
            held: None,
            time: 0,
            random: Prng::new(seed),
            tally: Tally::default(),
        };
        let directory =
            std::fs::read_dir(backing).map_err(|error| format!("{}: {error}", backing.display()))?;
        let mut names: Vec<String> = directory
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.to_owned()))
            .filter(|name| backing.join(name).is_file())
            .collect();
        names.sort();
        for name in names {
            state.open(&name).map_err(|error| format!("{}: {error}", backing.join(&name).display()))?;
        }
        Ok(state)
    }

    fn open(&mut self, name: &str) -> io::Result<u64> {
        let file = std::fs::OpenOptions::new().read(true).write(true).open(self.backing.join(name))?;
        let number = FIRST_DRIVE + self.drives.len() as u64;
        self.drives.insert(number, (name.to_owned(), Drive::new(file)));
        Ok(number)
    }

    fn drive(&mut self, number: u64) -> io::Result<(&mut Drive, &mut Prng)> {
        let (_, drive) = self.drives.get_mut(&number).ok_or(rustix::io::Errno::NOENT)?;
        Ok((drive, &mut self.random))
    }

    /// Whether this handle is of the time before a power cut.
    fn is_stale(&self, handle: FileHandle) -> bool {
        handle.0 != self.time
    }

    fn attributes(&self, number: INodeNo) -> io::Result<FileAttr> {
        let (kind, size) = match number {
            INodeNo::ROOT => (FileType::Directory, 0),
            CONTROL => (FileType::RegularFile, 0),
            INodeNo(number) => {
                let (_, drive) = self.drives.get(&number).ok_or(rustix::io::Errno::NOENT)?;
                (FileType::RegularFile, drive.size_bytes()?)
            }
        };
        let owner = std::fs::metadata(&self.backing)?;
        Ok(FileAttr {
            ino: number,
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: if kind == FileType::Directory { 0o755 } else { 0o644 },
            nlink: 1,
            uid: owner.uid(),
            gid: owner.gid(),
            rdev: 0,
            blksize: READ_BYTES,
            flags: 0,
        })
    }

    fn write(&mut self, number: u64, offset_bytes: u64, data: &[u8], durably: bool) -> io::Result<u32> {
        self.tally.writes += 1;
        self.tally.durable_writes += u64::from(durably);
        let (drive, random) = self.drive(number)?;
        if durably {
            drive.write_durably(offset_bytes, data)?;
        } else {
            drive.write(offset_bytes, data, random)?;
        }
        Ok(data.len() as u32)
    }

    fn order(&mut self, word: &[u8]) -> io::Result<()> {
        match (word.trim_ascii(), self.held.is_some()) {
            (b"off", false) => {
                self.held = Some(Vec::new());
                Ok(())
            }
            (b"on", true) => self.power_on(),
            _ => Err(rustix::io::Errno::INVAL.into()),
        }
    }

    fn power_on(&mut self) -> io::Result<()> {
        let mut answers = Vec::new();
        for request in self.held.take().unwrap_or_default() {
            if let Held::Write { drive: number, offset_bytes, data, .. } = &request {
                self.tally.writes_held += 1;
                let (drive, random) = self.drive(*number)?;
                drive.write(*offset_bytes, data, random)?;
            }
            answers.push(request);
        }
        for (_, drive) in self.drives.values_mut() {
            let loss = drive.lose(&mut self.random)?;
            self.tally.loss.kept += loss.kept;
            self.tally.loss.dropped += loss.dropped;
        }
        self.tally.cuts += 1;
        self.time += 1;
        for request in answers {
            match request {
                Held::Write { reply, .. } => reply.error(Errno::EIO),
                Held::Read(reply) => reply.error(Errno::EIO),
                Held::Other(reply) => reply.error(Errno::EIO),
            }
        }
        Ok(())
    }

    fn report(&self) -> String {
        let Tally { cuts, loss, writes, durable_writes, flushes, writes_held } = &self.tally;
        let Loss { kept, dropped } = loss;
        let report = serde_json::json!({
            "power": self.held.is_none(), "cuts": cuts, "kept": kept, "dropped": dropped, "writes": writes,
            "durable_writes": durable_writes, "flushes": flushes, "writes_held": writes_held,
        });
        format!("{report}\n")
    }
}

struct VolatileDrives(Mutex<State>);

impl VolatileDrives {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("the one thread of the session does not panic with it")
    }

    /// Flushes and discards: with power, what `work` does; without, the answer waits.
    fn change(&self, handle: FileHandle, reply: ReplyEmpty, work: impl FnOnce(&mut State) -> io::Result<()>) {
        let mut state = self.state();
        if state.is_stale(handle) {
            return reply.error(Errno::EIO);
        }
        if let Some(held) = &mut state.held {
            return held.push(Held::Other(reply));
        }
        match work(&mut state) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        }
    }
}

impl Filesystem for VolatileDrives {
    fn destroy(&mut self) {
        // it is unmounted in order
        for (name, drive) in self.state().drives.values_mut() {
            if let Err(error) = drive.flush() {
                eprintln!("{name}: {error}");
            }
        }
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut state = self.state();
        let known = state.drives.iter().find(|(_, (known, _))| OsStr::new(known) == name);
        let number = match (known.map(|(number, _)| *number), name.to_str()) {
            (Some(number), _) => Ok(number),
            (None, Some(CONTROL_NAME)) => Ok(CONTROL.0),
            (None, Some(name)) => state.open(name),
            (None, None) => Err(rustix::io::Errno::NOENT.into()),
        };
        match number.and_then(|number| state.attributes(INodeNo(number))) {
            Ok(attributes) => reply.entry(&NOTHING_KEPT, &attributes, Generation(0)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.state().attributes(number) {
            Ok(attributes) => reply.attr(&NOTHING_KEPT, &attributes),
            Err(error) => reply.error(error.into()),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<fuser::TimeOrNow>,
        _mtime: Option<fuser::TimeOrNow>,
        _ctime: Option<std::time::SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<std::time::SystemTime>,
        _chgtime: Option<std::time::SystemTime>,
        _bkuptime: Option<std::time::SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = self.state();
        let resized = match size {
            // as a shell does with what it is about to write to
            Some(size) if number != CONTROL => {
                state.drive(number.0).and_then(|(drive, _)| drive.resize(size))
            }
            _ => Ok(()),
        };
        match resized.and_then(|()| state.attributes(number)) {
            Ok(attributes) => reply.attr(&NOTHING_KEPT, &attributes),
            Err(error) => reply.error(error.into()),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(self.state().time), flags);
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset_bytes: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut state = self.state();
        if number == CONTROL {
            let report = state.report();
            return reply.data(report.as_bytes().get(offset_bytes as usize..).unwrap_or_default());
        }
        if state.is_stale(handle) {
            return reply.error(Errno::EIO);
        }
        if let Some(held) = &mut state.held {
            return held.push(Held::Read(reply));
        }
        match state.drive(number.0).and_then(|(drive, _)| drive.read(offset_bytes, size as usize)) {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset_bytes: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut state = self.state();
        if number == CONTROL {
            return match state.order(data) {
                Ok(()) => reply.written(data.len() as u32),
                Err(error) => reply.error(error.into()),
            };
        }
        if state.is_stale(handle) {
            return reply.error(Errno::EIO);
        }
        if let Some(held) = &mut state.held {
            return held.push(Held::Write { drive: number.0, offset_bytes, data: data.to_vec(), reply });
        }
        match state.write(number.0, offset_bytes, data, flags.0 & DURABLE_BITS != 0) {
            Ok(length) => reply.written(length),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // to close a drive makes nothing durable
        reply.ok();
    }

    fn fsync(&self, _: &Request, number: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        self.change(handle, reply, |state| {
            state.tally.flushes += 1;
            state.drive(number.0)?.0.flush()
        });
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset_bytes: u64,
        length_bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.change(handle, reply, |state| {
            let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
            if mode as u32 != punch.bits() {
                return Err(rustix::io::Errno::OPNOTSUPP.into());
            }
            let (drive, random) = state.drive(number.0)?;
            drive.discard(offset_bytes, length_bytes, random)
        });
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let state = self.state();
        for (index, (number, (name, _))) in state.drives.iter().enumerate().skip(offset as usize) {
            if reply.add(INodeNo(*number), index as u64 + 1, FileType::RegularFile, name) {
                break;
            }
        }
        reply.ok();
    }
}
