//! The command line, defined once: parsing, help, completions and man pages all follow from it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use control::config::DEFAULT_PATH;

mod alert;
mod destruction;
mod events;
mod global;
mod pair;
mod settings;
mod user;
mod volume;

pub use alert::Alert;
pub use destruction::Destruction;
pub use events::Events;
pub use global::{Global, Output, server_at};
pub use pair::{Fence, Joiner, Listen, Pair, Place, Register, Switch, Witness};
pub use user::{End, Token, User, Web};
pub use volume::*;

/// Shared block storage from the SSDs of this server.
///
/// Exit codes: 0 fine, 1 degraded or refused, 2 wrong usage or critical.
#[derive(Parser, Debug)]
#[command(name = "tangelo", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run the array: serve its volumes to hosts
    Serve(Serve),
    /// Tell how the array is, whether the data is safe, and how to connect
    Status,
    /// Block devices and files that pools are made of
    #[command(subcommand)]
    Drive(Drive),
    /// Sets of drives with one protection
    #[command(subcommand)]
    Pool(Pool),
    /// What hosts see as disks
    #[command(subcommand)]
    Volume(Volume),
    /// What volumes were at one moment
    #[command(subcommand)]
    Snapshot(Snapshot),
    /// Snapshots that are taken by themselves
    #[command(subcommand)]
    Schedule(Schedule),
    /// Machines that use volumes
    #[command(subcommand)]
    Host(Host),
    /// Give a volume to a host
    Map(Map),
    /// Take a volume away from a host
    Unmap(Unmap),
    /// Which host sees which volume
    #[command(subcommand)]
    Mapping(Mapping),
    /// What has happened: problems that began and ended, changes, logins, and what became of drives
    Events(Events),
    /// Who is told when something is wrong: mail, webhook, command, heartbeat
    #[command(subcommand)]
    Alert(Alert),
    /// Who signs in at this head's page, and what each may do
    #[command(subcommand)]
    User(User),
    /// What programs present to this head's API, and what each may do
    #[command(subcommand)]
    Token(Token),
    /// Where this head is reached over TLS, and by which certificate
    #[command(subcommand)]
    Web(Web),
    /// The two heads of an array
    #[command(subcommand)]
    Pair(Pair),
    /// The third vote of a pair: a machine that has no array
    #[command(subcommand)]
    Witness(Witness),
    /// What says which head owns the array: a value in etcd, of which each of the three machines has a member
    #[command(subcommand)]
    Register(Register),
    /// Load drives and volumes, and see where the limit is
    #[command(subcommand)]
    Bench(Box<lab::cli::Bench>),
    /// Print a completion script for a shell
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the names that can follow these words (for completion scripts)
    #[command(hide = true)]
    Complete {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Write the man pages into a directory
    #[command(hide = true)]
    Man { directory: PathBuf },
}

#[derive(Args, Debug)]
pub struct Serve {
    /// The head's file; where none is named, a missing default file means defaults
    #[arg(long, value_name = "FILE", help = format!("The head's file [default: {DEFAULT_PATH}, which need not be there]"))]
    pub config: Option<PathBuf>,
    /// Only read the file, tell what a start would do, and whether it could; a daemon may run meanwhile
    #[arg(long)]
    pub check: bool,
}

#[derive(Subcommand, Debug)]
pub enum Drive {
    /// Look at every configured drive
    List,
    /// Look at one drive
    Show {
        /// Its path, or the beginning of its id
        drive: String,
    },
    /// Add drives to a pool, which grows by them; what they hold is lost
    Add {
        pool: String,
        /// Block devices or files
        #[arg(required = true, value_name = "DRIVE")]
        drives: Vec<PathBuf>,
        /// Overwrite this drive whatever it holds; may be given for several drives
        #[arg(long, value_name = "DRIVE")]
        force: Vec<PathBuf>,
        #[command(flatten)]
        change: Change,
    },
    /// Empty a drive; it leaves the pool when nothing is on it any more
    Remove {
        pool: String,
        /// Its path, or the beginning of its id
        drive: String,
        /// Have it stay after all
        #[arg(long)]
        cancel: bool,
        #[command(flatten)]
        change: Change,
    },
    /// Put a new drive in the place of another, working or not
    Replace {
        pool: String,
        /// Path of the old drive, or the beginning of its id
        old: String,
        /// Block device or file; what it holds is lost
        new: PathBuf,
        /// Overwrite the new drive whatever it holds
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        change: Change,
    },
    /// Have blank drives join a pool by themselves when it has lost one (hot spares)
    Spare {
        pool: String,
        /// Block devices or files
        #[arg(required = true, value_name = "DRIVE")]
        drives: Vec<PathBuf>,
        /// Have them be no spares any more
        #[arg(long)]
        release: bool,
        #[command(flatten)]
        change: Change,
    },
    /// Erase what a drive holds, so that it can be used anew; refused while anything uses it
    Wipe {
        drive: PathBuf,
        #[command(flatten)]
        change: Destruction,
    },
    /// Take note of what a drive did that its pool has had to do without: `status` says it no more, and it stays refused without --force
    Clear {
        /// Path, or the beginning of the id
        #[arg(required_unless_present = "all")]
        drive: Option<String>,
        /// Whatever there is to take note of
        #[arg(long, conflicts_with = "drive")]
        all: bool,
        #[command(flatten)]
        change: Change,
    },
    /// Show where a drive is: its bay's light, or its activity light
    Locate {
        path: PathBuf,
        #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
    },
}

#[derive(Subcommand, Debug)]
pub enum Pool {
    /// Make a pool of drives; what they hold is lost
    Create(PoolCreate),
    /// List the pools
    List,
    /// Show a pool with its drives, volumes and settings
    Show { name: String },
    /// Read everything in a pool, and repair what is wrong
    Scrub {
        name: String,
        /// Stop the scrub that runs
        #[arg(long, conflicts_with = "every")]
        stop: bool,
        /// From now on do so this often by itself, such as 7d; or off
        #[arg(long, value_name = "TIME", value_parser = settings::period_or_off)]
        every: Option<u32>,
        #[command(flatten)]
        change: Change,
    },
    /// Change how a pool is looked after; without options, show it
    Set(PoolSet),
    /// Move a pool to the newest disk format, while hosts go on; an earlier Tangelo cannot open it any more
    Upgrade {
        name: String,
        #[command(flatten)]
        change: Change,
    },
    /// Have both heads hold a pool that one of them has; hosts wait for about a second
    Convert {
        name: String,
        /// Each drive gets a twin on the other head; the data is copied in the background
        #[arg(long, required_unless_present = "shared", conflicts_with = "shared")]
        across_heads: bool,
        /// Both heads see its drives; nothing is copied
        #[arg(long)]
        shared: bool,
        #[command(flatten)]
        change: Change,
    },
    /// Give a pool another name
    Rename(Rename),
    /// Delete a pool that has no volumes; its drives forget it and can be used anew
    Delete {
        name: String,
        /// What is in its bin, too; otherwise the pool stays as long as its bin holds something
        #[arg(long)]
        eradicate: bool,
        #[command(flatten)]
        change: Destruction,
    },
}

/// What every renaming takes.
#[derive(Args, Debug)]
pub struct Rename {
    /// What it is called now
    pub name: String,
    /// What it is to be called
    pub new_name: String,
    #[command(flatten)]
    pub change: Change,
}

#[derive(Args, Debug)]
pub struct PoolSet {
    pub name: String,
    /// Everything that is not given goes back to its default
    #[arg(long)]
    pub defaults: bool,
    #[command(flatten)]
    pub settings: settings::Settings,
    #[command(flatten)]
    pub change: Change,
}

#[derive(Args, Debug)]
pub struct PoolCreate {
    pub name: String,
    /// What the pool survives
    #[arg(long, value_enum)]
    pub protection: Protection,
    /// Block devices or files
    #[arg(required = true, value_name = "DRIVE")]
    pub drives: Vec<PathBuf>,
    /// Drives per segment, parity included [default: chosen from the number of drives]
    #[arg(long, value_name = "N")]
    pub width: Option<u8>,
    /// Overwrite this drive whatever it holds; may be given for several drives
    #[arg(long, value_name = "DRIVE")]
    pub force: Vec<PathBuf>,
    /// Give each drive a twin among the drives of the other head, which holds the same
    #[arg(long, conflicts_with = "shared")]
    pub across_heads: bool,
    /// Both heads see these drives; the owner keeps the other head from writing by persistent reservations
    #[arg(long)]
    pub shared: bool,
    #[command(flatten)]
    pub change: Change,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// None: one failed drive loses the pool
    Stripe,
    /// Two copies: survives one failed drive
    #[value(name = "mirror-2")]
    Mirror2,
    /// Three copies: survives two failed drives
    #[value(name = "mirror-3")]
    Mirror3,
    /// Survives one failed drive
    #[value(name = "parity-1")]
    Parity1,
    /// Survives two failed drives
    #[value(name = "parity-2")]
    Parity2,
}

impl Protection {
    /// As the API has it.
    pub fn name(self) -> String {
        self.to_possible_value().expect("no variant is skipped").get_name().to_owned()
    }
}

/// What every verb that changes something takes.
#[derive(Args, Debug)]
pub struct Change {
    /// Tell what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Subcommand, Debug)]
pub enum Host {
    /// Make a host known
    Create(HostCreate),
    /// List the hosts
    List,
    /// Show a host with what it sees and its sessions
    Show { name: String },
    /// Change a host's initiators and CHAP; sessions that are still valid go on
    Set(HostSet),
    /// Give a host another name; its sessions go on
    Rename(Rename),
    /// Forget a host and end its sessions
    Delete {
        name: String,
        /// Delete it even while volumes are mapped to it
        #[arg(long)]
        unmap: bool,
        #[command(flatten)]
        change: Change,
    },
}

#[derive(Args, Debug)]
pub struct HostCreate {
    pub name: String,
    /// Its initiator's name; may be given several times
    #[arg(long, required = true, num_args = 1.., value_name = "IQN")]
    pub iqn: Vec<String>,
    /// User name that the host must log in with
    #[arg(long, value_name = "USER", requires = "chap_secret_file")]
    pub chap_user: Option<String>,
    /// File with the secret that the host must know, 12 to 255 bytes
    #[arg(long, value_name = "FILE", requires = "chap_user")]
    pub chap_secret_file: Option<PathBuf>,
    /// User name that the array answers with
    #[arg(long, value_name = "USER", requires_all = ["mutual_chap_secret_file", "chap_user"])]
    pub mutual_chap_user: Option<String>,
    /// File with the secret that the array proves to know
    #[arg(long, value_name = "FILE", requires = "mutual_chap_user")]
    pub mutual_chap_secret_file: Option<PathBuf>,
    #[command(flatten)]
    pub change: Change,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct HostSet {
    pub name: String,
    /// One more initiator; may be given several times
    #[arg(long, value_name = "IQN", group = "what")]
    pub add_iqn: Vec<String>,
    /// An initiator that is this host's no more; its sessions end
    #[arg(long, value_name = "IQN", group = "what")]
    pub remove_iqn: Vec<String>,
    /// User name that the host must log in with from its next login on
    #[arg(long, value_name = "USER", requires = "chap_secret_file", group = "what")]
    pub chap_user: Option<String>,
    /// File with the secret that the host must know, 12 to 255 bytes
    #[arg(long, value_name = "FILE", requires = "chap_user")]
    pub chap_secret_file: Option<PathBuf>,
    /// User name that the array answers with
    #[arg(long, value_name = "USER", requires = "mutual_chap_secret_file", group = "what")]
    pub mutual_chap_user: Option<String>,
    /// File with the secret that the array proves to know
    #[arg(long, value_name = "FILE", requires = "mutual_chap_user")]
    pub mutual_chap_secret_file: Option<PathBuf>,
    /// Ask for no CHAP any more, and give none
    #[arg(long, conflicts_with_all = ["chap_user", "mutual_chap_user"], group = "what")]
    pub no_chap: bool,
    /// Prove nothing to the host any more
    #[arg(long, conflicts_with = "mutual_chap_user", group = "what")]
    pub no_mutual_chap: bool,
    #[command(flatten)]
    pub change: Change,
}

#[derive(Args, Debug)]
pub struct Map {
    pub volume: String,
    pub host: String,
    /// The number the host sees it at [default: the lowest that no other volume of this host had]. From 256 on, clients of
    /// libiscsi (QEMU's own initiator, iscsi-inq) write 16384 more
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=i64::from(base::limits::LUN_MAX)))]
    pub lun: Option<u16>,
    /// Refuse the host's writes
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub change: Change,
}

#[derive(Args, Debug)]
pub struct Unmap {
    pub volume: String,
    pub host: String,
    #[command(flatten)]
    pub change: Change,
}

#[derive(Subcommand, Debug)]
pub enum Mapping {
    /// List the mappings
    List,
    /// Show a mapping
    Show { volume: String, host: String },
}
