//! The commands about the two heads.

use control::client::Server;
use control::rest::{Pair, Status};

use super::{Failure, STATUS, Shown, show};
use crate::cli;

/// The status screen. A head that does not own the array has none: it tells how the pair is.
pub(super) async fn status(server: &Server) -> Result<Shown, Failure> {
    match server.get::<Status>(STATUS).await {
        Ok(status) => Ok(show(status)),
        Err(refused) => match server.get::<Pair>("/v1/pair").await {
            Ok(pair) => Ok(show(pair)),
            Err(_) => Err(refused.into()),
        },
    }
}

pub(super) async fn pair(pair: &cli::Pair, server: &Server) -> Result<Shown, Failure> {
    match pair {
        cli::Pair::Status => Ok(show(server.get::<Pair>("/v1/pair").await?)),
        cli::Pair::Create(_) | cli::Pair::Token { .. } | cli::Pair::Join { .. } | cli::Pair::Replace(_) => {
            unreachable!("these ask nobody")
        }
        cli::Pair::Handover => {
            let begun: Pair = server.post("/v1/pair/handover", &()).await?;
            let addresses = begun.pair.other.addresses.join(", ");
            let text = format!(
                "Handing over to the head at {addresses}; this one stops the array and starts again as the partner. `tangelo pair status` tells when it has.\n"
            );
            Ok(Shown { text, ..show(begun) })
        }
    }
}
