//! The commands about alerts.

use api::AlertTest;
use control::client::Server;
use control::rest::{AlertList, AlertTested};

use super::{Failure, Shown, show};
use crate::cli;

pub(super) async fn alert(alert: &cli::Alert, server: &Server) -> Result<Shown, Failure> {
    match alert {
        cli::Alert::List => Ok(show(server.get::<AlertList>("/v1/alerts").await?)),
        cli::Alert::Test { channel } => {
            let test = AlertTest { channel: channel.map(|name| name.word().to_owned()) };
            let tested: AlertTested = server.post("/v1/alerts/test", &test).await?;
            Ok(show(tested))
        }
    }
}
