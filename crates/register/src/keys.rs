//! The array's own certificate authority. It signs a key for each head and each member of etcd. Nobody else is trusted, and
//! nobody who has none of these keys is listened to.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

/// Why keys cannot be made or used.
#[derive(Debug, Error)]
pub enum KeyError {
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    #[error("a certificate or key cannot be read: {0}")]
    Read(#[from] rustls::pki_types::pem::Error),
    #[error("a certificate and its key cannot be used: {0}")]
    Use(#[from] rustls::Error),
}

/// Certificate and key as PEM.
#[derive(Clone)]
pub struct Authority {
    /// The name in its certificate is made of it.
    pub array: String,
    pub certificate: String,
    pub key: String,
}

/// What one head or one member of etcd has: its certificate and key, and the certificate of the authority.
#[derive(Clone)]
pub struct Identity {
    pub authority: String,
    pub certificate: String,
    pub key: String,
}

fn authority_params(array: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, format!("Tangelo array {array}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

impl Authority {
    /// A new one, for an array. It does not expire: replacing it is replacing the array's keys.
    pub fn new(array: &str) -> Result<Authority, KeyError> {
        let key = KeyPair::generate()?;
        let certificate = authority_params(array).self_signed(&key)?;
        Ok(Authority { array: array.to_owned(), certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// A key for `name` that serves at these addresses or host names, and is a client of the others.
    pub fn issue(&self, name: &str, addresses: &[String]) -> Result<Identity, KeyError> {
        let issuer = Issuer::new(authority_params(&self.array), KeyPair::from_pem(&self.key)?);
        let mut params = CertificateParams::new(addresses.to_vec())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        let authority = self.certificate.clone();
        Ok(Identity { authority, certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

impl Identity {
    /// TLS for a client that trusts the array's authority alone, and shows its own certificate.
    pub fn client_config(&self) -> Result<ClientConfig, KeyError> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.as_bytes())?)?;
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())?;
        Ok(tls::client().with_root_certificates(roots).with_client_auth_cert(vec![certificate], key)?)
    }
}
