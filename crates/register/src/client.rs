//! The register's client: one question at a time, to the member that answered last, then to the others.

use std::sync::Arc;
use std::time::Duration;

use pair::{Question, Register, RegisterError, Revision};
use thiserror::Error;

use crate::connection::Connection;
use crate::gateway::{self, Held, Range, Transaction};
use crate::keys::{Identity, KeyError};

pub use crate::connection::Broken;

/// How long a question may take, over all members, if the pair has the usual times.
pub const ANSWER_TIME_MAX: Duration = Duration::from_millis(1500);

/// How long one member may take, as long as there is another one to be asked.
const MEMBER_TIME_MAX: Duration = Duration::from_millis(400);

/// Why there is no answer. The question may have been carried out, except where it says otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ClientError {
    /// No member has answered; the reasons by address.
    #[error("no member of etcd answers: {}", list(.0))]
    Unreachable(Vec<(String, Broken)>),
    /// Nobody has written the register yet. Nothing was changed.
    #[error("etcd has no register for this array")]
    Absent,
    #[error("{0}")]
    Content(RegisterError),
}

fn list(reasons: &[(String, Broken)]) -> String {
    let one = |(address, why): &(String, Broken)| match why {
        Broken::Connection(why) => format!("{address}: {why}"),
        Broken::Tls(why) => format!("{address}: certificates: {why}"),
        Broken::Refused(why) => format!("{address}: etcd: {why}"),
        Broken::NotEtcd(why) => format!("{address}: not etcd: {why}"),
    };
    reasons.iter().map(one).collect::<Vec<_>>().join("; ")
}

pub struct Client {
    key: Vec<u8>,
    /// `host:port` of each member's clients' side. The one that answered last is asked first.
    members: Vec<String>,
    preferred: usize,
    tls: Arc<rustls::ClientConfig>,
    connection: Option<Connection>,
    /// The newest content that was seen, and the revision of etcd that wrote it.
    seen: Option<(Revision, u64)>,
    /// How long a question may take over all members, and at one of them.
    answer_time: Duration,
    member_time: Duration,
}

impl Client {
    /// `array` is part of the key, so that several arrays can share an etcd.
    pub fn new(array: &str, members: Vec<String>, identity: &Identity) -> Result<Client, KeyError> {
        assert!(!members.is_empty(), "an etcd has members");
        let tls = Arc::new(identity.client_config()?);
        let key = format!("/tangelo/{array}/register").into_bytes();
        let (answer_time, member_time) = (ANSWER_TIME_MAX, MEMBER_TIME_MAX);
        Ok(Client { key, members, preferred: 0, tls, connection: None, seen: None, answer_time, member_time })
    }

    /// For a pair whose partner takes over after this time: where that is longer than usual, answers may take longer, too.
    #[must_use]
    pub fn with_patience(self, takeover: Duration) -> Client {
        let answer_time = ANSWER_TIME_MAX.max(takeover * 3);
        Client { answer_time, member_time: answer_time * 4 / 15, ..self }
    }

    /// Writes the first content, if there is none. Gives what the register holds then.
    pub async fn create(&mut self, first: Register) -> Result<Register, ClientError> {
        let held = self.replace(0, &first).await?;
        self.read(held)
    }

    /// Carries out a question; gives what the register holds then.
    pub async fn ask(&mut self, question: Question) -> Result<Register, ClientError> {
        match question {
            Question::Read => self.look().await,
            Question::CompareAndSet { expected, new } => {
                if self.seen.is_none_or(|(revision, _)| revision != expected) {
                    let now = self.look().await?;
                    if now.revision != expected {
                        return Ok(now);
                    }
                }
                let (_, written_at) = self.seen.expect("it was looked up");
                let held = self.replace(written_at, &new).await?;
                self.read(held)
            }
        }
    }

    async fn look(&mut self) -> Result<Register, ClientError> {
        let body = serde_json::to_vec(&Range::of(&self.key)).expect("requests have a JSON form");
        let held = self.post(gateway::RANGE, body, gateway::parse_range).await?;
        self.read(held)
    }

    async fn replace(&mut self, written_at: u64, new: &Register) -> Result<Option<Held>, ClientError> {
        let transaction = Transaction::replacing(&self.key, written_at, &new.encode());
        let body = serde_json::to_vec(&transaction).expect("requests have a JSON form");
        self.post(gateway::TRANSACTION, body, gateway::parse_transaction).await
    }

    fn read(&mut self, held: Option<Held>) -> Result<Register, ClientError> {
        let held = held.ok_or(ClientError::Absent)?;
        let content = Register::decode(&held.value).map_err(ClientError::Content)?;
        self.seen = Some((content.revision, held.written_at));
        Ok(content)
    }

    /// Asks one member after the other. A change may be sent twice: the second finds another revision, and changes nothing.
    async fn post(
        &mut self,
        path: &str,
        body: Vec<u8>,
        parse: fn(&[u8]) -> Result<Option<Held>, String>,
    ) -> Result<Option<Held>, ClientError> {
        let end = tokio::time::Instant::now() + self.answer_time;
        let mut reasons = Vec::new();
        for _ in 0..self.members.len() {
            let address = self.members[self.preferred].clone();
            let until = end.min(tokio::time::Instant::now() + self.member_time);
            let answer = tokio::time::timeout_at(until, self.exchange(&address, path, body.clone())).await;
            let why = match answer {
                Ok(Ok(bytes)) => match parse(&bytes) {
                    Ok(held) => return Ok(held),
                    Err(why) => Broken::NotEtcd(why),
                },
                Ok(Err(why)) => why,
                Err(_) => Broken::Connection("no answer in time".to_owned()),
            };
            reasons.push((address, why));
            self.connection = None;
            self.preferred = (self.preferred + 1) % self.members.len();
        }
        Err(ClientError::Unreachable(reasons))
    }

    async fn exchange(&mut self, address: &str, path: &str, body: Vec<u8>) -> Result<bytes::Bytes, Broken> {
        // taken out, so that one that is given up half-way is not used again
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(address, self.tls.clone()).await?,
        };
        let answer = connection.post(path, body).await?;
        self.connection = Some(connection);
        Ok(answer)
    }
}
