//! TLS as this program speaks it: `rustls` with `ring`. Whom to trust is up to the caller: authorities of a file, those of this machine,
//! or a judgement of its own.
//!
//! What always holds: whoever is trusted has proved, by a signature, that it has the key of the certificate that it shows.

use std::fmt;
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
    WantsVerifier,
};

pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The beginning of a client's configuration.
pub fn client() -> ConfigBuilder<ClientConfig, WantsVerifier> {
    let builder = ClientConfig::builder_with_provider(provider());
    builder.with_safe_default_protocol_versions().expect("ring has what they need")
}

/// The beginning of a server's configuration.
pub fn server() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    let builder = ServerConfig::builder_with_provider(provider());
    builder.with_safe_default_protocol_versions().expect("ring has what they need")
}

/// The certificates of a PEM file; there may be none.
pub fn authorities(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(roots)
}

/// The authorities that this machine trusts; there may be none.
pub async fn authorities_of_this_machine() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // they are many files
    let system = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
    roots.add_parsable_certificates(system.map(|system| system.certs).unwrap_or_default());
    roots
}

/// What a server shows.
pub struct Shown<'a> {
    pub certificate: &'a CertificateDer<'a>,
    pub intermediates: &'a [CertificateDer<'a>],
    /// What the client wanted to reach.
    pub name: &'a ServerName<'a>,
    pub ocsp_response: &'a [u8],
    pub now: UnixTime,
}

/// A client that trusts the servers which `judge` accepts.
pub fn client_that_judges(
    judge: impl Fn(&Shown<'_>) -> Result<(), Error> + Send + Sync + 'static,
) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    client().dangerous().with_custom_certificate_verifier(Arc::new(Judge { judge, provider: provider() }))
}

/// Leaves the signatures of a handshake to the library, and whom to trust to `judge`.
struct Judge<F> {
    judge: F,
    provider: Arc<CryptoProvider>,
}

impl<F> fmt::Debug for Judge<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judge")
    }
}

impl<F: Fn(&Shown<'_>) -> Result<(), Error> + Send + Sync> ServerCertVerifier for Judge<F> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = Shown { certificate, intermediates, name, ocsp_response, now };
        (self.judge)(&shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
