//! `[web]`: the API and the page for browsers, over TLS.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::error::ConfigError;
use super::reader::Section;

/// Addresses that it may listen on.
const ADDRESSES_MAX: usize = 8;

/// What `[web]` says.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Web {
    /// Empty: not at all.
    pub listen: Vec<SocketAddr>,
    /// `None`: a certificate that the head makes itself.
    pub certificate: Option<WebCertificate>,
}

/// A certificate of one's own: PEM files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebCertificate {
    /// With those that lead to an authority, if there are some.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

pub(super) fn read(mut section: Section) -> Result<Web, ConfigError> {
    let mut web = Web::default();
    if let Some(value) = section.take("listen") {
        for item in value.list("a list of addresses, such as [\"0.0.0.0:7443\"]")? {
            let address = item.address()?;
            if web.listen.contains(&address) {
                return Err(item.refuse(format!("{address} is listed twice; remove one")));
            }
            web.listen.push(address);
        }
        if web.listen.len() > ADDRESSES_MAX {
            let reason = format!("{ADDRESSES_MAX} addresses are possible, here are {}", web.listen.len());
            return Err(value.refuse(reason));
        }
    }
    let (certificate, key) = (section.take("certificate"), section.take("key"));
    web.certificate = match (&certificate, &key) {
        (Some(certificate), Some(key)) => {
            Some(WebCertificate { certificate: certificate.path()?, key: key.path()? })
        }
        (Some(alone), None) => {
            return Err(
                alone.refuse("a certificate needs its key; add key = \"/etc/tangelo/web.key\"".to_owned())
            );
        }
        (None, Some(alone)) => {
            return Err(alone.refuse(
                "a key needs its certificate; add certificate = \"/etc/tangelo/web.pem\"".to_owned(),
            ));
        }
        (None, None) => None,
    };
    section.finish()?;
    Ok(web)
}
