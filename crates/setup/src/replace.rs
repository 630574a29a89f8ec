//! `pair replace`: the other head is gone for good, and another server is to take its place.
//!
//! What always holds: the register does not name the earlier head any more before anything else is changed. So if that head comes back, it
//! owns nothing and takes over nothing. The new one has another id and another key of the link.

use std::path::Path;

use base::HeadId;
use pair::{LinkKey, Question, Register};
use register::ClientError;

use crate::cluster::Cluster;
use crate::error::SetupError;
use crate::issued::new_token;
use crate::membership::remove_other_heads;
use crate::pair_file::PairFile;
use crate::token::{Purpose, Token};

/// Makes room for another head, and gives the token for it. To be called on the owner; its daemon is to be started again afterwards.
pub async fn replace(state_dir: &Path) -> Result<Token, SetupError> {
    let pair =
        PairFile::load(state_dir)?.ok_or_else(|| SetupError::NoPair { path: PairFile::path(state_dir) })?;
    let mut client = pair.register()?;
    let mut known = client.ask(Question::Read).await.map_err(SetupError::Register)?;
    let partner = match known.other(pair.head) {
        // an earlier attempt broke off before the file was written, or before the new head has joined
        Some(other) if other != pair.partner || pair.partner_listen.is_empty() => other,
        _ => HeadId(u128::from_be_bytes(crate::random())),
    };
    while known.partner != partner {
        known = swap(&mut client, known, pair.head, partner).await?;
    }
    PairFile::update(state_dir, |pair| {
        pair.partner = partner;
        pair.partner_listen.clear();
        pair.partner_portals.clear();
        pair.link_key = LinkKey(crate::random());
        true
    })?;
    remove_other_heads(&Cluster::new(&pair)?, &[pair.head, partner]).await?;
    new_token(state_dir, Purpose::Head)
}

async fn swap(
    client: &mut register::Client,
    known: Register,
    head: HeadId,
    partner: HeadId,
) -> Result<Register, SetupError> {
    if known.owner != head {
        return Err(SetupError::NotTheOwner);
    }
    if known.in_sync {
        return Err(SetupError::PartnerInSync);
    }
    let question = Question::CompareAndSet { expected: known.revision, new: known.replaced(partner) };
    client.ask(question).await.map_err(|error: ClientError| SetupError::Register(error))
}
