//! The beginning of a connection: who is there, and the proof that it has the array's key.
//!
//! ```text
//!   Hello, 112 bytes, little-endian
//!     0  magic "TANGPAIR"        8  lowest version (2)   10  highest version (2)
//!    12  purpose (2): 0 this end has not opened the connection, 1 control, 2 drives, 3 twins, 4 hosts
//!    14  0 (2)
//!    16  array (16)             32  head (16)            48  start (16)            64  nonce (32)
//!    96  0 (12)                108  CRC-32C of all before (4)
//! ```

use base::{ArrayId, HeadId, crc32c};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::{LinkError, LinkKey, Purpose, Start, Versions};

pub(super) const HELLO_BYTES: usize = 112;
pub(super) const PROOF_BYTES: usize = 32;

const MAGIC: &[u8; 8] = b"TANGPAIR";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    pub array: ArrayId,
    pub head: HeadId,
    pub start: Start,
    pub versions: Versions,
    /// Says the end that has opened the connection.
    pub purpose: Option<Purpose>,
    pub nonce: [u8; 32],
}

impl Hello {
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&self.versions.lowest.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.versions.highest.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.purpose.map_or(0, Purpose::number).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.array.0.to_le_bytes());
        bytes[32..48].copy_from_slice(&self.head.0.to_le_bytes());
        bytes[48..64].copy_from_slice(&self.start.0.to_le_bytes());
        bytes[64..96].copy_from_slice(&self.nonce);
        let checksum = crc32c(&bytes[..108]);
        bytes[108..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Refuses what cannot become a hello as early as it can be seen.
    pub fn check_beginning(bytes: &[u8]) -> Result<(), LinkError> {
        let length = bytes.len().min(MAGIC.len());
        if bytes[..length] == MAGIC[..length] { Ok(()) } else { Err(LinkError::NotALink) }
    }

    /// Reserved bytes of a later version are not looked at.
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Result<Hello, LinkError> {
        if crc32c(&bytes[..108]) != u32::from_le_bytes(part(bytes, 108)) {
            return Err(LinkError::Checksum);
        }
        let versions = Versions {
            lowest: u16::from_le_bytes(part(bytes, 8)),
            highest: u16::from_le_bytes(part(bytes, 10)),
        };
        let purpose = match u16::from_le_bytes(part(bytes, 12)) {
            0 => None,
            number => Some(Purpose::of(number).ok_or(LinkError::UnknownPurpose { number })?),
        };
        Ok(Hello {
            array: ArrayId(u128::from_le_bytes(part(bytes, 16))),
            head: HeadId(u128::from_le_bytes(part(bytes, 32))),
            start: Start(u128::from_le_bytes(part(bytes, 48))),
            versions,
            purpose,
            nonce: part(bytes, 64),
        })
    }
}

/// `N` bytes from `at` on. They must be there.
pub(super) fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("the length was checked")
}

/// What an end sends to prove that it has the key. Both hellos are in it, so it is good for this connection only; which end it is,
/// so that it cannot be sent back.
pub(super) fn proof(key: &LinkKey, is_opener: bool, own: &Hello, other: &Hello) -> [u8; PROOF_BYTES] {
    code(key, is_opener, own, other).finalize().into_bytes().into()
}

/// Whether this is the proof of the end whose hello comes first.
pub(super) fn is_proof(
    bytes: &[u8; PROOF_BYTES],
    key: &LinkKey,
    is_opener: bool,
    own: &Hello,
    other: &Hello,
) -> bool {
    code(key, is_opener, own, other).verify_slice(bytes).is_ok()
}

fn code(key: &LinkKey, is_opener: bool, own: &Hello, other: &Hello) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes keys of any length");
    mac.update(if is_opener { b"tangelo pair link: opener" } else { b"tangelo pair link: server" });
    mac.update(&own.encode());
    mac.update(&other.encode());
    mac
}
