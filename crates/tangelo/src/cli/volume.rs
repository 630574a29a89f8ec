//! The command line of volumes and snapshots.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use control::size::parse_size;

use super::{Change, Destruction, Rename};

#[derive(Subcommand, Debug)]
pub enum Volume {
    /// Make a volume
    Create(VolumeCreate),
    /// List the volumes
    List,
    /// Show a volume with its mappings and snapshots
    Show { name: String },
    /// Make a volume larger or smaller while hosts use it; they are told that its capacity has changed
    Resize {
        name: String,
        /// The new size, such as 500GiB or 1TB; rounded up to 4 KiB
        #[arg(value_parser = parse_size)]
        size: u64,
        /// Make it smaller even where it holds data behind the new end, which is lost
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        change: Destruction,
    },
    /// Give a volume another name; hosts see no difference
    Rename(Rename),
    /// Say how hosts reach a volume by the portals of a group (ALUA); they are told, and it is kept over a restart
    Access {
        name: String,
        /// The portal group's tag: `[listen] iscsi` in the head's file says which portals are in which
        #[arg(long)]
        group: u16,
        /// At least one group stays active
        #[arg(long, value_enum)]
        state: Access,
        #[command(flatten)]
        change: Change,
    },
    /// Make a volume that begins as what a snapshot is; it takes space only for what is written to it
    Clone {
        #[arg(value_name = "VOLUME@SNAPSHOT", value_parser = snapshot_of)]
        from: SnapshotOf,
        /// The new volume
        name: String,
        #[command(flatten)]
        change: Change,
    },
    /// Make a volume that begins as what another is now, while hosts use it; no data moves, and neither depends on the other
    Copy {
        /// The volume to copy, in a pool
        from: String,
        /// The new volume
        name: String,
        #[command(flatten)]
        change: Change,
    },
    /// Write what a snapshot is, or what a volume is now, to a file: a raw image; what holds no data is a hole in it
    Export(VolumeExport),
    /// Give a volume the content of a raw image. It must not be mapped; until all of it is there, it is what it was
    Import(VolumeImport),
    /// Make clones of an image clones of a newer one, all at once; they keep their names, identities and mappings
    ///
    /// What was written to them is lost; their own snapshots stay. Nothing may be running from them.
    Refresh {
        /// What they are to be
        #[arg(value_name = "VOLUME@SNAPSHOT", value_parser = snapshot_of)]
        to: SnapshotOf,
        /// The clones of this snapshot, or of all snapshots of this volume, by the names that they had then
        #[arg(long, value_name = "VOLUME[@SNAPSHOT]")]
        clones_of: String,
        /// Also those that are mapped: their hosts lose them and get them again with the new content
        #[arg(long)]
        remap: bool,
        #[command(flatten)]
        change: Destruction,
    },
    /// Make a clone the owner of the snapshots that it stands on; what it was cloned from becomes a clone of it
    Promote {
        name: String,
        #[command(flatten)]
        change: Change,
    },
    /// Delete a volume; one in a pool goes into the bin, with its snapshots and mappings. What a raw volume exports is left as it is
    Delete {
        name: String,
        /// Delete it even while it is mapped
        #[arg(long)]
        unmap: bool,
        /// Not into the bin: its data is gone at once
        #[arg(long)]
        eradicate: bool,
        #[command(flatten)]
        change: Destruction,
    },
    /// List what is in the bin, the oldest first
    Bin,
    /// Bring a volume back from the bin, with its snapshots, and with its mappings where their numbers are free
    Undelete {
        name: String,
        #[command(flatten)]
        change: Change,
    },
    /// Delete for good what is in the bin
    Eradicate {
        name: String,
        #[command(flatten)]
        change: Destruction,
    },
}

/// How hosts reach a volume by a portal group.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum Access {
    /// The best way
    ActiveOptimized,
    /// A way that hosts take where there is no better one
    ActiveNonOptimized,
    /// Nothing is read or written; a host may make it active when it has no other way
    Standby,
    /// The same, and less is answered
    Unavailable,
}

#[derive(Subcommand, Debug)]
pub enum Snapshot {
    /// Keep what volumes are now, all at one moment, while hosts use them
    Create {
        /// The volumes, each with a name for its snapshot, such as disk@monday; 64 at most
        #[arg(value_name = "VOLUME@SNAPSHOT", required = true, value_parser = snapshot_of)]
        snapshots: Vec<SnapshotOf>,
        #[command(flatten)]
        change: Change,
    },
    /// List snapshots, with what each takes
    List {
        /// Only those of this volume
        volume: Option<String>,
    },
    /// Show a snapshot with its clones
    Show {
        #[arg(value_name = "VOLUME@SNAPSHOT", value_parser = snapshot_of)]
        snapshot: SnapshotOf,
    },
    /// Give a snapshot another name
    Rename {
        #[arg(value_name = "VOLUME@SNAPSHOT", value_parser = snapshot_of)]
        snapshot: SnapshotOf,
        /// What it is to be called, without the volume
        new_name: String,
        #[command(flatten)]
        change: Change,
    },
    /// Delete a snapshot; clones of it stay
    Delete {
        #[arg(value_name = "VOLUME@SNAPSHOT", value_parser = snapshot_of)]
        snapshot: SnapshotOf,
        #[command(flatten)]
        change: Destruction,
    },
    /// Make a volume what it was; what was written since is lost. It must not be mapped
    Rollback {
        #[arg(value_name = "VOLUME@SNAPSHOT", value_parser = snapshot_of)]
        snapshot: SnapshotOf,
        #[command(flatten)]
        change: Destruction,
    },
}

#[derive(Subcommand, Debug)]
pub enum Schedule {
    /// Take snapshots of volumes by themselves, all at one moment, and keep the first of each hour, day, week and month
    Create {
        name: String,
        /// The volumes; 64 at most
        #[arg(value_name = "VOLUME", required = true)]
        volumes: Vec<String>,
        /// How many of different hours are kept
        #[arg(long, value_name = "N", default_value = "0")]
        hourly: u32,
        /// How many of different days are kept (UTC)
        #[arg(long, value_name = "N", default_value = "0")]
        daily: u32,
        /// How many of different weeks are kept
        #[arg(long, value_name = "N", default_value = "0")]
        weekly: u32,
        /// How many of different months are kept
        #[arg(long, value_name = "N", default_value = "0")]
        monthly: u32,
        #[command(flatten)]
        change: Change,
    },
    /// List schedules
    List,
    /// Show a schedule
    Show { name: String },
    /// Give a schedule another name; the snapshots that it has taken stay its own
    Rename(Rename),
    /// End a schedule; the snapshots that it has taken stay
    Delete {
        name: String,
        #[command(flatten)]
        change: Change,
    },
}

/// A snapshot, as people name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotOf {
    pub volume: String,
    pub snapshot: String,
}

fn snapshot_of(text: &str) -> Result<SnapshotOf, String> {
    let parts = text.split_once('@').filter(|(volume, snapshot)| !volume.is_empty() && !snapshot.is_empty());
    let (volume, snapshot) = parts.ok_or("give a snapshot as VOLUME@SNAPSHOT, such as disk@monday")?;
    Ok(SnapshotOf { volume: volume.to_owned(), snapshot: snapshot.to_owned() })
}

#[derive(Args, Debug)]
pub struct VolumeExport {
    /// An export of a snapshot that broke off goes on where it was, if it is given again. Hosts may use the volume meanwhile
    #[arg(value_name = "VOLUME[@SNAPSHOT]")]
    pub from: String,
    /// The file, a block device, or `-` for standard output
    pub file: PathBuf,
    /// Also if the file exists, or is a block device: it is overwritten
    #[arg(long)]
    pub force: bool,
}

#[derive(Args, Debug)]
pub struct VolumeImport {
    /// The raw image, or `-` for standard input
    pub file: PathBuf,
    /// The volume, in a pool; it may be larger than the image
    pub name: String,
    /// Also if the volume holds data, which is replaced; its snapshots stay
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub change: Destruction,
}

#[derive(Args, Debug)]
pub struct VolumeCreate {
    pub name: String,
    #[command(flatten)]
    pub backing: Backing,
    /// Such as 500GiB or 1TB; rounded up to 4 KiB
    #[arg(long, value_parser = parse_size, required_unless_present = "raw", conflicts_with = "raw")]
    pub size: Option<u64>,
    /// Logical block size that hosts see: 512 or 4096
    #[arg(long, value_name = "BYTES", default_value = "512", value_parser = block_size)]
    pub block_size: u32,
    /// Acknowledge writes before they are durable; hosts must flush, as they do for any disk with a cache
    #[arg(long, conflicts_with_all = ["null", "memory"])]
    pub write_back: bool,
    #[command(flatten)]
    pub change: Change,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Backing {
    /// Thin, in this pool
    #[arg(long, value_name = "POOL")]
    pub pool: Option<String>,
    /// An existing block device or file, exported as it is
    #[arg(long, value_name = "PATH")]
    pub raw: Option<PathBuf>,
    /// Nothing behind it: reads are zeros, writes are forgotten; for measuring
    #[arg(long)]
    pub null: bool,
    /// In memory, lost when the daemon stops; for measuring
    #[arg(long)]
    pub memory: bool,
}

fn block_size(text: &str) -> Result<u32, String> {
    match text {
        "512" => Ok(512),
        "4096" | "4k" | "4K" | "4KiB" => Ok(4096),
        _ => Err("use 512 or 4096".to_owned()),
    }
}
