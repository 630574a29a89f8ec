//! The commands about the two heads.

use control::client::Server;
use control::rest::Pair;

use super::{Failure, Shown, show};
use crate::cli;

pub(super) async fn pair(pair: &cli::Pair, server: &Server) -> Result<Shown, Failure> {
    match pair {
        cli::Pair::Status => Ok(show(server.get::<Pair>("/v1/pair").await?)),
        cli::Pair::Create(_) | cli::Pair::Token { .. } | cli::Pair::Join { .. } => {
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
