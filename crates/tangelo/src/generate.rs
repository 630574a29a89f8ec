//! Completions and man pages, from the one definition of the command line.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;

use crate::cli::Cli;

/// The completion script for a shell.
pub fn completions(shell: clap_complete::Shell, out: &mut dyn Write) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tangelo", &mut script);
    out.write_all(&script)
}

/// A page for the program and one for each command, in section 1.
pub fn man_pages(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(Cli::command(), directory)
}
