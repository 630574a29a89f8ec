//! TLS of the door. The server shows its own certificate and that of the array's authority; the joiner knows nothing but the
//! authority's SHA-256, from the token.
//!
//! What always holds: a joiner sends nothing before the chain is known to end in that authority, and the certificate is for the
//! address that was connected to. So another member of the array, whose certificate names other addresses, is not taken for the head.

use register::KeyError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CertificateError, ClientConfig, Error, RootCertStore, ServerConfig};
use sha2::{Digest, Sha256};
use tls::Shown;

use crate::pair_file::PairFile;

/// SHA-256 of a certificate's DER form.
pub(crate) fn fingerprint(pem: &str) -> Result<[u8; 32], KeyError> {
    Ok(Sha256::digest(CertificateDer::from_pem_slice(pem.as_bytes())?).into())
}

/// TLS of the door.
pub(crate) fn server_config(pair: &PairFile) -> Result<ServerConfig, KeyError> {
    let chain = [&pair.own.certificate, &pair.authority.certificate]
        .map(|pem| CertificateDer::from_pem_slice(pem.as_bytes()));
    let key = PrivateKeyDer::from_pem_slice(pair.own.key.as_bytes())?;
    Ok(tls::server()
        .with_no_client_auth()
        .with_single_cert(chain.into_iter().collect::<Result<_, _>>()?, key)?)
}

/// TLS of the joiner.
pub(crate) fn client_config(authority: [u8; 32]) -> ClientConfig {
    tls::client_that_judges(move |shown| ends_in(authority, shown)).with_no_client_auth()
}

/// Accepts a chain that ends in the authority whose SHA-256 is known.
fn ends_in(authority: [u8; 32], shown: &Shown<'_>) -> Result<(), Error> {
    let is_authority = |shown: &&CertificateDer<'_>| Sha256::digest(shown.as_ref())[..] == authority[..];
    let authority = shown
        .intermediates
        .iter()
        .find(is_authority)
        .ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone().into_owned())?;
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), tls::provider())
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    let Shown { certificate, name, ocsp_response, now, .. } = shown;
    verifier.verify_server_cert(certificate, &[], name, ocsp_response, *now).map(drop)
}

#[cfg(test)]
mod tests {
    use register::Authority;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    #[test]
    fn a_chain_must_end_in_the_authority_of_the_token_and_be_for_the_address() {
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let [ours, stranger] = [(); 2].map(|()| Authority::new("5").unwrap());
        let head = ours.issue("head", &["192.0.2.1".to_owned()]).unwrap();
        let verify = |authority: &Authority, shown: &Authority, address: &str| {
            let authority = fingerprint(&authority.certificate).unwrap();
            let shown = Shown {
                certificate: &der(&head.certificate),
                intermediates: &[der(&shown.certificate)],
                name: &ServerName::try_from(address.to_owned()).unwrap(),
                ocsp_response: &[],
                now: UnixTime::now(),
            };
            ends_in(authority, &shown)
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
