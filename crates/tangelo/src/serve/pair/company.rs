//! The other servers of the pair, as `pair.json` knows them: who has joined, which members of etcd there are, and which of them leads.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use heads::PartnerAddress;
use pair::Portal;
use setup::{Door, DoorEvent, Leader, PairFile};

use super::array::PairArray;

/// How often the members of etcd are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// How often each of them is asked whether it is there.
const VOTES_LOOK: Duration = Duration::from_secs(2);
/// After something that has failed.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// See the header of this file.
#[derive(Clone)]
pub struct Company(Arc<Shared>);

struct Shared {
    state_dir: PathBuf,
    file: Mutex<PairFile>,
    /// The members of etcd, and whether each answered lately.
    votes: Mutex<Vec<(String, bool)>>,
    partner: PartnerAddress,
}

impl Company {
    pub fn new(state_dir: PathBuf, file: PairFile, partner: PartnerAddress) -> Company {
        Company(Arc::new(Shared { state_dir, file: Mutex::new(file), votes: Mutex::default(), partner }))
    }

    pub fn file(&self) -> PairFile {
        self.0.file.lock().expect("nobody panics with it").clone()
    }

    pub fn votes(&self) -> Vec<(String, bool)> {
        self.0.votes.lock().expect("nobody panics with it").clone()
    }

    pub fn state_dir(&self) -> PathBuf {
        self.0.state_dir.clone()
    }

    /// The other head has said which portals it has. Whether that is new.
    pub fn learn_portals(&self, portals: &[Portal]) -> bool {
        if self.file().partner_portals == portals {
            return false;
        }
        let learnt = PairFile::update(&self.0.state_dir, |file| {
            file.partner_portals = portals.to_vec();
            true
        });
        match learnt {
            Ok(file) => *self.0.file.lock().expect("nobody panics with it") = file,
            Err(error) => {
                tracing::error!("{error}");
                self.0.file.lock().expect("nobody panics with it").partner_portals = portals.to_vec();
            }
        }
        true
    }

    /// `pair.json` has changed.
    fn read_again(&self) {
        match PairFile::load(&self.0.state_dir) {
            Ok(Some(file)) => {
                self.0.partner.set(file.partner_listen.clone());
                *self.0.file.lock().expect("nobody panics with it") = file;
            }
            Ok(None) => tracing::error!("pair.json is not there any more"),
            Err(error) => tracing::error!("{error}"),
        }
    }

    /// Lets the others join, and looks after the members of etcd, as long as the runtime is there.
    pub fn keep(&self, array: &Arc<PairArray>) {
        if self.file().partner_listen.is_empty() {
            tokio::spawn(self.clone().found());
        }
        tokio::spawn(self.clone().keep_door());
        tokio::spawn(self.clone().keep_members(array.clone()));
        tokio::spawn(self.clone().keep_votes());
    }

    /// The first head writes the first value of the register.
    async fn found(self) {
        while let Err(error) = setup::found_register(&self.file()).await {
            tracing::warn!("the register cannot be made yet: {error}");
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    async fn keep_door(self) {
        let mut said = String::new();
        loop {
            match Door::open(&self.0.state_dir).await {
                Ok(door) => {
                    let company = self.clone();
                    door.serve(std::future::pending(), move |event| company.on_door(event)).await;
                }
                Err(error) if error.to_string() != said => {
                    said = error.to_string();
                    tracing::warn!("nobody can join: {said}");
                }
                Err(_) => {}
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    fn on_door(&self, event: DoorEvent) {
        match event {
            DoorEvent::Joined { purpose, listen } => {
                let places: Vec<String> = listen.iter().map(|ports| ports.address().to_string()).collect();
                tracing::info!("a {purpose} joins from {}", places.join(", "));
                self.read_again();
            }
            DoorEvent::Members(members) => {
                tracing::info!("members of etcd: {}", members.join(", "));
                self.read_again();
            }
            DoorEvent::Refused { from, why } => tracing::warn!("{from} was not let in: {why}"),
        }
    }

    async fn keep_votes(self) {
        loop {
            let votes = setup::answering(&self.file()).await.unwrap_or_default();
            for (address, answers) in &votes {
                let before =
                    self.votes().iter().find(|(voter, _)| voter == address).map(|(_, answers)| *answers);
                match (before, answers) {
                    (Some(true), false) => tracing::warn!("the member of etcd at {address} does not answer"),
                    (Some(false), true) => tracing::info!("the member of etcd at {address} answers again"),
                    _ => {}
                }
            }
            *self.0.votes.lock().expect("nobody panics with it") = votes;
            tokio::time::sleep(VOTES_LOOK).await;
        }
    }

    /// The witness leads, so that the death of a head needs no election.
    async fn keep_members(self, array: Arc<PairArray>) {
        loop {
            if let Ok(Some(members)) = setup::refresh_members(&self.0.state_dir).await {
                tracing::info!("members of etcd: {}", members.join(", "));
                self.read_again();
            }
            if array.engine().is_some()
                && let Ok(Leader::Moved) = setup::lead_by_witness(&self.file()).await
            {
                tracing::info!("the witness leads etcd now");
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
