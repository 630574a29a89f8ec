//! `tangelo serve --check`: what a start would take from the head's file, and what would keep it from starting.

use std::path::Path;
use std::process::ExitCode;

use base::units::Size;
use control::config::{Config, Fence};
use control::server::Token;
use fence::Fencer;

use super::fence_agent::{self, Unfit};
use super::{Failure, cores, memory};
use crate::cli;

/// Exit code 0 if a start would get as far as the drives, 1 where it would, but something deserves a look, else 2.
pub fn run(serve: &cli::Serve) -> ExitCode {
    match look(serve) {
        Ok((lines, doubts)) => {
            lines.iter().for_each(|line| println!("{line}"));
            doubts.iter().for_each(|line| println!("but: {line}"));
            ExitCode::from(u8::from(!doubts.is_empty()))
        }
        Err(Failure(reason)) => {
            eprintln!("error: {reason}");
            ExitCode::from(2)
        }
    }
}

/// What is fine, and what is not as somebody may think. Nothing is opened for writing, so a daemon may run meanwhile.
fn look(serve: &cli::Serve) -> Result<(Vec<String>, Vec<String>), Failure> {
    let config = Config::load(serve.config.as_deref())?;
    let mut doubts = Vec::new();
    let drives = config.expand_drives(&[])?;
    let (count, list) = cores::of_shards(&config)?;
    let memory = memory::of_each_shard(&config, count)?;
    if let Some(tcp) = &config.tcp {
        Token::load(&tcp.token_file)?;
    }
    if let Some(fence) = &config.fence {
        match check_fence(&config, fence)? {
            Ok(_) => {}
            Err(Unfit::File(error)) => return Err(error.into()),
            Err(unfit) => doubts.push(unfit.to_string()),
        }
    }
    for drive in drives.iter().filter(|drive| !Path::new(&drive.path).exists()) {
        let line = drive.line.map_or(String::new(), |line| format!("line {line}: "));
        doubts.push(format!("{line}{} is not there", drive.path));
    }
    if drives.is_empty() {
        doubts.push("there is no drive: no pattern of [drives] paths finds one".to_owned());
    }
    let file =
        config.file.as_deref().map_or("no file, defaults".to_owned(), |path| path.display().to_string());
    let portals: Vec<String> = config.iscsi.iter().map(|portal| portal.address.to_string()).collect();
    let pinned = if list.is_empty() { String::new() } else { format!(" on cores {list:?}") };
    let tcp = config.tcp.as_ref().map_or(String::new(), |tcp| format!(", and TCP {}", tcp.address));
    let bytes = (memory.data_bytes + memory.map_bytes) as u64 * u64::from(count);
    let lines = vec![
        format!("{file}: understood"),
        format!("iSCSI: {}", portals.join(", ")),
        format!("API: {}{tcp}", config.socket.display()),
        format!("state: {}", config.state_dir.display()),
        format!("drives: {}", drives.len()),
        format!("shards: {count}{pinned}, memory {}", Size(bytes)),
    ];
    Ok((lines, doubts))
}

/// Asks the agent what it takes; the other head is left alone.
fn check_fence(config: &Config, fence: &Fence) -> Result<Result<Fencer, Unfit>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(fence_agent::open(config, fence)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_start_would_do_is_told_beforehand() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tangelo.toml");
        let look = |text: &str| {
            std::fs::write(&path, text).unwrap();
            look(&cli::Serve { config: Some(path.clone()), check: true }).map_err(|Failure(reason)| reason)
        };
        std::fs::write(directory.path().join("a.img"), "").unwrap();
        let (lines, doubts) = look("[drives]\npaths = [\"a.img\"]\n[cores]\ncount = 1\n").unwrap();
        assert_eq!(doubts, [""; 0]);
        assert!(lines.contains(&"drives: 1".to_owned()) && lines[1] == "iSCSI: 0.0.0.0:3260", "{lines:?}");
        let (_, doubts) = look("[drives]\npaths = [\"a.img\",\n\"/nonexistent/b\"]\n").unwrap();
        assert_eq!(doubts, ["line 3: /nonexistent/b is not there"]);
        assert!(look("[drive]\n").unwrap_err().contains("did you mean \"drives\"?"));
        assert!(look("[cores]\nlist = [1023]\n").unwrap_err().contains("core 1023"));
        let token = "[api]\ntcp = \"127.0.0.1:1\"\ntoken_file = \"token\"\n";
        assert!(look(token).unwrap_err().contains("cannot be read"));
    }
}
