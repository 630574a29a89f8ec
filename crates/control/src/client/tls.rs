//! TLS of the client: whom it takes for the head.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};
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
        let digits: Vec<u8> = text.bytes().filter(|&byte| byte != b':').collect();
        let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        let values: Option<Vec<u8>> = digits.iter().map(|&digit| value(digit)).collect();
        match values {
            Some(values) if values.len() == 64 => {
                Ok(Fingerprint(std::array::from_fn(|at| values[2 * at] << 4 | values[2 * at + 1])))
            }
            _ => Err("it has 64 hexadecimal digits: `tangelo web show` on the head tells it".to_owned()),
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::Fingerprint(fingerprint) => {
            let verifier = Arc::new(IsThisOne { fingerprint: *fingerprint, provider });
            return Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth());
        }
        Trust::Authorities(file) => {
            let failed = |why: String| format!("{}: {why}", file.display());
            let pem = tokio::fs::read(file).await.map_err(|error| failed(error.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| failed(error.to_string()))?;
                roots.add(certificate).map_err(|error| failed(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(failed("there is no certificate in it".to_owned()));
            }
        }
        Trust::System => {
            // they are many files
            let system = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
            roots.add_parsable_certificates(system.map(|system| system.certs).unwrap_or_default());
            if roots.is_empty() {
                return Err(
                    "this machine has no certificates of authorities: give --fingerprint or --ca".to_owned()
                );
            }
        }
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Accepts one certificate.
#[derive(Debug)]
struct IsThisOne {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for IsThisOne {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match Sha256::digest(end_entity.as_ref())[..] == self.fingerprint.0[..] {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
        }
    }

    // the signature proves that the head has the certificate's key

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
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
