//! `pair join` and `witness join`: a server gets what it needs from a head's door.
//!
//! What always holds: the file that makes the server a part of the pair is written last, `pair.json` on a head and `member.json` on
//! a witness. Until then the join can be repeated with another token. A server that has an array of its own is refused.

use std::io;
use std::path::Path;
use std::sync::Arc;

use register::Identity;
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::blank;
use crate::create::check_listen;
use crate::door::JOIN_TIME_MAX;
use crate::error::SetupError;
use crate::exchange::{self, Answer, Files, Ready, Request};
use crate::files;
use crate::member;
use crate::member_file::{self, MemberFile};
use crate::pair_file::{Keys, PAIR_FILE_VERSION, PairFile};
use crate::ports::Ports;
use crate::refusal::Refusal;
use crate::tls;
use crate::token::{Purpose, Token};

const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// Makes this server the other head of the pair. Afterwards the caller starts [`crate::Member`] and the head.
/// The head's own id becomes the one that the pair has for it.
pub async fn join_head(token: &Token, listen: &[Ports], state_dir: &Path) -> Result<PairFile, SetupError> {
    check_token(token, Purpose::Head)?;
    member::find_programs()?;
    files::make_directory(state_dir)?;
    if PairFile::load(state_dir)?.is_some() {
        return Err(SetupError::Paired { path: PairFile::path(state_dir) });
    }
    blank::check(state_dir)?;
    check_listen(listen, true)?;
    let _member = member::lock(state_dir)?;
    let (files, initial_cluster) = ask(token, listen).await?;
    let pair = pair_file(&files, listen).ok_or_else(|| SetupError::not_understood(token.door))?;
    save_member(&files, listen, initial_cluster, state_dir)?;
    files::save(&state_dir.join("head"), format!("{}\n", pair.head).as_bytes())?;
    let _lock = files::lock(state_dir)?;
    pair.save(state_dir)?;
    Ok(pair)
}

/// Makes this server the witness of the pair. Afterwards the caller starts [`crate::Member`].
pub async fn join_witness(token: &Token, listen: &[Ports], state_dir: &Path) -> Result<(), SetupError> {
    check_token(token, Purpose::Witness)?;
    member::find_programs()?;
    files::make_directory(state_dir)?;
    for path in [PairFile::path(state_dir), member_file::path(state_dir)] {
        if files::load(&path)?.is_some() {
            return Err(SetupError::Paired { path });
        }
    }
    check_listen(listen, false)?;
    let _member = member::lock(state_dir)?;
    let (files, initial_cluster) = ask(token, listen).await?;
    save_member(&files, listen, initial_cluster, state_dir)
}

fn check_token(token: &Token, purpose: Purpose) -> Result<(), SetupError> {
    match token.purpose == purpose {
        true => Ok(()),
        false => Err(SetupError::Refused(Refusal::OtherPurpose { purpose: token.purpose })),
    }
}

fn save_member(
    files: &Files,
    listen: &[Ports],
    initial_cluster: String,
    state_dir: &Path,
) -> Result<(), SetupError> {
    let identity = Identity {
        authority: files.authority.clone(),
        certificate: files.own.certificate.clone(),
        key: files.own.key.clone(),
    };
    let file = MemberFile::new(files.name.clone(), files.array.to_string(), listen, initial_cluster, true)
        .with_takeover_ms(files.takeover_ms);
    file.save(state_dir, &identity)
}

/// `None` if the door has sent what is no head's.
fn pair_file(files: &Files, listen: &[Ports]) -> Option<PairFile> {
    let head = files.head.as_ref()?;
    let mut members = vec![listen[0].client().to_string()];
    members.extend(files.members.iter().cloned());
    let pair = PairFile {
        version: PAIR_FILE_VERSION,
        array: files.array,
        head: head.head,
        partner: head.partner,
        seat: head.seat,
        partner_portals: Vec::new(),
        listen: listen.iter().map(Ports::link).collect(),
        partner_listen: head.partner_listen.clone(),
        link_key: head.link_key.clone(),
        authority: Keys { certificate: files.authority.clone(), key: head.authority_key.clone() },
        own: files.own.clone(),
        members,
        convert: Vec::new(),
        share: Vec::new(),
        takeover_ms: files.takeover_ms,
        // the head that made the pair writes the first value
        first_term: pair::Term(1),
        is_forgotten: false,
    };
    pair.fault().is_none().then_some(pair)
}

/// Shows the token at the door. Gives what the door has given.
async fn ask(token: &Token, listen: &[Ports]) -> Result<(Files, String), SetupError> {
    let mut stream = connect(token).await?;
    let broke = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            SetupError::Door { door: token.door, why: "the connection was closed".to_owned() }
        }
        _ => SetupError::Door { door: token.door, why: error.to_string() },
    };
    let conversation = async {
        let request = Request {
            version: exchange::VERSION,
            purpose: token.purpose,
            secret: token.secret,
            listen: listen.iter().map(Ports::link).collect(),
        };
        exchange::send(&mut stream, &request).await.map_err(broke)?;
        let files = match exchange::receive(&mut stream).await.map_err(broke)? {
            Answer::Files(files) if files.array == token.array => *files,
            Answer::Refused(refusal) => return Err(SetupError::Refused(refusal)),
            _ => return Err(SetupError::not_understood(token.door)),
        };
        exchange::send(&mut stream, &Ready {}).await.map_err(broke)?;
        let initial_cluster = match exchange::receive(&mut stream).await.map_err(broke)? {
            Answer::Enrolled { initial_cluster } => initial_cluster,
            Answer::Refused(refusal) => return Err(SetupError::Refused(refusal)),
            Answer::Files(_) => return Err(SetupError::not_understood(token.door)),
        };
        // the door has done all: a connection that breaks now does no harm
        let _closed = stream.shutdown().await;
        Ok((files, initial_cluster))
    };
    let late = |_| SetupError::Door { door: token.door, why: "no answer in time".to_owned() };
    timeout(JOIN_TIME_MAX, conversation).await.map_err(late)?
}

async fn connect(token: &Token) -> Result<TlsStream<TcpStream>, SetupError> {
    let door = token.door;
    let unreachable = |error: io::Error| match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(_)) => SetupError::WrongAuthority { door },
        _ => SetupError::Door { door, why: error.to_string() },
    };
    let connector = TlsConnector::from(Arc::new(tls::client_config(token.authority)));
    let connecting = async {
        let socket = TcpStream::connect(door).await?;
        connector.connect(ServerName::from(door.ip()), socket).await
    };
    let late = |_| SetupError::Door { door, why: "no answer in time".to_owned() };
    timeout(CONNECT_TIME_MAX, connecting).await.map_err(late)?.map_err(unreachable)
}
