//! What of the doors of this head changes while it runs: its certificate, and a file of users that could not be read.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::certificate::Shown;
use super::connection::stopped;
use crate::access::{Access, now_ms};
use crate::config::Config;

/// How often it is looked whether the certificate ends soon.
const RENEWAL_PERIOD: Duration = Duration::from_secs(12 * 3600);

/// See the module's words.
pub struct Doors {
    access: Arc<Access>,
    shown: Option<Arc<Shown>>,
    /// The newest that was read.
    config: Mutex<Config>,
}

impl Doors {
    pub(super) fn new(config: &Config, access: Arc<Access>, shown: Option<Arc<Shown>>) -> Doors {
        Doors { access, shown, config: Mutex::new(config.clone()) }
    }

    pub(super) fn access(&self) -> Arc<Access> {
        self.access.clone()
    }

    pub(super) fn shown(&self) -> Option<Arc<Shown>> {
        self.shown.clone()
    }

    /// SHA-256 of the certificate that is shown.
    pub fn fingerprint(&self) -> Option<String> {
        self.shown.as_ref().map(|shown| shown.status().fingerprint)
    }

    /// Takes another certificate, if the file or what it names says so, and reads the users again if that has failed.
    pub fn reload(&self, config: &Config) {
        *self.config.lock().expect("nobody panics with it") = config.clone();
        self.access.reload();
        self.look_at_certificate();
    }

    fn look_at_certificate(&self) {
        let Some(shown) = &self.shown else { return };
        let config = self.config.lock().expect("nobody panics with it").clone();
        if let Err(error) = shown.reload(&config, now_ms()) {
            tracing::error!("the certificate of [web] stays as it was: {error}");
        }
    }

    /// Renews the certificate in time, until the daemon stops.
    pub(super) async fn keep_certificate(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = stopped(&mut stop) => return,
                () = tokio::time::sleep(RENEWAL_PERIOD) => self.look_at_certificate(),
            }
        }
    }
}
