//! TLS of the door. The server shows its own certificate and that of the array's authority; the joiner knows nothing but the
//! authority's SHA-256, from the token.
//!
//! What always holds: a joiner sends nothing before the chain is known to end in that authority, and the certificate is for the
//! address that was connected to. So another member of the array, whose certificate names other addresses, is not taken for the head.

use std::sync::Arc;

use register::KeyError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use sha2::{Digest, Sha256};

use crate::pair_file::PairFile;

fn provider() -> Arc<CryptoProvider> {
    rustls::crypto::ring::default_provider().into()
}

/// SHA-256 of a certificate's DER form.
pub(crate) fn fingerprint(pem: &str) -> Result<[u8; 32], KeyError> {
    Ok(Sha256::digest(CertificateDer::from_pem_slice(pem.as_bytes())?).into())
}

/// TLS of the door.
pub(crate) fn server_config(pair: &PairFile) -> Result<ServerConfig, KeyError> {
    let chain = [&pair.own.certificate, &pair.authority.certificate]
        .map(|pem| CertificateDer::from_pem_slice(pem.as_bytes()));
    let key = PrivateKeyDer::from_pem_slice(pair.own.key.as_bytes())?;
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    Ok(builder.with_no_client_auth().with_single_cert(chain.into_iter().collect::<Result<_, _>>()?, key)?)
}

/// TLS of the joiner.
pub(crate) fn client_config(authority: [u8; 32]) -> Result<ClientConfig, KeyError> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let verifier = Arc::new(EndsIn { authority, provider: provider() });
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Accepts a chain that ends in the authority whose SHA-256 is known.
#[derive(Debug)]
struct EndsIn {
    authority: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for EndsIn {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_authority =
            |shown: &&CertificateDer<'_>| Sha256::digest(shown.as_ref())[..] == self.authority[..];
        let authority = intermediates
            .iter()
            .find(is_authority)
            .ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), self.provider.clone())
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        verifier.verify_server_cert(end_entity, &[], server_name, ocsp_response, now)
    }

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
    use register::Authority;

    #[test]
    fn a_chain_must_end_in_the_authority_of_the_token_and_be_for_the_address() {
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let [ours, stranger] = [(); 2].map(|()| Authority::new("5").unwrap());
        let head = ours.issue("head", &["192.0.2.1".to_owned()]).unwrap();
        let verify = |authority: &Authority, shown: &Authority, address: &str| {
            let verifier =
                EndsIn { authority: fingerprint(&authority.certificate).unwrap(), provider: provider() };
            let name = ServerName::try_from(address.to_owned()).unwrap();
            let chain = [der(&shown.certificate)];
            verifier
                .verify_server_cert(&der(&head.certificate), &chain, &name, &[], UnixTime::now())
                .map(drop)
        };
        verify(&ours, &ours, "192.0.2.1").unwrap();
        let refused = [
            verify(&ours, &ours, "192.0.2.2"),
            // it shows another authority than that of the token
            verify(&ours, &stranger, "192.0.2.1"),
            // it shows the authority of the token, but has no certificate of it
            verify(&stranger, &stranger, "192.0.2.1"),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::InvalidCertificate(_))), "{refused:?}");
        }
    }
}
