//! What the door and the joiner say to each other, inside TLS: JSON with its length before it.
//!
//! ```text
//!   joins ──► Request      version, the token's secret, where it will listen
//!         ◄── Answer       Files: what its own files need | Refused
//!         ──► Ready        the files are written, all but the last
//!         ◄── Answer       Enrolled: etcd has the new member | Refused
//! ```
//!
//! What always holds: a message has at most [`MESSAGE_BYTES_MAX`]; one join a connection.

use std::io;
use std::net::SocketAddr;

use base::{ArrayId, HeadId};
use pair::LinkKey;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::pair_file::Keys;
use crate::refusal::Refusal;
use crate::token::Purpose;

pub(crate) const VERSION: u32 = 1;

/// Certificates and keys have a few KiB.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;

#[derive(Serialize, Deserialize)]
pub(crate) struct Request {
    pub version: u32,
    pub purpose: Purpose,
    #[serde(with = "crate::hex::bytes")]
    pub secret: [u8; 16],
    /// The first of the five ports of each address.
    pub listen: Vec<SocketAddr>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Ready {}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Refused(Refusal),
    Files(Box<Files>),
    Enrolled { initial_cluster: String },
}

/// What every joiner gets.
#[derive(Serialize, Deserialize)]
pub(crate) struct Files {
    #[serde(with = "crate::hex::id")]
    pub array: ArrayId,
    /// Its name as a member of etcd.
    pub name: String,
    pub own: Keys,
    /// The certificate of the array's authority.
    pub authority: String,
    /// `host:port` of the members that vote.
    pub members: Vec<String>,
    #[serde(default = "crate::pair_file::takeover_ms")]
    pub takeover_ms: u32,
    /// For the other head only.
    pub head: Option<HeadFiles>,
}

/// What the other head gets besides.
#[derive(Serialize, Deserialize)]
pub(crate) struct HeadFiles {
    /// The id of the head that joins.
    #[serde(with = "crate::hex::id")]
    pub head: HeadId,
    /// The head that has the door.
    #[serde(with = "crate::hex::id")]
    pub partner: HeadId,
    /// Which of the two heads the joiner is.
    pub seat: u8,
    pub partner_listen: Vec<SocketAddr>,
    #[serde(with = "crate::hex::link_key")]
    pub link_key: LinkKey,
    pub authority_key: String,
}

pub(crate) async fn send<T: Serialize>(to: &mut (impl AsyncWrite + Unpin), message: &T) -> io::Result<()> {
    let json = serde_json::to_vec(message).expect("plain values have a JSON form");
    assert!(json.len() <= MESSAGE_BYTES_MAX, "a message is bounded");
    let length = u32::try_from(json.len()).expect("it is bounded");
    to.write_all(&length.to_be_bytes()).await?;
    to.write_all(&json).await?;
    to.flush().await
}

/// [`io::ErrorKind::InvalidData`] if it is no such message.
pub(crate) async fn receive<T: DeserializeOwned>(from: &mut (impl AsyncRead + Unpin)) -> io::Result<T> {
    let length = from.read_u32().await? as usize;
    if length > MESSAGE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message that is too long"));
    }
    let mut json = vec![0; length];
    from.read_exact(&mut json).await?;
    serde_json::from_slice(&json).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_is_bounded_and_whole() {
        let mut sent = Vec::new();
        send(&mut sent, &Answer::Refused(Refusal::NotUnderstood)).await.unwrap();
        let answer = receive(&mut sent.as_slice()).await.unwrap();
        assert!(matches!(answer, Answer::Refused(Refusal::NotUnderstood)));
        assert!(receive::<Answer>(&mut &sent[..sent.len() - 1]).await.is_err());
        let long = [0xff; 8];
        let refused = receive::<Answer>(&mut &long[..]).await.err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
    }
}
