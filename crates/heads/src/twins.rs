//! Drives of the two heads become twins. The owner asks its partner which drives it has, chooses one for each of its own, and both write
//! their records. Over a connection of its own, because it is rare and its messages are long.
//!
//! What always holds: the record of the owner's drive is written first, so that what was broken off is found and finished the next time;
//! no drive that holds anything becomes a twin, unless its owner was told that this is wanted.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use base::Nanos;
use bytes::Bytes;
use env::{DriveHandle, DriveInfo, IoError};
use mirror::{RECORD_BYTES, Synchrony, TwinId};
use pair::{LinkEvent, Purpose, RoleName};
use serde::{Deserialize, Serialize};
use task::{Io, Notify, race};

use crate::dial::connect;
use crate::head::RunningHead;
use crate::record::{self, DriveRecord};
use crate::wire::Wire;

/// How long an answer of the partner may take: it opens each of its drives.
const ANSWER_TIME: Nanos = Nanos::from_secs(20);
const ASK: u16 = 1;
const ANSWER: u16 = 2;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ask {
    /// Which drives could be twins, and which are.
    Offer,
    Make(NewTwin),
}

#[derive(Serialize, Deserialize)]
struct NewTwin {
    path: String,
    twin: u128,
    mirrored_bytes: u64,
    /// `None`: the owner's drive holds something, which is to be copied.
    synchrony: Option<u128>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Offered(Vec<OfferedDrive>),
    Made,
    /// Why not, in words.
    Refused(String),
}

/// A drive of the partner that holds nothing, or is a twin already.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OfferedDrive {
    pub path: String,
    pub bytes: u64,
    pub twin: Option<u128>,
}

/// A drive of the owner and its twin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pairing {
    pub own: String,
    pub partners: String,
    pub mirrored_bytes: u64,
}

/// Why drives did not become twins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TwinsError {
    /// This head does not own the array.
    NotOwner,
    /// The partner does not answer.
    Unreachable,
    /// A drive of this head.
    Own { path: String, error: IoError },
    /// A drive of this head that holds something.
    Holds { path: String, what: String },
    /// For this drive, the partner has no free one that is as large.
    NoRoom { path: String, bytes: u64, offered: Vec<OfferedDrive> },
    /// The partner refuses.
    Partner(String),
    /// A drive that is to be seen by both heads has no persistent reservations.
    NoReservations { path: String },
    /// A host that is not of this array has reserved it.
    Reserved { path: String, key: u64 },
    /// The partner does not see these drives.
    NotSeen { paths: Vec<String>, offered: Vec<OfferedDrive> },
}

/// Which drives of the owner are to become twins.
#[derive(Clone, Default, Debug)]
pub struct TwinsWish {
    pub drives: Vec<String>,
    /// Those of them whose content may be lost.
    pub force: Vec<String>,
    /// They hold a pool, which is to be copied.
    pub keep: bool,
    /// Only say which.
    pub dry_run: bool,
}

/// A drive of the owner that is to have a twin; `twin`: which it had.
#[derive(Clone, Debug)]
pub struct InUse {
    pub path: String,
    pub bytes: u64,
    pub twin: Option<TwinId>,
}

/// A drive of the owner, opened, as long as it becomes a twin.
struct Own {
    path: String,
    handle: DriveHandle,
    info: DriveInfo,
    twin: Option<TwinId>,
}

impl RunningHead {
    /// Makes twins of drives of this head, which owns the array, and as many of its partner.
    pub async fn make_twins(self: Rc<Self>, wish: TwinsWish) -> Result<Vec<Pairing>, TwinsError> {
        if self.role() != RoleName::Owner {
            return Err(TwinsError::NotOwner);
        }
        let talk = Talk::begin(&self).await.ok_or(TwinsError::Unreachable)?;
        let mut own = Vec::new();
        let result = self.pair_up(&talk, &wish, &mut own).await;
        for drive in own {
            let _gone_already = self.io().drive_close(drive.handle).await;
        }
        talk.wire.close();
        result
    }

    /// Which drives of the partner would become the twins of drives that are in use here. Those whose twin is there are left out.
    pub async fn plan_twins(self: Rc<Self>, drives: Vec<InUse>) -> Result<Vec<Pairing>, TwinsError> {
        let talk = Talk::begin(&self).await.ok_or(TwinsError::Unreachable)?;
        let offered = talk.offered().await;
        talk.wire.close();
        let offered = offered?;
        let mut sizes = drives;
        sizes.retain(|drive| !drive.twin.is_some_and(|twin| is_offered(&offered, twin)));
        choose(&sizes, &offered)
    }

    async fn pair_up(
        &self,
        talk: &Talk,
        wish: &TwinsWish,
        own: &mut Vec<Own>,
    ) -> Result<Vec<Pairing>, TwinsError> {
        let offered = talk.offered().await?;
        for path in &wish.drives {
            let opened = self.io().drive_open(path, true).await;
            let error = |error| TwinsError::Own { path: path.clone(), error };
            let (handle, info) = opened.map_err(error)?;
            own.push(Own { path: path.clone(), handle, info: info.clone(), twin: None });
            let found = record::read(self.io(), handle).await.map_err(error)?;
            if let Some(DriveRecord::Shared(_)) = found {
                let what = "the record of a drive that both heads see".to_owned();
                return Err(TwinsError::Holds { path: path.clone(), what });
            }
            own.last_mut().expect("just pushed").twin = found.as_ref().map(DriveRecord::id);
            if !wish.keep && !wish.force.contains(path) {
                let has_record = found.is_some();
                let what = self.surroundings().what_it_holds(self.io(), handle, has_record).await;
                let holds = |what| TwinsError::Holds { path: path.clone(), what };
                what.map_or(Ok(()), |what| Err(holds(what)))?;
            }
        }
        let sizes: Vec<InUse> = own.iter().map(Own::in_use).collect();
        let pairings = choose(&sizes, &offered)?;
        for (drive, pairing) in own.iter().zip(&pairings) {
            let is_made = drive.twin.is_some_and(|twin| is_offered(&offered, twin));
            if !wish.dry_run && !is_made {
                self.make_both(talk, drive, pairing, wish.keep).await?;
            }
        }
        Ok(pairings)
    }

    async fn make_both(
        &self,
        talk: &Talk,
        drive: &Own,
        pairing: &Pairing,
        keep: bool,
    ) -> Result<(), TwinsError> {
        let twin = drive.twin.unwrap_or_else(|| TwinId(self.io().random_u128()));
        let synchrony = (!keep).then(|| Synchrony(self.io().random_u128()));
        let (io, mirrored_bytes) = (self.io(), pairing.mirrored_bytes);
        record::make_twin(io, drive.handle, &drive.info, twin, mirrored_bytes, synchrony)
            .await
            .map_err(|error| TwinsError::Own { path: drive.path.clone(), error })?;
        let path = pairing.partners.clone();
        let synchrony = synchrony.map(|synchrony| synchrony.0);
        let ask = Ask::Make(NewTwin { path, twin: twin.0, mirrored_bytes, synchrony });
        match talk.ask(&ask).await? {
            Answer::Made => Ok(()),
            Answer::Refused(why) => Err(TwinsError::Partner(why)),
            Answer::Offered(_) => Err(TwinsError::Unreachable),
        }
    }

    /// The owner asks something over a connection for twins.
    pub(crate) async fn answer_about_twins(self: Rc<Self>, wire: Rc<Wire>, kind: u16, content: Vec<u8>) {
        let ask = serde_json::from_slice(&content).ok().filter(|_| kind == ASK);
        let answer = match ask {
            None => return wire.close(),
            Some(_) if self.role() != RoleName::Partner => {
                Answer::Refused("the other head is not the partner now".to_owned())
            }
            Some(Ask::Offer) => Answer::Offered(self.offer().await),
            Some(Ask::Make(new)) => match self.make(&new).await {
                Ok(()) => Answer::Made,
                Err(why) => Answer::Refused(format!("{} of the partner: {why}", new.path)),
            },
        };
        wire.send_frame(ANSWER, vec![Bytes::from(serde_json::to_vec(&answer).expect("plain values"))]);
    }

    /// Drives of this head that hold nothing, and twins.
    async fn offer(&self) -> Vec<OfferedDrive> {
        let mut offered = self.partner().offered();
        for path in self.partner().paths() {
            if offered.iter().any(|drive| drive.path == path) {
                continue;
            }
            let Ok((handle, info)) = self.io().drive_open(&path, true).await else { continue };
            let bytes = info.size_bytes;
            match record::read(self.io(), handle).await {
                Ok(Some(record)) => offered.push(OfferedDrive { path, bytes, twin: Some(record.id().0) }),
                Ok(None) if self.surroundings().what_it_holds(self.io(), handle, false).await.is_none() => {
                    offered.push(OfferedDrive { path, bytes, twin: None });
                }
                Ok(None) | Err(_) => {}
            }
            let _gone_already = self.io().drive_close(handle).await;
        }
        offered
    }

    async fn make(&self, new: &NewTwin) -> Result<(), String> {
        if !self.partner().paths().contains(&new.path) {
            return Err("this head does not have it".to_owned());
        }
        let (handle, info) =
            self.io().drive_open(&new.path, true).await.map_err(|error| error.to_string())?;
        let result = match self.surroundings().what_it_holds(self.io(), handle, false).await {
            Some(what) => Err(format!("it holds {what}")),
            None => {
                let (twin, synchrony) = (TwinId(new.twin), new.synchrony.map(Synchrony));
                record::make_twin(self.io(), handle, &info, twin, new.mirrored_bytes, synchrony)
                    .await
                    .map_err(|error| error.to_string())
            }
        };
        let _gone_already = self.io().drive_close(handle).await;
        result
    }
}

impl Own {
    fn in_use(&self) -> InUse {
        InUse { path: self.path.clone(), bytes: self.info.size_bytes, twin: self.twin }
    }
}

fn is_offered(offered: &[OfferedDrive], twin: TwinId) -> bool {
    offered.iter().any(|drive| drive.twin == Some(twin.0))
}

/// For each drive its twin, if it has one, or the smallest free drive that is as large.
fn choose(own: &[InUse], offered: &[OfferedDrive]) -> Result<Vec<Pairing>, TwinsError> {
    let mut free: Vec<&OfferedDrive> = offered.iter().filter(|drive| drive.twin.is_none()).collect();
    free.sort_by_key(|drive| drive.bytes);
    let pair = |drive: &InUse| {
        let bytes = drive.bytes;
        let there = drive.twin.and_then(|twin| offered.iter().find(|other| other.twin == Some(twin.0)));
        let place = free.iter().position(|other| other.bytes >= bytes);
        let taken = there.or_else(|| Some(free.remove(place?))).ok_or_else(|| TwinsError::NoRoom {
            path: drive.path.clone(),
            bytes,
            offered: offered.to_vec(),
        })?;
        let mirrored_bytes = bytes.min(taken.bytes).saturating_sub(RECORD_BYTES as u64);
        Ok(Pairing { own: drive.path.clone(), partners: taken.path.clone(), mirrored_bytes })
    };
    own.iter().map(pair).collect()
}

/// The owner's end of a connection for twins: one question after the other.
pub(crate) struct Talk {
    io: Io,
    pub(crate) wire: Rc<Wire>,
    heard: Rc<Heard>,
}

struct Heard {
    is_up: Cell<bool>,
    has_ended: Cell<bool>,
    answers: RefCell<VecDeque<Answer>>,
    more: Notify,
}

impl Talk {
    /// `None`: the partner cannot be reached by any of its addresses.
    pub(crate) async fn begin(head: &Rc<RunningHead>) -> Option<Talk> {
        let io = head.io();
        let partner = head.partner_address();
        for attempt in 0..partner.count() {
            let Some(address) = partner.nth(attempt) else { continue };
            let Some(connection) = connect(io, address).await else { continue };
            let wire = Wire::new(io, connection, head.identity().link(io, Some(Purpose::Twins)));
            let heard = Rc::new(Heard {
                is_up: Cell::default(),
                has_ended: Cell::default(),
                answers: RefCell::default(),
                more: Notify::new(io),
            });
            let talk = Talk { io: io.clone(), wire: wire.clone(), heard: heard.clone() };
            io.spawn(async move {
                let _end = wire.run(|event| heard.on_event(&wire, event)).await;
                heard.has_ended.set(true);
                heard.more.notify();
            });
            if talk.wait(|heard| heard.is_up.get().then_some(())).await.is_some() {
                return Some(talk);
            }
            talk.wire.close();
        }
        None
    }

    async fn ask(&self, ask: &Ask) -> Result<Answer, TwinsError> {
        let content = Bytes::from(serde_json::to_vec(ask).expect("plain values"));
        self.wire.send_frame(ASK, vec![content]);
        self.wait(|heard| heard.answers.borrow_mut().pop_front()).await.ok_or(TwinsError::Unreachable)
    }

    /// The drives of the partner.
    pub(crate) async fn offered(&self) -> Result<Vec<OfferedDrive>, TwinsError> {
        match self.ask(&Ask::Offer).await? {
            Answer::Offered(offered) => Ok(offered),
            Answer::Refused(why) => Err(TwinsError::Partner(why)),
            Answer::Made => Err(TwinsError::Unreachable),
        }
    }

    /// `None`: the connection has ended, or it takes too long.
    async fn wait<T>(&self, found: impl Fn(&Heard) -> Option<T>) -> Option<T> {
        let looking = async {
            loop {
                match found(&self.heard) {
                    Some(value) => return Some(value),
                    None if self.heard.has_ended.get() => return None,
                    None => self.heard.more.wait().await,
                }
            }
        };
        race(looking, self.io.sleep(ANSWER_TIME)).await.ok().flatten()
    }
}

impl Heard {
    fn on_event(&self, wire: &Wire, event: LinkEvent) {
        match event {
            LinkEvent::Up { .. } => self.is_up.set(true),
            LinkEvent::Frame { kind: ANSWER, content } => match serde_json::from_slice(&content) {
                Ok(answer) => self.answers.borrow_mut().push_back(answer),
                Err(_) => wire.close(),
            },
            LinkEvent::Frame { .. } | LinkEvent::Message(_) => wire.close(),
        }
        self.more.notify();
    }
}

impl fmt::Display for TwinsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TwinsError::NotOwner => write!(f, "this head does not own the array"),
            TwinsError::Unreachable => write!(f, "the other head does not answer"),
            TwinsError::Own { path, error } => write!(f, "{path}: {error}"),
            TwinsError::Holds { path, what } => write!(f, "{path} holds {what}"),
            TwinsError::NoRoom { path, bytes, offered } => {
                write!(
                    f,
                    "the other head has no free drive for {path}, which has {bytes} bytes; it offers "
                )?;
                let free: Vec<String> = offered
                    .iter()
                    .filter(|drive| drive.twin.is_none())
                    .map(|drive| format!("{} ({} bytes)", drive.path, drive.bytes))
                    .collect();
                if free.is_empty() { write!(f, "none") } else { write!(f, "{}", free.join(", ")) }
            }
            TwinsError::Partner(why) => write!(f, "{why}"),
            TwinsError::NoReservations { path } => {
                write!(
                    f,
                    "{path} has no persistent reservations, by which a head keeps the other one from writing"
                )
            }
            TwinsError::Reserved { path, key } => {
                write!(f, "{path} is reserved with the key {key:#018x}, which is not of this array")
            }
            TwinsError::NotSeen { paths, .. } => {
                write!(f, "the other head does not see {}", paths.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(path: &str, bytes: u64, twin: Option<u128>) -> InUse {
        InUse { path: path.to_owned(), bytes, twin: twin.map(TwinId) }
    }

    fn offered(path: &str, bytes: u64, twin: Option<u128>) -> OfferedDrive {
        OfferedDrive { path: path.to_owned(), bytes, twin }
    }

    #[test]
    fn each_drive_gets_the_smallest_that_is_as_large_and_a_twin_keeps_its_own() {
        let there = [
            offered("x", 900, None),
            offered("y", 500, None),
            offered("z", 700, Some(7)),
            offered("u", 300, None),
        ];
        let names = |pairings: Vec<Pairing>| -> Vec<String> {
            pairings.into_iter().map(|pairing| pairing.partners).collect()
        };
        let mine = [own("a", 400, None), own("b", 400, Some(7)), own("c", 400, Some(8))];
        assert_eq!(names(choose(&mine, &there).unwrap()), ["y", "z", "x"]);
        let refused = choose(&[own("a", 901, None)], &there).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the other head has no free drive for a, which has 901 bytes; it offers x (900 bytes), y (500 bytes), u (300 bytes)"
        );
    }
}
