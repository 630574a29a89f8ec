//! Which member of etcd is which server, how a new one becomes a member, and who leads.
//!
//! What always holds: a pair has at most three members, `head-ID` twice and `witness`. A join that is repeated replaces the member
//! that the broken one has left. A member that answers is never replaced.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::HeadId;
use tokio::time::{Instant, sleep};

use crate::cluster::{Cluster, Listed};
use crate::error::SetupError;
use crate::pair_file::{MEMBERS_MAX, PairFile};
use crate::ports::Ports;
use crate::refusal::Refusal;
use crate::token::Purpose;

pub(crate) const WITNESS: &str = "witness";

/// How long a change of the members is tried again. etcd refuses it for five seconds after its leader has changed.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(20);
const CHANGE_PAUSE: Duration = Duration::from_millis(500);

pub(crate) fn head_name(head: HeadId) -> String {
    format!("head-{head}")
}

/// The name of the member that joins.
pub(crate) fn joiner_name(pair: &PairFile, purpose: Purpose) -> String {
    match purpose {
        Purpose::Head => head_name(pair.partner),
        Purpose::Witness => WITNESS.to_owned(),
    }
}

pub(crate) fn peer_urls(ports: &[Ports]) -> Vec<String> {
    ports.iter().map(|ports| format!("https://{}", ports.peer())).collect()
}

/// The members as etcd's `--initial-cluster` wants them.
pub(crate) fn initial_cluster<'a>(members: impl IntoIterator<Item = (&'a str, &'a [String])>) -> String {
    let urls =
        members.into_iter().flat_map(|(name, urls)| urls.iter().map(move |url| format!("{name}={url}")));
    urls.collect::<Vec<_>>().join(",")
}

/// Whether a member is the one of this purpose. One that has never started has no name: it is told by its addresses.
fn is_for(member: &Listed, pair: &PairFile, purpose: Purpose) -> bool {
    if member.has_started() {
        return member.name == joiner_name(pair, purpose);
    }
    let of_partner = pair.partner_listen.iter().filter_map(|link| Ports::of_link(*link).ok());
    let is_partner =
        of_partner.map(|ports| peer_urls(&[ports])).any(|urls| member.peer_urls.contains(&urls[0]));
    match purpose {
        Purpose::Head => is_partner,
        Purpose::Witness => !is_partner,
    }
}

/// Looks whether somebody may join, before anything is changed.
pub(crate) async fn check_place(
    cluster: &Cluster,
    pair: &PairFile,
    purpose: Purpose,
    ports: &[Ports],
) -> Result<(), Refusal> {
    let mut members = cluster.list().await.map_err(|error| Refusal::Etcd { why: error.to_string() })?;
    // an address that cannot be had is said first, whatever order etcd has
    members.sort_by_key(|member| is_for(member, pair, purpose));
    for member in &members {
        if !is_for(member, pair, purpose) {
            if let Some(ports) = ports.iter().find(|ports| has_address(member, ports)) {
                return Err(Refusal::AddressTaken { address: ports.address().to_string() });
            }
            if member.is_learner && !is_own(member, pair) {
                let other = if purpose == Purpose::Head { Purpose::Witness } else { Purpose::Head };
                return Err(Refusal::JoinPending { member: joiner_name(pair, other) });
            }
            continue;
        }
        // it may have been in sync: another head of the same id could take over with old data
        if purpose == Purpose::Head && member.has_started() && !member.is_learner {
            return Err(Refusal::HasHead { member: member.name.clone() });
        }
        let Some(address) = member.client() else { continue };
        if cluster.answers(&address).await {
            return Err(Refusal::MemberLives { member: member.name.clone(), address });
        }
    }
    Ok(())
}

/// Whether a member has this address, with whatever port.
fn has_address(member: &Listed, ports: &Ports) -> bool {
    let addresses = member.peer_urls.iter().filter_map(|url| url.trim_start_matches("https://").parse().ok());
    addresses.map(|address: SocketAddr| address.ip()).any(|address| address == ports.address())
}

fn is_own(member: &Listed, pair: &PairFile) -> bool {
    member.name == head_name(pair.head)
}

/// Adds the member of a server that is about to start it, in place of an earlier one. Gives `--initial-cluster`.
pub(crate) async fn enroll(
    cluster: &Cluster,
    pair: &PairFile,
    purpose: Purpose,
    ports: &[Ports],
) -> Result<String, SetupError> {
    let end = Instant::now() + CHANGE_TIME_MAX;
    let urls = peer_urls(ports);
    remove_earlier(cluster, pair, purpose, end).await?;
    let members = loop {
        let why = match cluster.add_learner(&urls).await {
            Ok((_, members)) => break members,
            Err(why) => why,
        };
        // its answer may have been lost
        if let Ok(members) = cluster.list().await
            && members.iter().any(|member| member.peer_urls == urls && member.is_learner)
        {
            break members;
        }
        if Instant::now() > end {
            return Err(why);
        }
        sleep(CHANGE_PAUSE).await;
    };
    let name = joiner_name(pair, purpose);
    let named = members.iter().map(|member| {
        let name = if member.has_started() { &member.name } else { &name };
        (name.as_str(), member.peer_urls.as_slice())
    });
    Ok(initial_cluster(named))
}

/// Removes the members of heads that are none of these.
pub(crate) async fn remove_other_heads(cluster: &Cluster, kept: &[HeadId]) -> Result<(), SetupError> {
    let is_kept = |member: &Listed| kept.iter().any(|head| member.name == head_name(*head));
    let end = Instant::now() + CHANGE_TIME_MAX;
    loop {
        let listed = cluster.list().await?;
        let other = |member: &&Listed| member.name.starts_with("head-") && !is_kept(member);
        let Some(member) = listed.iter().find(other) else { return Ok(()) };
        match cluster.remove(&member.id).await {
            Ok(()) => {}
            Err(why) if Instant::now() > end => return Err(why),
            Err(_) => sleep(CHANGE_PAUSE).await,
        }
    }
}

/// Removes the members that a new one takes the place of.
async fn remove_earlier(
    cluster: &Cluster,
    pair: &PairFile,
    purpose: Purpose,
    end: Instant,
) -> Result<(), SetupError> {
    loop {
        let members = cluster.list().await?;
        let is_earlier = |member: &&Listed| is_for(member, pair, purpose) && !is_own(member, pair);
        let Some(earlier) = members.iter().find(is_earlier) else { return Ok(()) };
        if let Err(why) = cluster.remove(&earlier.id).await {
            if Instant::now() > end {
                return Err(why);
            }
            sleep(CHANGE_PAUSE).await;
        }
    }
}

/// Gives learners that have caught up a vote. Says whether there is no learner any more.
pub(crate) async fn promote(cluster: &Cluster) -> Result<bool, SetupError> {
    let mut all = true;
    for learner in cluster.list().await?.iter().filter(|member| member.is_learner) {
        all &= learner.has_started() && cluster.promote(&learner.id).await.is_ok();
    }
    Ok(all)
}

/// `host:port` of the clients' side of each member that votes, as etcd lists them; this head's own one is first. A head asks at its
/// start and now and then, because the other head may have let somebody join.
pub async fn members(pair: &PairFile) -> Result<Vec<String>, SetupError> {
    let listed = Cluster::new(pair)?.list().await?;
    let mut voters: Vec<&Listed> =
        listed.iter().filter(|member| member.has_started() && !member.is_learner).collect();
    voters.sort_by_key(|member| (!is_own(member, pair), member.name.clone()));
    let addresses: Vec<String> =
        voters.iter().filter_map(|member| member.client()).take(MEMBERS_MAX).collect();
    // a list without anybody is that of a member which does not know the others yet
    Ok(if addresses.is_empty() { pair.members.clone() } else { addresses })
}

/// Whether each member of etcd that `pair.json` names answers now.
pub async fn answering(pair: &PairFile) -> Result<Vec<(String, bool)>, SetupError> {
    let cluster = Arc::new(Cluster::new(pair)?);
    let ask = |address: &String| {
        let (cluster, address) = (cluster.clone(), address.clone());
        tokio::spawn(async move { cluster.answers(&address).await })
    };
    let asked: Vec<_> = pair.members.iter().map(|address| (address.clone(), ask(address))).collect();
    let mut found = Vec::new();
    for (address, answers) in asked {
        found.push((address, answers.await.unwrap_or(false)));
    }
    Ok(found)
}

/// How [`lead_by_witness`] has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leader {
    /// The witness leads; nothing was to be done.
    Witness,
    /// The witness has been made the leader.
    Moved,
    /// No witness has joined yet.
    NoWitness,
    /// The witness does not answer, so it stays as it is: an attempt would hold up changes of the register.
    WitnessSilent,
    /// etcd has no leader now; it is electing one.
    None,
}

/// Makes the witness the leader of etcd, if it is not. Then the death of a head needs no election.
pub async fn lead_by_witness(pair: &PairFile) -> Result<Leader, SetupError> {
    let cluster = Cluster::new(pair)?;
    let listed = cluster.list().await?;
    let Some(witness) = listed.iter().find(|member| member.name == WITNESS && !member.is_learner) else {
        return Ok(Leader::NoWitness);
    };
    let leader = cluster.leader().await?;
    if leader == witness.id {
        return Ok(Leader::Witness);
    }
    let Some(address) = listed.iter().find(|member| member.id == leader).and_then(Listed::client) else {
        return Ok(Leader::None);
    };
    match witness.client() {
        Some(witness) if cluster.answers(&witness).await => {}
        _ => return Ok(Leader::WitnessSilent),
    }
    cluster.transfer(&address, &witness.id).await?;
    Ok(Leader::Moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair_file::tests::example;

    #[test]
    fn a_member_is_told_by_its_name_or_before_it_has_one_by_its_addresses() {
        let pair = PairFile { partner_listen: vec!["192.0.2.2:3261".parse().unwrap()], ..example() };
        let member = |name: &str, peer: &str| Listed {
            id: "1".to_owned(),
            name: name.to_owned(),
            peer_urls: vec![format!("https://{peer}")],
            client_urls: Vec::new(),
            is_learner: true,
        };
        let which =
            |member: &Listed| [Purpose::Head, Purpose::Witness].map(|purpose| is_for(member, &pair, purpose));
        assert_eq!(which(&member(&head_name(pair.partner), "192.0.2.9:1")), [true, false]);
        assert_eq!(which(&member(&head_name(pair.head), "192.0.2.2:3264")), [false, false]);
        assert_eq!(which(&member("witness", "192.0.2.2:3264")), [false, true]);
        assert_eq!(which(&member("", "192.0.2.2:3264")), [true, false]);
        assert_eq!(which(&member("", "192.0.2.3:3264")), [false, true]);
    }

    #[test]
    fn a_member_with_two_networks_has_two_addresses() {
        let urls = ["https://192.0.2.1:3264".to_owned(), "https://198.51.100.1:3264".to_owned()];
        assert_eq!(
            initial_cluster([("witness", &urls[..])]),
            "witness=https://192.0.2.1:3264,witness=https://198.51.100.1:3264"
        );
        assert_eq!(peer_urls(&["192.0.2.1".parse().unwrap()]), urls[..1]);
    }
}
