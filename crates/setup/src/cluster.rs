//! The members of etcd, through its HTTP gateway: who they are, adding and removing one, who leads
//! (etcdserverpb `Cluster`, `Maintenance`; 64-bit numbers are strings).
//!
//! What always holds: a new member is a learner first, so it counts for no majority before it has caught up; a question that has no
//! answer may have been carried out. `member/update` is not used: on a learner it makes etcd 3.4 forget that it is one.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use register::connection::{Broken, Connection};
use rustls::ClientConfig;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::SetupError;
use crate::pair_file::PairFile;

const LIST: &str = "/v3/cluster/member/list";
const ADD: &str = "/v3/cluster/member/add";
const PROMOTE: &str = "/v3/cluster/member/promote";
const REMOVE: &str = "/v3/cluster/member/remove";
const STATUS: &str = "/v3/maintenance/status";
const TRANSFER: &str = "/v3/maintenance/transfer-leadership";

/// How long one member may take for an answer. Changes of the membership wait for a majority.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(3);

/// How long a member may take to say that it is there.
const STATUS_TIME_MAX: Duration = Duration::from_secs(1);

/// A member, as etcd lists it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(crate) struct Listed {
    #[serde(rename = "ID")]
    pub id: String,
    /// Empty until it has started for the first time.
    #[serde(default)]
    pub name: String,
    #[serde(default, rename = "peerURLs")]
    pub peer_urls: Vec<String>,
    #[serde(default, rename = "clientURLs")]
    pub client_urls: Vec<String>,
    #[serde(default, rename = "isLearner")]
    pub is_learner: bool,
}

impl Listed {
    pub fn has_started(&self) -> bool {
        !self.name.is_empty()
    }

    /// `host:port` of its clients' side.
    pub fn client(&self) -> Option<String> {
        self.client_urls.first().map(|url| url.trim_start_matches("https://").to_owned())
    }
}

#[derive(Deserialize)]
struct ListAnswer {
    #[serde(default)]
    members: Vec<Listed>,
}

#[derive(Deserialize)]
struct AddAnswer {
    member: Listed,
    members: Vec<Listed>,
}

#[derive(Deserialize)]
struct StatusAnswer {
    #[serde(default)]
    leader: String,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Deserialize)]
struct Ignored {}

#[derive(Serialize)]
struct AddRequest<'a> {
    #[serde(rename = "peerURLs")]
    peer_urls: &'a [String],
    #[serde(rename = "isLearner")]
    is_learner: bool,
}

#[derive(Serialize)]
struct ById<'a> {
    #[serde(rename = "ID")]
    id: &'a str,
}

#[derive(Serialize)]
struct TransferRequest<'a> {
    #[serde(rename = "targetID")]
    target_id: &'a str,
}

/// A client of the members that `pair.json` names.
pub(crate) struct Cluster {
    addresses: Vec<String>,
    tls: Arc<ClientConfig>,
}

impl Cluster {
    pub fn new(pair: &PairFile) -> Result<Cluster, SetupError> {
        let tls = Arc::new(pair.identity().client_config()?);
        Ok(Cluster { addresses: pair.members.clone(), tls })
    }

    /// All members, as the first one that answers knows them.
    pub async fn list(&self) -> Result<Vec<Listed>, SetupError> {
        Ok(self.ask_any::<_, ListAnswer>(LIST, &Nothing {}).await?.members)
    }

    /// Adds a learner. Gives it, and all members.
    pub async fn add_learner(&self, peer_urls: &[String]) -> Result<(Listed, Vec<Listed>), SetupError> {
        let request = AddRequest { peer_urls, is_learner: true };
        let answer: AddAnswer = self.ask_any(ADD, &request).await?;
        Ok((answer.member, answer.members))
    }

    /// Gives a learner a vote. etcd refuses until it has caught up.
    pub async fn promote(&self, id: &str) -> Result<(), SetupError> {
        self.ask_any(PROMOTE, &ById { id }).await.map(|Ignored {}| ())
    }

    pub async fn remove(&self, id: &str) -> Result<(), SetupError> {
        self.ask_any(REMOVE, &ById { id }).await.map(|Ignored {}| ())
    }

    /// The id of the leader; empty if there is none.
    pub async fn leader(&self) -> Result<String, SetupError> {
        Ok(self.ask_any::<_, StatusAnswer>(STATUS, &Nothing {}).await?.leader)
    }

    /// Whether a member answers at this address.
    pub async fn answers(&self, address: &str) -> bool {
        let status = self.ask::<_, StatusAnswer>(address, STATUS, &Nothing {});
        matches!(tokio::time::timeout(STATUS_TIME_MAX, status).await, Ok(Ok(_)))
    }

    /// Only the leader, at this address, can do it.
    pub async fn transfer(&self, leader_address: &str, to: &str) -> Result<(), SetupError> {
        let request = TransferRequest { target_id: to };
        let answer = self.ask::<_, Ignored>(leader_address, TRANSFER, &request).await;
        answer.map(|Ignored {}| ()).map_err(|why| unavailable(&[(leader_address.to_owned(), why)]))
    }

    /// Asks one member after the other until one answers with yes.
    async fn ask_any<Q: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        question: &Q,
    ) -> Result<A, SetupError> {
        let mut reasons = Vec::new();
        for address in &self.addresses {
            match self.ask(address, path, question).await {
                Ok(answer) => return Ok(answer),
                Err(why) => reasons.push((address.clone(), why)),
            }
        }
        Err(unavailable(&reasons))
    }

    async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        address: &str,
        path: &str,
        question: &Q,
    ) -> Result<A, Broken> {
        let body = serde_json::to_vec(question).expect("requests have a JSON form");
        let exchange = async {
            let mut connection = Connection::open(address, self.tls.clone()).await?;
            connection.post(path, body).await
        };
        let answer = tokio::time::timeout(ANSWER_TIME_MAX, exchange).await;
        let bytes = answer.unwrap_or_else(|_| Err(Broken::Connection("no answer in time".to_owned())))?;
        serde_json::from_slice(&bytes).map_err(|error| Broken::NotEtcd(error.to_string()))
    }
}

fn unavailable(reasons: &[(String, Broken)]) -> SetupError {
    let mut why = String::new();
    for (address, reason) in reasons {
        let separator = if why.is_empty() { "" } else { "; " };
        let (kind, text) = match reason {
            Broken::Connection(text) => ("", text),
            Broken::Tls(text) => ("certificates: ", text),
            Broken::Refused(text) => ("etcd: ", text),
            Broken::NotEtcd(text) => ("not etcd: ", text),
        };
        write!(why, "{separator}{address}: {kind}{text}").expect("a string takes text");
    }
    SetupError::Etcd { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_etcd_lists_is_understood() {
        let text = r#"{"header":{"cluster_id":"3554444320200192827","raft_term":"2"},"members":[
            {"ID":"7194818228881262863","peerURLs":["https://192.0.2.2:3264"],"isLearner":true},
            {"ID":"17658032258070568098","name":"witness","peerURLs":["https://192.0.2.1:3264"],
             "clientURLs":["https://192.0.2.1:3263"]}]}"#;
        let members = serde_json::from_str::<ListAnswer>(text).unwrap().members;
        assert!(!members[0].has_started() && members[0].is_learner && members[0].client().is_none());
        assert!(members[1].has_started() && !members[1].is_learner);
        assert_eq!(members[1].client().as_deref(), Some("192.0.2.1:3263"));
        let request = AddRequest { peer_urls: &members[0].peer_urls, is_learner: true };
        assert_eq!(
            serde_json::to_string(&request).unwrap(),
            r#"{"peerURLs":["https://192.0.2.2:3264"],"isLearner":true}"#
        );
    }
}
