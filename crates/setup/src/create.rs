//! `pair create`: a head that is alone becomes the first of a pair.
//!
//! What always holds: `pair.json` is written last. Before it is there, the head is alone, and the command can be given again.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use base::{ArrayId, HeadId};
use pair::{LinkKey, Register, Term};
use register::{Authority, ClientError};
use tokio::time::{Instant, sleep};

use crate::error::SetupError;
use crate::files;
use crate::forget;
use crate::issued;
use crate::member;
use crate::member_file::MemberFile;
use crate::membership::{head_name, initial_cluster, peer_urls};
use crate::pair_file::{Keys, PAIR_FILE_VERSION, PairFile};
use crate::ports::{ADDRESSES_MAX, Ports, PortsError};
use crate::token::{Purpose, Token};

/// How long a member of etcd may take to start.
const FOUNDING_TIME_MAX: Duration = Duration::from_secs(30);

/// A pair of one head, and what the other servers need to join.
#[derive(Debug)]
pub struct Created {
    pub pair: PairFile,
    pub head: Token,
    pub witness: Token,
}

/// Makes the keys of the pair and this head's files. `known_term`: the latest one that the array has had, 0 if it never had two heads. Nothing runs yet: the caller starts [`crate::Member`], then calls
/// [`found_register`], then starts [`crate::Door`].
pub fn create(
    state_dir: &Path,
    head: HeadId,
    array: ArrayId,
    known_term: u64,
    listen: &[Ports],
    takeover_ms: u32,
) -> Result<Created, SetupError> {
    member::find_programs()?;
    check_listen(listen, true)?;
    create_files(state_dir, head, array, known_term, listen, takeover_ms)
}

fn create_files(
    state_dir: &Path,
    head: HeadId,
    array: ArrayId,
    known_term: u64,
    listen: &[Ports],
    takeover_ms: u32,
) -> Result<Created, SetupError> {
    files::make_directory(state_dir)?;
    let _lock = files::lock(state_dir)?;
    if PairFile::load(state_dir)?.is_some() {
        return Err(SetupError::Paired { path: PairFile::path(state_dir) });
    }
    let _member = member::lock(state_dir)?;
    let authority = Authority::new(&array.to_string())?;
    let name = head_name(head);
    let identity = authority.issue(&name, &host_addresses(listen))?;
    let pair = PairFile {
        version: PAIR_FILE_VERSION,
        array,
        head,
        partner: HeadId(u128::from_be_bytes(crate::random())),
        listen: listen.iter().map(Ports::link).collect(),
        seat: forget::seat_of_founder(state_dir)?,
        partner_listen: Vec::new(),
        partner_portals: Vec::new(),
        link_key: LinkKey(crate::random()),
        authority: Keys { certificate: authority.certificate, key: authority.key },
        own: Keys { certificate: identity.certificate.clone(), key: identity.key.clone() },
        members: vec![listen[0].client().to_string()],
        convert: Vec::new(),
        share: Vec::new(),
        takeover_ms,
        first_term: Term(known_term + 1),
        is_forgotten: false,
    };
    let urls = peer_urls(listen);
    let cluster = initial_cluster([(name.as_str(), urls.as_slice())]);
    let member =
        MemberFile::new(name, array.to_string(), listen, cluster, false).with_takeover_ms(takeover_ms);
    member.save(state_dir, &identity)?;
    let tokens = [Purpose::Head, Purpose::Witness].map(|purpose| issued::issue(state_dir, &pair, purpose));
    let [head, witness] = tokens;
    let (head, witness) = (head?, witness?);
    pair.save(state_dir)?;
    Ok(Created { pair, head, witness })
}

/// The addresses that a certificate is for.
pub(crate) fn host_addresses(listen: &[Ports]) -> Vec<String> {
    listen.iter().map(|ports| ports.address().to_string()).collect()
}

/// The addresses are this server's, and nobody listens there yet.
pub(crate) fn check_listen(listen: &[Ports], is_head: bool) -> Result<(), SetupError> {
    if listen.is_empty() || listen.len() > ADDRESSES_MAX {
        return Err(PortsError::Count { count: listen.len() }.into());
    }
    for ports in listen {
        let heads = [ports.link(), ports.door()].into_iter().filter(|_| is_head);
        for address in [ports.client(), ports.peer()].into_iter().chain(heads) {
            TcpListener::bind(address).map_err(|error| SetupError::Listen { address, error })?;
        }
    }
    Ok(())
}

/// Writes the first value of the register: this head is the owner, in its first term. Waits for the member of etcd to start. A register that
/// is there already stays as it is, so this can be repeated. It is part of creating the pair only: a head that finds no register later
/// must not make one, because the drives have seen later terms.
pub async fn found_register(pair: &PairFile) -> Result<Register, SetupError> {
    let mut client = pair.register()?;
    let first = Register::first(pair.head, pair.partner, pair.first_term);
    let end = Instant::now() + FOUNDING_TIME_MAX;
    let found = loop {
        match client.create(first).await {
            Ok(found) => break found,
            Err(ClientError::Unreachable(_)) if Instant::now() < end => {}
            Err(error) => return Err(SetupError::Register(error)),
        }
        sleep(Duration::from_millis(100)).await;
    };
    match found.other(pair.head) {
        Some(partner) if partner == pair.partner => Ok(found),
        _ => Err(SetupError::OtherRegister { owner: found.owner, partner: found.partner }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_pair_is_made_once_and_its_files_are_secrets() {
        let directory = tempfile::tempdir().unwrap();
        let listen = ["192.0.2.1".parse().unwrap()];
        let make = || create_files(directory.path(), HeadId(6), ArrayId(5), 0, &listen, 900);
        let made = make().unwrap();
        assert_eq!((made.head.purpose, made.witness.purpose), (Purpose::Head, Purpose::Witness));
        assert_eq!(made.head.door.to_string(), "192.0.2.1:3262");
        let loaded = PairFile::load(directory.path()).unwrap().unwrap();
        assert_eq!((loaded.head, loaded.array, loaded.partner), (HeadId(6), ArrayId(5), made.pair.partner));
        for name in ["pair.json", "tokens.json", "register/member.json", "register/key.pem"] {
            let mode = std::fs::metadata(directory.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        assert!(matches!(make(), Err(SetupError::Paired { .. })));
        // as if it had broken off before its last step
        std::fs::remove_file(PairFile::path(directory.path())).unwrap();
        assert_ne!(make().unwrap().pair.partner, made.pair.partner);
    }

    #[test]
    fn an_address_of_another_server_is_refused() {
        let other = ["192.0.2.1".parse().unwrap()];
        assert!(matches!(check_listen(&other, true), Err(SetupError::Listen { .. })));
        assert!(matches!(check_listen(&[], true), Err(SetupError::Ports(PortsError::Count { count: 0 }))));
    }
}
