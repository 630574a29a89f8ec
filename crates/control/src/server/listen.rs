//! The sockets of the API. A second daemon cannot use the same Unix socket, TCP needs the token, and TLS a certificate.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};

use super::certificate::{CertificateError, Shown};
use super::doors::Doors;
use super::web::WebListener;
use crate::access::{Access, now_ms};
use crate::config::{ApiTcp, Config};
use crate::secret_file;
use crate::state::lock_file;

/// Bytes that a token has at least and at most.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=4096;

/// Why the API cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    #[error(
        "{path}: another tangelo serves this socket; stop it first, or give this one another [api] socket"
    )]
    Taken { path: PathBuf },
    #[error("{path}: there is a file that is not a socket; move it away, or give another [api] socket")]
    NotASocket { path: PathBuf },
    #[error("{path}: {error}; name a place for the socket that this user may write to as [api] socket")]
    Socket { path: PathBuf, error: io::Error },
    #[error("API over TCP on {address}: {error}")]
    Tcp { address: SocketAddr, error: io::Error },
    #[error("API over TLS on {address}: {error}; correct [web] listen")]
    Web { address: SocketAddr, error: io::Error },
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("{path}: {reason}; make one with `openssl rand -hex 32 > {path}; chmod 600 {path}`", path = .path.display())]
    Token { path: PathBuf, reason: String },
}

/// What a client on TCP must present as `Authorization: Bearer`.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The token in a file that only its owner (and group) may read; white space around it does not count.
    pub fn load(path: &Path) -> Result<Token, ListenError> {
        let refuse = |reason: String| ListenError::Token { path: path.to_owned(), reason };
        let text = secret_file::read(path).map_err(|error| refuse(format!("the token: {error}")))?;
        let token = text.trim();
        if !TOKEN_BYTES.contains(&token.len()) {
            let (min, max) = (TOKEN_BYTES.start(), TOKEN_BYTES.end());
            return Err(refuse(format!(
                "the token has {} characters; {min} to {max} are possible",
                token.len()
            )));
        }
        if !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(refuse("the token has characters that cannot be sent".to_owned()));
        }
        Ok(Token(token.to_owned()))
    }

    /// Whether `presented` is the token, in a time that tells nothing about it but its length.
    pub(super) fn matches(&self, presented: &[u8]) -> bool {
        base::secret::is_same(self.0.as_bytes(), presented)
    }
}

/// The API's listening sockets.
pub struct Listeners {
    pub(super) unix: UnixListener,
    pub(super) tcp: Option<(TcpListener, Token)>,
    pub(super) web: Vec<Arc<WebListener>>,
    pub(super) doors: Arc<Doors>,
    socket: PathBuf,
    /// Locked while the socket is ours.
    _lock: File,
}

impl Listeners {
    /// Opens what the configuration asks for. Needs a tokio runtime around it.
    pub async fn open(config: &Config) -> Result<Listeners, ListenError> {
        let tcp = match &config.tcp {
            Some(tcp) => Some(open_tcp(tcp).await?),
            None => None,
        };
        let access = Access::open(&config.state_dir);
        let (web, doors) = open_web(config, access).await?;
        let (unix, lock) = open_unix(&config.socket)?;
        Ok(Listeners { unix, tcp, web, doors: Arc::new(doors), socket: config.socket.clone(), _lock: lock })
    }

    /// The address of the API over TCP, for port 0.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().and_then(|(listener, _)| listener.local_addr().ok())
    }

    /// The addresses at which TLS is served, for port 0.
    pub fn web_addresses(&self) -> Vec<SocketAddr> {
        self.web.iter().filter_map(|listener| listener.address()).collect()
    }

    /// What a reload of the head's file changes.
    pub fn doors(&self) -> Arc<Doors> {
        self.doors.clone()
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        // Nobody else can have made a socket there: the lock is still ours.
        let _ = fs::remove_file(&self.socket);
    }
}

async fn open_web(
    config: &Config,
    access: Arc<Access>,
) -> Result<(Vec<Arc<WebListener>>, Doors), ListenError> {
    if config.web.listen.is_empty() {
        return Ok((Vec::new(), Doors::new(config, access, None)));
    }
    let mut sockets = Vec::new();
    for &address in &config.web.listen {
        let listener = TcpListener::bind(address).await;
        sockets.push(listener.map_err(|error| ListenError::Web { address, error })?);
    }
    let listen = sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect();
    let shown = Shown::new(config, listen, now_ms())?;
    let tls = shown.server_config();
    let listener = |tcp| Arc::new(WebListener { tcp, tls: tls.clone() });
    Ok((sockets.into_iter().map(listener).collect(), Doors::new(config, access, Some(shown))))
}

async fn open_tcp(tcp: &ApiTcp) -> Result<(TcpListener, Token), ListenError> {
    let token = Token::load(&tcp.token_file)?;
    let listener = TcpListener::bind(tcp.address).await;
    let listener = listener.map_err(|error| ListenError::Tcp { address: tcp.address, error })?;
    Ok((listener, token))
}

fn open_unix(path: &Path) -> Result<(UnixListener, File), ListenError> {
    let failed = |error| ListenError::Socket { path: path.to_owned(), error };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock = lock_file(Path::new(&lock_path)).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => ListenError::Taken { path: path.to_owned() },
        _ => failed(error),
    })?;
    // Ours now, so a socket that is still there was left behind by a daemon that died.
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path).map_err(failed)?,
        Ok(_) => return Err(ListenError::NotASocket { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let listener = bind_private(path).map_err(failed)?;
    Ok((listener, lock))
}

/// Binds so that nobody can connect before the mode is set: under another name first.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let mut beside = path.as_os_str().to_owned();
    beside.push("~");
    let beside = Path::new(&beside);
    match fs::remove_file(beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(beside)?;
    fs::set_permissions(beside, fs::Permissions::from_mode(0o660))?;
    fs::rename(beside, path)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_compared_as_a_whole() {
        let token = Token("0123456789abcdef".to_owned());
        assert!(token.matches(b"0123456789abcdef"));
        for wrong in
            [&b""[..], b"0123456789abcde", b"0123456789abcdef0", b"0123456789abcdeF", b"1123456789abcdef"]
        {
            assert!(!token.matches(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn token_files_that_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let refusal = || Token::load(&path).err().expect("refused").to_string();
        assert!(refusal().contains("the token: it cannot be read"));
        let write = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        write("0123456789abcdef\n", 0o644);
        assert!(refusal().contains("everybody on this machine"), "{}", refusal());
        write("short\n", 0o600);
        assert!(refusal().contains("has 5 characters"));
        write("0123456789 abcdef\n", 0o600);
        assert!(refusal().contains("cannot be sent"));
        write("0123456789abcdef\n", 0o640);
        assert!(Token::load(&path).is_ok_and(|token| token.matches(b"0123456789abcdef")));
    }
}
