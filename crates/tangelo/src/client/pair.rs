//! The commands about the two heads.

use api::{FenceTest, PairForgetting, PairMaintenance};
use control::client::Server;
use control::rest::{Pair, Status};

use super::ask::Ask;
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
        cli::Pair::Create { .. }
        | cli::Pair::Token { .. }
        | cli::Pair::Join { .. }
        | cli::Pair::Replace(_)
        | cli::Pair::Disband { .. } => {
            unreachable!("these ask nobody")
        }
        cli::Pair::Maintenance { state } => {
            let on = *state == cli::Switch::On;
            let pair: Pair = server.post("/v1/pair/maintenance", &PairMaintenance { on }).await?;
            let text = match on {
                true => {
                    "There is maintenance: the partner does not take over, and a stop of the owner hands nothing over. End it with `tangelo pair maintenance off`, on either head.\n"
                }
                false => "Maintenance has ended.\n",
            };
            Ok(Shown { text: text.to_owned(), exit_code: 0, ..show(pair) })
        }
        cli::Pair::Fence(cli::Fence::Test { really, change }) => {
            let ask = Ask::post("/v1/pair/fence", &FenceTest { really: *really });
            match really {
                true => ask.destroy(change, server).await,
                false => ask.change(&cli::Change { dry_run: change.dry_run }, server).await,
            }
        }
        cli::Pair::Forget { force, change } => {
            Ask::post("/v1/pair/forget", &PairForgetting { force: *force }).destroy(change, server).await
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
