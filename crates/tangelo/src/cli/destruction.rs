//! The options of all commands that cannot be undone.

use clap::Args;

/// The word that such a command asks for, or is given with `--yes`.
#[derive(Args, Debug)]
pub struct Destruction {
    /// Tell what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// There is no undo: do it without asking. Needed where nobody is there to be asked
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
}
