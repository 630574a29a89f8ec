//! What owner and partner say to each other over a connection for drives, as frames of `pair::link`.
//!
//! ```text
//!   owner ──► Open     the term, and the drives of which the twins are wanted      answered by Opened, Busy or Refused
//!         ──► Write    to a twin, durably or not                                   answered by Ended
//!         ──► Flush    a twin                                                      answered by Ended
//!         ──► Synchrony    both are in sync by this name; no answer
//! ```
//!
//! ```text
//!   kind              content, little-endian
//!   16  Open          term (8), number of drives (8), for each: twin (16), bytes (8)
//!   17  Write         request (8), twin (16), offset in bytes (8), flags (8): 1 durable; then the data
//!   18  Flush         request (8), twin (16)
//!   19  Synchrony     synchrony (16), number of drives (8), for each: twin (16)
//!   32  Twin          twin (16), state (8): 0 absent, 1 there without a record, 2 with one; if it is there, which opening it was (8);
//!                     then the record (8 KiB)
//!   33  Opened        nothing: every twin was named before
//!   34  Busy          nothing: what came over an earlier connection is still at work; ask again
//!   35  Refused       term that is accepted (8), 0 for none
//!   36  Ended         request (8), error (4): 0 none, number of the system's error (4)
//! ```

use env::IoError;
use pair::Term;

use crate::order::RequestId;
use crate::record::{Record, SLOT_BYTES, Synchrony, TwinId};

/// Longest data of one write. What is longer is sent as several.
pub const WRITE_BYTES_MAX: usize = 1 << 20;
/// Most drives of which one message speaks.
pub const DRIVES_MAX: usize = 256;

const OPEN: u16 = 16;
const WRITE: u16 = 17;
const FLUSH: u16 = 18;
const SYNCHRONY: u16 = 19;
const TWIN: u16 = 32;
const OPENED: u16 = 33;
const BUSY: u16 = 34;
const REFUSED: u16 = 35;
const ENDED: u16 = 36;

const WRITE_HEADER_BYTES: usize = 40;
const DURABLE: u64 = 1;

/// From the owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    Open { term: Term, drives: Vec<WantedTwin> },
    Write { request: RequestId, twin: TwinId, offset_bytes: u64, durable: bool, data: Vec<u8> },
    Flush { request: RequestId, twin: TwinId },
    Synchrony { synchrony: Synchrony, drives: Vec<TwinId> },
}

/// A twin of the owner, and how long it is: its twin must be as long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WantedTwin {
    pub twin: TwinId,
    pub bytes: u64,
}

/// From the partner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// To `Open`, once for each twin.
    Twin {
        twin: TwinId,
        state: TwinNews,
    },
    /// To `Open`, after all twins: the term is accepted.
    Opened,
    /// To `Open`: what came over an earlier connection is at work.
    Busy,
    /// To `Open`: another term is accepted, or none.
    Refused {
        accepts: Option<Term>,
    },
    Ended {
        request: RequestId,
        result: Result<(), IoError>,
    },
}

/// What the partner says of its twin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TwinNews {
    Absent,
    There {
        /// Of a start of the partner, which opening of a drive it was. If the drive has been opened again, it may have lost what was in
        /// its cache.
        opening: u64,
        record: Option<Record>,
    },
}

/// A message that makes no sense: its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    pub kind: u16,
}

impl Ask {
    /// Kind and content, of which data is a part of its own.
    pub fn encode(&self) -> (u16, Vec<u8>, &[u8]) {
        let mut content = Vec::new();
        let mut data: &[u8] = &[];
        let kind = match self {
            Ask::Open { term, drives } => {
                put(&mut content, term.0);
                put_count(&mut content, drives.len());
                for wanted in drives {
                    put_id(&mut content, wanted.twin.0);
                    put(&mut content, wanted.bytes);
                }
                OPEN
            }
            Ask::Write { request, twin, offset_bytes, durable, data: written } => {
                content.extend_from_slice(&write_header(*request, *twin, *offset_bytes, *durable));
                data = written;
                WRITE
            }
            Ask::Flush { request, twin } => {
                put(&mut content, request.0);
                put_id(&mut content, twin.0);
                FLUSH
            }
            Ask::Synchrony { synchrony, drives } => {
                put_id(&mut content, synchrony.0);
                put_count(&mut content, drives.len());
                drives.iter().for_each(|twin| put_id(&mut content, twin.0));
                SYNCHRONY
            }
        };
        (kind, content, data)
    }

    pub fn decode(kind: u16, content: &[u8]) -> Result<Ask, Malformed> {
        let mut bytes = Reader(content);
        let ask = match kind {
            OPEN => open(&mut bytes),
            WRITE => write(&mut bytes),
            FLUSH => flush(&mut bytes),
            SYNCHRONY => synchrony(&mut bytes),
            _ => None,
        };
        ask.filter(|_| bytes.0.is_empty()).ok_or(Malformed { kind })
    }
}

/// Kind and header of a write, before its data: for whoever has the data in pieces.
pub fn write_parts(
    request: RequestId,
    twin: TwinId,
    offset_bytes: u64,
    durable: bool,
) -> (u16, [u8; WRITE_HEADER_BYTES]) {
    (WRITE, write_header(request, twin, offset_bytes, durable))
}

fn write_header(
    request: RequestId,
    twin: TwinId,
    offset_bytes: u64,
    durable: bool,
) -> [u8; WRITE_HEADER_BYTES] {
    let mut header = [0; WRITE_HEADER_BYTES];
    header[..8].copy_from_slice(&request.0.to_le_bytes());
    header[8..24].copy_from_slice(&twin.0.to_le_bytes());
    header[24..32].copy_from_slice(&offset_bytes.to_le_bytes());
    header[32..].copy_from_slice(&(if durable { DURABLE } else { 0 }).to_le_bytes());
    header
}

impl Answer {
    pub fn encode(&self) -> (u16, Vec<u8>) {
        let mut content = Vec::new();
        let kind = match self {
            Answer::Twin { twin, state } => {
                put_id(&mut content, twin.0);
                match state {
                    TwinNews::Absent => put(&mut content, 0),
                    TwinNews::There { opening, record } => {
                        put(&mut content, if record.is_some() { 2 } else { 1 });
                        put(&mut content, *opening);
                        content.extend(record.as_ref().map(Record::encode).unwrap_or_default());
                    }
                }
                TWIN
            }
            Answer::Opened => OPENED,
            Answer::Busy => BUSY,
            Answer::Refused { accepts } => {
                put(&mut content, accepts.map_or(0, |term| term.0));
                REFUSED
            }
            Answer::Ended { request, result } => {
                put(&mut content, request.0);
                let (code, errno) = result.map_or_else(error_numbers, |()| (0, 0));
                content.extend_from_slice(&code.to_le_bytes());
                content.extend_from_slice(&errno.to_le_bytes());
                ENDED
            }
        };
        (kind, content)
    }

    pub fn decode(kind: u16, content: &[u8]) -> Result<Answer, Malformed> {
        let mut bytes = Reader(content);
        let answer = match kind {
            TWIN => twin(&mut bytes),
            OPENED => Some(Answer::Opened),
            BUSY => Some(Answer::Busy),
            REFUSED => {
                bytes.number().map(|term| Answer::Refused { accepts: (term != 0).then_some(Term(term)) })
            }
            ENDED => ended(&mut bytes),
            _ => None,
        };
        answer.filter(|_| bytes.0.is_empty()).ok_or(Malformed { kind })
    }
}

fn open(bytes: &mut Reader) -> Option<Ask> {
    let term = Term(bytes.number()?);
    let count = bytes.count()?;
    let wanted = |bytes: &mut Reader| {
        Some(WantedTwin { twin: TwinId(bytes.id()?), bytes: bytes.number().filter(|&bytes| bytes > 0)? })
    };
    let drives = (0..count).map(|_| wanted(bytes)).collect::<Option<Vec<_>>>()?;
    Some(Ask::Open { term, drives })
}

fn write(bytes: &mut Reader) -> Option<Ask> {
    let (request, twin) = (RequestId(bytes.number()?), TwinId(bytes.id()?));
    let offset_bytes = bytes.number()?;
    let durable = match bytes.number()? {
        0 => false,
        DURABLE => true,
        _ => return None,
    };
    let data = bytes.rest();
    offset_bytes.checked_add(data.len() as u64)?;
    let is_writable = !data.is_empty() && data.len() <= WRITE_BYTES_MAX;
    is_writable.then(|| Ask::Write { request, twin, offset_bytes, durable, data: data.to_vec() })
}

fn flush(bytes: &mut Reader) -> Option<Ask> {
    Some(Ask::Flush { request: RequestId(bytes.number()?), twin: TwinId(bytes.id()?) })
}

fn synchrony(bytes: &mut Reader) -> Option<Ask> {
    let synchrony = Synchrony(bytes.id()?);
    let count = bytes.count()?;
    let drives = (0..count).map(|_| bytes.id().map(TwinId)).collect::<Option<Vec<_>>>()?;
    Some(Ask::Synchrony { synchrony, drives })
}

fn twin(bytes: &mut Reader) -> Option<Answer> {
    let twin = TwinId(bytes.id()?);
    let state = match bytes.number()? {
        0 => TwinNews::Absent,
        1 => TwinNews::There { opening: bytes.number()?, record: None },
        2 => {
            let (opening, slot) = (bytes.number()?, bytes.rest());
            let record = Some(Record::decode(slot).filter(|_| slot.len() == SLOT_BYTES)?);
            TwinNews::There { opening, record }
        }
        _ => return None,
    };
    Some(Answer::Twin { twin, state })
}

fn ended(bytes: &mut Reader) -> Option<Answer> {
    let request = RequestId(bytes.number()?);
    let both = bytes.number()?;
    let (code, errno) = (both as u32, (both >> 32) as i32);
    let result = match code {
        0 if errno == 0 => Ok(()),
        OTHER => Err(IoError::Other(errno)),
        _ if errno == 0 => Err(CODES.iter().find(|(_, number)| *number == code).map(|&(error, _)| error)?),
        _ => return None,
    };
    Some(Answer::Ended { request, result })
}

/// Numbers of errors on the wire. They stay as they are.
const CODES: [(IoError, u32); 16] = [
    (IoError::NotFound, 1),
    (IoError::PermissionDenied, 2),
    (IoError::Busy, 3),
    (IoError::NotADrive, 4),
    (IoError::NoSpace, 5),
    (IoError::Media, 6),
    (IoError::Gone, 7),
    (IoError::ReadOnly, 8),
    (IoError::Closed, 9),
    (IoError::Refused, 10),
    (IoError::AddressInUse, 11),
    (IoError::AddressNotAvailable, 12),
    (IoError::TimedOut, 13),
    (IoError::TooMany, 14),
    (IoError::Reserved, 15),
    (IoError::Unsupported, 16),
];
const OTHER: u32 = 255;

fn error_numbers(error: IoError) -> (u32, i32) {
    match error {
        IoError::Other(errno) => (OTHER, errno),
        named => {
            let code = CODES.iter().find(|(error, _)| *error == named).map(|&(_, code)| code);
            (code.expect("every error has a number"), 0)
        }
    }
}

fn put(content: &mut Vec<u8>, number: u64) {
    content.extend_from_slice(&number.to_le_bytes());
}

fn put_id(content: &mut Vec<u8>, id: u128) {
    content.extend_from_slice(&id.to_le_bytes());
}

fn put_count(content: &mut Vec<u8>, count: usize) {
    assert!(count <= DRIVES_MAX, "a message speaks of {DRIVES_MAX} drives at most");
    put(content, count as u64);
}

/// What is left of a content.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn id(&mut self) -> Option<u128> {
        let (id, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u128::from_le_bytes(*id))
    }

    fn count(&mut self) -> Option<u64> {
        self.number().filter(|&count| count <= DRIVES_MAX as u64)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// For `fuzz`: what is understood is said in the same way.
pub fn fuzz(bytes: &[u8]) {
    let Some((kind, content)) = bytes.split_first_chunk::<2>() else { return };
    let kind = u16::from_le_bytes(*kind);
    if let Ok(ask) = Ask::decode(kind, content) {
        let (again, header, data) = ask.encode();
        assert_eq!((again, [&header, data].concat()), (kind, content.to_vec()));
    }
    if let Ok(answer) = Answer::decode(kind, content) {
        let (again, encoded) = answer.encode();
        assert_eq!(again, kind);
        assert_eq!(Answer::decode(again, &encoded), Ok(answer), "it is understood in the same way");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Bits;

    fn asks() -> Vec<Ask> {
        let (request, twin) = (RequestId(7), TwinId(1 << 90 | 3));
        vec![
            Ask::Open { term: Term(4), drives: vec![WantedTwin { twin, bytes: 1 << 40 }] },
            Ask::Write { request, twin, offset_bytes: 4096, durable: true, data: vec![5; 4096] },
            Ask::Flush { request, twin },
            Ask::Synchrony { synchrony: Synchrony(1 << 120), drives: vec![twin, TwinId(9)] },
        ]
    }

    #[test]
    fn what_is_said_is_understood() {
        for ask in asks() {
            let (kind, header, data) = ask.encode();
            let content = [&header, data].concat();
            assert_eq!(Ask::decode(kind, &content), Ok(ask));
            for shorter in 0..content.len().min(WRITE_HEADER_BYTES + 1) {
                assert_eq!(
                    Ask::decode(kind, &content[..shorter]),
                    Err(Malformed { kind }),
                    "{shorter} bytes"
                );
            }
        }
        let record = Record {
            twin: TwinId(3),
            generation: 2,
            synchrony: Synchrony(9),
            region_bytes: 4 << 20,
            mirrored_bytes: 117 << 20,
            marked: Bits::full(30),
        };
        let ended = |result| Answer::Ended { request: RequestId(1 << 50), result };
        let news = |state| Answer::Twin { twin: TwinId(3), state };
        let mut answers = vec![
            news(TwinNews::Absent),
            news(TwinNews::There { opening: 1 << 40, record: None }),
            news(TwinNews::There { opening: 2, record: Some(record) }),
            Answer::Opened,
            Answer::Busy,
            Answer::Refused { accepts: None },
            Answer::Refused { accepts: Some(Term(3)) },
            ended(Ok(())),
            ended(Err(IoError::Other(-5))),
        ];
        answers.extend(CODES.iter().map(|&(error, _)| ended(Err(error))));
        for answer in answers {
            let (kind, content) = answer.encode();
            assert_eq!(Answer::decode(kind, &content), Ok(answer));
        }
    }

    #[test]
    fn what_no_owner_says_is_refused() {
        let write = &asks()[1];
        let (kind, mut header, data) = write.encode();
        let refused = |content: &[u8]| Ask::decode(kind, content) == Err(Malformed { kind });
        assert!(refused(&header), "a write of nothing");
        assert!(refused(&[&header[..], &vec![0; WRITE_BYTES_MAX + 1]].concat()), "too much");
        header[32] = 2;
        assert!(refused(&[&header, data].concat()), "an unknown flag");
        header[32] = 0;
        header[24..32].fill(0xFF);
        assert!(refused(&[&header, data].concat()), "behind the end of all drives");
        let mut many = 4u64.to_le_bytes().to_vec();
        many.extend_from_slice(&(DRIVES_MAX as u64 + 1).to_le_bytes());
        assert_eq!(Ask::decode(OPEN, &many), Err(Malformed { kind: OPEN }));
        assert_eq!(Ask::decode(99, &[]), Err(Malformed { kind: 99 }));
        assert_eq!(
            Answer::decode(ENDED, &[[9; 8], [77, 0, 0, 0, 0, 0, 0, 0]].concat()),
            Err(Malformed { kind: ENDED })
        );
    }
}
