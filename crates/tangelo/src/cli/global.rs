//! Options of every command: where the array is, and how to print.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use control::client::{Fingerprint, Server, Trust};
use control::config::DEFAULT_SOCKET;

use super::Command;

/// The port of a URL that names none.
const HTTPS_PORT: u16 = 443;

#[derive(Args, Debug)]
pub struct Global {
    /// How to print the answer
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// The daemon's Unix socket
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "server", help = format!("The daemon's Unix socket [default: {DEFAULT_SOCKET}]"))]
    pub socket: Option<PathBuf>,
    /// The API of a daemon elsewhere, over TLS; HOST:PORT alone is TCP without TLS
    #[arg(long, global = true, value_name = "https://HOST:PORT", requires = "token_file")]
    pub server: Option<String>,
    /// The file with the token for --server
    #[arg(long, global = true, value_name = "FILE", requires = "server")]
    pub token_file: Option<PathBuf>,
    /// SHA-256 of the server's certificate, as `tangelo web show` tells it there
    #[arg(long, global = true, value_name = "SHA256", requires = "server", conflicts_with = "ca")]
    pub fingerprint: Option<Fingerprint>,
    /// File with the server's certificate, or its authority's [default: the authorities of this machine]
    #[arg(long, global = true, value_name = "FILE", requires = "server")]
    pub ca: Option<PathBuf>,
}

impl Global {
    /// Refuses what says where the array is, to a command that does not ask it; and what cannot be meant.
    pub fn check(&self, command: &Command) -> Result<(), String> {
        let is_tls = self.server.as_ref().is_none_or(|server| server.starts_with(TLS));
        if !is_tls && (self.fingerprint.is_some() || self.ca.is_some()) {
            return Err("--fingerprint and --ca are for TLS: write --server https://HOST:PORT".to_owned());
        }
        let (name, instead) = match command {
            Command::Serve(_) => {
                ("serve", ": name the socket that it serves as [api] socket in the head's file")
            }
            Command::Bench(_) => ("bench", ""),
            Command::Pair(pair) if pair.is_local() => ("this command", ": it is carried out here"),
            Command::Witness(_) => ("witness", ""),
            Command::Register(_) => ("register", ""),
            Command::Completions { .. } => ("completions", ""),
            Command::Man { .. } => ("man", ""),
            Command::Complete { .. } => ("complete", ""),
            _ => return Ok(()),
        };
        let given = [("--socket", self.socket.is_some()), ("--server", self.server.is_some())];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                Err(format!("{option} is for commands that ask a daemon, which {name} does not{instead}"))
            }
            None => Ok(()),
        }
    }

    /// The daemon that is to be asked.
    pub fn server(&self) -> Server {
        let (Some(server), Some(token_file)) = (&self.server, &self.token_file) else {
            return Server::Socket(self.socket.clone().unwrap_or_else(|| DEFAULT_SOCKET.into()));
        };
        let trust = match (self.fingerprint, &self.ca) {
            (Some(fingerprint), _) => Trust::Fingerprint(fingerprint),
            (None, Some(file)) => Trust::Authorities(file.clone()),
            (None, None) => Trust::System,
        };
        server_at(server, token_file.clone(), trust)
    }
}

const TLS: &str = "https://";

/// By what was written as --server.
pub fn server_at(server: &str, token_file: PathBuf, trust: Trust) -> Server {
    let Some(authority) = server.strip_prefix(TLS) else {
        let authority = server.strip_prefix("http://").unwrap_or(server).trim_end_matches('/').to_owned();
        return Server::Tcp { authority, token_file };
    };
    let authority = authority.trim_end_matches('/');
    let has_port = authority.rsplit(']').next().is_some_and(|end| end.contains(':'));
    let authority = if has_port { authority.to_owned() } else { format!("{authority}:{HTTPS_PORT}") };
    Server::Tls { authority, token_file, trust }
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// For people
    Table,
    /// For programs; every answer has a "schema"
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers() {
        for (text, is_tls, at) in [
            ("head:7780", false, "head:7780"),
            ("http://head:7780/", false, "head:7780"),
            ("https://head:7443", true, "head:7443"),
            ("https://head/", true, "head:443"),
            ("https://[2001:db8::1]", true, "[2001:db8::1]:443"),
            ("https://[2001:db8::1]:7443", true, "[2001:db8::1]:7443"),
        ] {
            match server_at(text, PathBuf::new(), Trust::System) {
                Server::Tls { authority, .. } => assert!(is_tls && authority == at, "{text}: {authority}"),
                Server::Tcp { authority, .. } => assert!(!is_tls && authority == at, "{text}: {authority}"),
                Server::Socket(path) => panic!("{text}: {path:?}"),
            }
        }
    }
}
