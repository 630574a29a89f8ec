//! A daemon of one's own, on drives that are files, and what it takes of the machine.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::shell::{self, Result};

/// Longer than a start takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const DRIVES: usize = 4;
const DRIVE_BYTES: u64 = 4 << 30;

/// Memory and descriptors of the daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    pub rss_kib: u64,
    pub descriptors: usize,
}

/// See the module's words. Ends with its value.
pub struct Head {
    program: PathBuf,
    directory: PathBuf,
    socket: PathBuf,
    pub address: SocketAddr,
    child: Option<Child>,
}

impl Head {
    /// Starts an array without anything in it.
    pub fn new(name: &str) -> Result<Head> {
        let program = match std::env::var_os("TANGELO") {
            Some(program) => program.into(),
            None => {
                shell::run(shell::cargo().args(["build", "--quiet", "--release", "-p", "tangelo"]))?;
                shell::target().join("release/tangelo")
            }
        };
        let directory = shell::target().join("storm").join(name);
        let _nothing_there = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        for number in 0..DRIVES {
            let drive = fs::File::create(directory.join(format!("drive-{number}.img")));
            drive.and_then(|drive| drive.set_len(DRIVE_BYTES)).map_err(|error| error.to_string())?;
        }
        let address = free_address()?;
        // a Unix socket's path is short
        let socket = std::env::temp_dir().join(format!("tangelo-storm-{}.sock", std::process::id()));
        let config = format!(
            "state_dir = \"state\"\n[listen]\niscsi = [\"{address}\"]\n[api]\nsocket = \"{}\"\n[drives]\npaths = [\"drive-*\"]\n",
            socket.display()
        );
        fs::write(directory.join("tangelo.toml"), config).map_err(|error| error.to_string())?;
        let mut head = Head { program, directory, socket, address, child: None };
        head.start()?;
        Ok(head)
    }

    /// Starts the daemon; how long it took until hosts were served.
    pub fn start(&mut self) -> Result<Duration> {
        let began = Instant::now();
        let path = self.directory.join("tangelo.log");
        let log = fs::File::create(&path).map_err(|error| error.to_string())?;
        let mut command = shell::program(&self.program);
        command.arg("serve").arg("--config").arg(self.directory.join("tangelo.toml"));
        command.stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().map_err(|error| format!("{}: {error}", self.program.display()))?);
        while began.elapsed() < PATIENCE {
            if fs::read_to_string(&path).unwrap_or_default().contains("serving iSCSI on") {
                return Ok(began.elapsed());
            }
            self.check_running()?;
            sleep(Duration::from_millis(5));
        }
        Err(format!("the daemon does not serve; {} says why", path.display()))
    }

    pub fn check_running(&mut self) -> Result {
        match self.child.as_mut().map(Child::try_wait) {
            Some(Ok(None)) => Ok(()),
            other => Err(format!(
                "the daemon has ended: {other:?}; it said: {}",
                fs::read_to_string(self.directory.join("tangelo.log")).unwrap_or_default()
            )),
        }
    }

    /// Stops it in order; how long that took.
    pub fn stop(&mut self) -> Result<Duration> {
        let began = Instant::now();
        let Some(child) = &mut self.child else { return Ok(Duration::ZERO) };
        shell::run(Command::new("kill").arg("-TERM").arg(child.id().to_string()))?;
        while began.elapsed() < PATIENCE {
            if let Ok(Some(_)) = child.try_wait() {
                self.child = None;
                return Ok(began.elapsed());
            }
            sleep(Duration::from_millis(5));
        }
        Err("the daemon does not stop".to_owned())
    }

    /// Asks the daemon by its command line.
    pub fn command(&self, words: &[&str]) -> Result<String> {
        let mut command = shell::program(&self.program);
        command.arg("--socket").arg(&self.socket).args(words);
        shell::output_of(&mut command)
    }

    pub fn target_name(&self) -> Result<String> {
        let status = self.command(&["status", "-o", "json"])?;
        let status: serde_json::Value = serde_json::from_str(&status).map_err(|error| error.to_string())?;
        let name = status["array"]["target_name"].as_str();
        name.map(str::to_owned).ok_or_else(|| "status names no target".to_owned())
    }

    /// A pool of all drives.
    pub fn create_pool(&self) -> Result {
        let drives: Vec<String> = (0..DRIVES)
            .map(|number| self.directory.join(format!("drive-{number}.img")).display().to_string())
            .collect();
        let mut words = vec!["pool", "create", "p", "--protection", "parity-1"];
        words.extend(drives.iter().map(String::as_str));
        self.command(&words).map(drop)
    }

    pub fn usage(&self) -> Result<Usage> {
        let id = self.child.as_ref().ok_or("the daemon has ended")?.id();
        let process = Path::new("/proc").join(id.to_string());
        let status = fs::read_to_string(process.join("status")).map_err(|error| error.to_string())?;
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let rss = rss.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
        let descriptors = fs::read_dir(process.join("fd")).map_err(|error| error.to_string())?.count();
        Ok(Usage { rss_kib: rss.ok_or("no VmRSS")?, descriptors })
    }

    /// Everything went well: nothing is left behind.
    pub fn remove(mut self) -> Result {
        self.stop()?;
        fs::remove_dir_all(&self.directory).map_err(|error| error.to_string())
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ended = child.kill();
            let _status = child.wait();
        }
        let _gone = fs::remove_file(&self.socket);
    }
}

/// A port that nobody listens on now.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map_err(|error| error.to_string())
}
