//! The certificate of the TLS listener: one that the head makes itself and keeps in its state directory, or files of the administrator.
//!
//! What always holds: certificate and key of one's own are in one file, so they fit each other after any crash; a new one is made when the old
//! one ends soon, or is not for the names that this head has now; a certificate that cannot be used leaves the one that is in use.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use base::calendar::Date;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::config::{Config, WebCertificate};
use crate::rest::WebCertificateStatus;
use crate::secret_file;

const DAY_MS: u64 = 86_400_000;
/// How long a certificate of the head's own is good.
const LIFE_MS: u64 = 3650 * DAY_MS;
/// It is replaced when no more than this is left.
const RENEWED_MS: u64 = 60 * DAY_MS;
/// Bytes of a file with certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;
const VERSION: u32 = 1;

/// Why there is no certificate to show.
#[derive(Debug, Error)]
#[error("[web] certificate: {path}: {why}", path = .path.display())]
pub struct CertificateError {
    path: PathBuf,
    why: String,
}

/// A certificate that can be shown, and what people are told of it.
struct Usable {
    key: Arc<CertifiedKey>,
    status: WebCertificateStatus,
}

/// `web.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    version: u32,
    names: Vec<String>,
    ends_ms: u64,
    certificate: String,
    key: String,
}

/// What is shown at the moment.
pub(super) struct Shown {
    usable: RwLock<Usable>,
    pub(super) listen: Vec<SocketAddr>,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shown")
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.usable.read().expect("nobody panics with it").key.clone())
    }
}

impl Shown {
    pub(super) fn new(
        config: &Config,
        listen: Vec<SocketAddr>,
        now_ms: u64,
    ) -> Result<Arc<Shown>, CertificateError> {
        let usable = usable(config, &listen, now_ms)?;
        Ok(Arc::new(Shown { usable: RwLock::new(usable), listen }))
    }

    /// Takes what the files hold now. Connections that are open keep what they have seen.
    pub(super) fn reload(&self, config: &Config, now_ms: u64) -> Result<(), CertificateError> {
        let usable = usable(config, &self.listen, now_ms)?;
        let before = self.status().fingerprint;
        if before != usable.status.fingerprint {
            tracing::info!("the certificate of [web] is another one: SHA-256 {}", usable.status.fingerprint);
        }
        *self.usable.write().expect("nobody panics with it") = usable;
        Ok(())
    }

    pub(super) fn status(&self) -> WebCertificateStatus {
        self.usable.read().expect("nobody panics with it").status.clone()
    }

    /// TLS of the listener.
    pub(super) fn server_config(self: &Arc<Self>) -> Arc<ServerConfig> {
        let mut config = tls::server().with_no_client_auth().with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }
}

fn usable(config: &Config, listen: &[SocketAddr], now_ms: u64) -> Result<Usable, CertificateError> {
    match &config.web.certificate {
        Some(files) => of_files(files),
        None => own(&config.state_dir.join("web.json"), names(listen), now_ms),
    }
}

fn of_files(WebCertificate { certificate, key }: &WebCertificate) -> Result<Usable, CertificateError> {
    let failed = |path: &Path, why: String| CertificateError { path: path.to_owned(), why };
    let size = std::fs::metadata(certificate).map_err(|error| failed(certificate, error.to_string()))?.len();
    if size > FILE_BYTES_MAX {
        return Err(failed(certificate, "it is too large for certificates".to_owned()));
    }
    let pem = std::fs::read_to_string(certificate).map_err(|error| failed(certificate, error.to_string()))?;
    let secret = secret_file::read(key).map_err(|error| failed(key, format!("the key: {error}")))?;
    let certified = certified(&pem, &secret).map_err(|why| failed(certificate, why))?;
    Ok(Usable::new(certified, pem, None))
}

fn own(path: &Path, names: Vec<String>, now_ms: u64) -> Result<Usable, CertificateError> {
    let failed = |why: String| CertificateError { path: path.to_owned(), why };
    let kept = match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice::<Own>(&bytes).ok(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error.to_string())),
    };
    if let Some(kept) = kept.filter(|kept| kept.is_good(&names, now_ms))
        && let Ok(certified) = certified(&kept.certificate, &kept.key)
    {
        return Ok(Usable::new(certified, kept.certificate, Some((kept.names, kept.ends_ms))));
    }
    let made = Own::new(names, now_ms).map_err(|error| failed(error.to_string()))?;
    let bytes = serde_json::to_vec_pretty(&made).expect("it can be said in JSON");
    durable::replace(path, &bytes).map_err(|error| failed(error.error.to_string()))?;
    let certified = certified(&made.certificate, &made.key).map_err(failed)?;
    Ok(Usable::new(certified, made.certificate, Some((made.names, made.ends_ms))))
}

impl Own {
    fn new(names: Vec<String>, now_ms: u64) -> Result<Own, rcgen::Error> {
        let mut params = CertificateParams::new(names.clone())?;
        params.distinguished_name.push(DnType::CommonName, format!("Tangelo {}", names[0]));
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let day = |ms| {
            let Date { year, month, day, .. } = Date::of(ms);
            rcgen::date_time_ymd(year as i32, month as u8, day as u8)
        };
        // a day earlier: clocks differ
        params.not_before = day(now_ms.saturating_sub(DAY_MS));
        let ends_ms = (now_ms + LIFE_MS) / DAY_MS * DAY_MS;
        params.not_after = day(ends_ms);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Own { version: VERSION, names, ends_ms, certificate, key: key.serialize_pem() })
    }

    fn is_good(&self, names: &[String], now_ms: u64) -> bool {
        let is_for = |name| self.names.contains(name);
        self.version == VERSION && now_ms + RENEWED_MS < self.ends_ms && names.iter().all(is_for)
    }
}

impl Usable {
    fn new(key: Arc<CertifiedKey>, pem: String, own: Option<(Vec<String>, u64)>) -> Usable {
        let fingerprint = base::hex::of(&Sha256::digest(&key.cert[0]));
        let is_own = own.is_some();
        let (names, ends_ms) = own.map_or((Vec::new(), None), |(names, ends_ms)| (names, Some(ends_ms)));
        Usable { key, status: WebCertificateStatus { fingerprint, own: is_own, names, ends_ms, pem } }
    }
}

/// A certificate with its key, which fit each other.
fn certified(certificate: &str, key: &str) -> Result<Arc<CertifiedKey>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
    let chain = chain.map_err(|error| error.to_string())?;
    if chain.is_empty() {
        return Err("there is no certificate in it: it is to be PEM".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| format!("the key: {error}"))?;
    CertifiedKey::from_der(chain, key, &tls::provider()).map(Arc::new).map_err(|error| error.to_string())
}

/// What this head is called: by the machine, by itself, and by the addresses that it listens on.
fn names(listen: &[SocketAddr]) -> Vec<String> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let is_name = |name: &String| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
    };
    let mut names: Vec<String> = Some(host).filter(is_name).into_iter().collect();
    names.push("localhost".to_owned());
    let mut add = |address: IpAddr| {
        let name = address.to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    };
    for address in listen.iter().map(SocketAddr::ip) {
        match address.is_unspecified() {
            false => add(address),
            true => {
                add(if address.is_ipv4() {
                    [127, 0, 0, 1].into()
                } else {
                    std::net::Ipv6Addr::LOCALHOST.into()
                });
                default_address(address.is_ipv4()).into_iter().for_each(&mut add);
            }
        }
    }
    names
}

/// The address that this machine uses by default. Nothing is sent.
fn default_address(is_v4: bool) -> Option<IpAddr> {
    let (from, to) = if is_v4 { ("0.0.0.0:0", "192.0.2.1:9") } else { ("[::]:0", "[2001:db8::1]:9") };
    let socket = UdpSocket::bind(from).ok()?;
    socket.connect(to).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_unspecified()).then_some(address)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NOW_MS: u64 = 1_795_694_400_000;

    fn names_of(text: &[&str]) -> Vec<String> {
        text.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_certificate_of_its_own_is_kept_and_renewed_in_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("web.json");
        let fingerprint = |names: &[&str], now_ms| {
            let usable = own(&path, names_of(names), now_ms).unwrap();
            (usable.status.fingerprint, usable.status.ends_ms.unwrap())
        };
        let (first, ends_ms) = fingerprint(&["head", "10.0.0.1"], NOW_MS);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fingerprint(&["10.0.0.1", "head"], NOW_MS + 1).0, first);
        assert_eq!(fingerprint(&["head"], ends_ms - RENEWED_MS - 1).0, first, "fewer names are fine");
        let (renewed, later_ms) = fingerprint(&["head"], ends_ms - RENEWED_MS);
        assert!(renewed != first && later_ms > ends_ms);
        assert_ne!(fingerprint(&["head", "10.0.0.2"], NOW_MS).0, renewed, "it has another address");
        std::fs::write(&path, "torn").unwrap();
        let (anew, _) = fingerprint(&["head"], NOW_MS);
        assert_eq!(fingerprint(&["head"], NOW_MS).0, anew);
    }

    #[test]
    fn files_of_ones_own_are_checked() {
        let directory = tempfile::tempdir().unwrap();
        let [certificate, key] = ["web.pem", "web.key"].map(|name| directory.path().join(name));
        let files = WebCertificate { certificate: certificate.clone(), key: key.clone() };
        let write = |certificate_pem: &str, key_pem: &str, mode| {
            std::fs::write(&certificate, certificate_pem).unwrap();
            std::fs::write(&key, key_pem).unwrap();
            std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
            of_files(&files).map(|usable| usable.status).map_err(|error| error.to_string())
        };
        assert!(of_files(&files).err().unwrap().to_string().contains("web.pem"));
        let [one, other] = [(); 2].map(|()| Own::new(names_of(&["array.example"]), NOW_MS).unwrap());
        let status = write(&one.certificate, &one.key, 0o600).unwrap();
        assert_eq!((status.own, status.ends_ms, status.fingerprint.len()), (false, None, 64));
        assert!(
            write(&one.certificate, &one.key, 0o644).unwrap_err().contains("web.key: the key: everybody")
        );
        assert!(write(&one.certificate, &other.key, 0o600).is_err(), "they do not fit");
        assert!(write("", &one.key, 0o600).unwrap_err().contains("no certificate in it"));
        assert!(write(&one.certificate, "", 0o600).unwrap_err().contains("the key"));
    }

    #[test]
    fn names_of_addresses() {
        let listen =
            ["10.0.0.1:7443", "10.0.0.1:443", "[2001:db8::1]:7443"].map(|text| text.parse().unwrap());
        let all = names(&listen);
        assert!(all.ends_with(&names_of(&["localhost", "10.0.0.1", "2001:db8::1"])), "{all:?}");
        assert!(names(&["0.0.0.0:7443".parse().unwrap()]).contains(&"127.0.0.1".to_owned()));
    }
}
