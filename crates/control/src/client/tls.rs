//! TLS of the client: whom it takes for the head.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, Error};
use sha2::{Digest, Sha256};
use tls::Shown;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long a head may take for its part of the handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(15);

/// Which certificates are the head's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// This one, whatever it is for and whoever has signed it.
    Fingerprint(Fingerprint),
    /// One for the name that is connected to, signed by an authority in this file; or in this file itself.
    Authorities(PathBuf),
    /// The same, by an authority that this machine trusts.
    System,
}

/// SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint([u8; 32]);

impl FromStr for Fingerprint {
    type Err = String;

    /// 64 hexadecimal digits; colons between them do not count.
    fn from_str(text: &str) -> Result<Fingerprint, String> {
        base::hex::parse(&text.replace(':', ""))
            .map(Fingerprint)
            .ok_or_else(|| "it has 64 hexadecimal digits: `tangelo web show` on the head tells it".to_owned())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base::hex::of(&self.0))
    }
}

/// `authority`: host and port.
pub(super) async fn secured(
    authority: &str,
    trust: &Trust,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host).trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("{host} is no name or address"))?;
    let connector = TlsConnector::from(Arc::new(client_config(trust).await?));
    let handshake = tokio::time::timeout(HANDSHAKE_TIME_MAX, connector.connect(name, stream));
    let stream = handshake.await.map_err(|_| "the handshake took too long".to_owned())?;
    stream.map_err(|error| error.to_string())
}

async fn client_config(trust: &Trust) -> Result<ClientConfig, String> {
    let roots = match trust {
        Trust::Fingerprint(fingerprint) => {
            let fingerprint = *fingerprint;
            let judged = tls::client_that_judges(move |shown| is_this_one(fingerprint, shown));
            return Ok(judged.with_no_client_auth());
        }
        Trust::Authorities(file) => {
            let failed = |why: String| format!("{}: {why}", file.display());
            let pem = tokio::fs::read(file).await.map_err(|error| failed(error.to_string()))?;
            let roots = tls::authorities(&pem).map_err(failed)?;
            if roots.is_empty() {
                return Err(failed("there is no certificate in it".to_owned()));
            }
            roots
        }
        Trust::System => {
            let roots = tls::authorities_of_this_machine().await;
            if roots.is_empty() {
                return Err(
                    "this machine has no certificates of authorities: give --fingerprint or --ca".to_owned()
                );
            }
            roots
        }
    };
    Ok(tls::client().with_root_certificates(roots).with_no_client_auth())
}

/// Accepts one certificate, whatever it is for and whoever has signed it.
fn is_this_one(fingerprint: Fingerprint, shown: &Shown<'_>) -> Result<(), Error> {
    match Sha256::digest(shown.certificate.as_ref())[..] == fingerprint.0[..] {
        true => Ok(()),
        false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints() {
        let plain = "ab".repeat(32);
        let fingerprint: Fingerprint = plain.parse().unwrap();
        assert_eq!(fingerprint.to_string(), plain);
        assert_eq!(["AB"; 32].join(":").parse(), Ok(fingerprint));
        for wrong in ["", "ab", &plain[1..], &format!("{plain}ab"), &"xy".repeat(32)] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }
}
