//! Mail by SMTP. TLS is used as the head's file says, or nothing is sent: never "if the server can".

use std::path::PathBuf;
use std::time::Duration;

use lettre::address::Envelope;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, AsyncTokioStream, Certificate, CertificateStore, TlsParameters, TlsParametersBuilder,
};
use lettre::transport::smtp::extension::ClientId;
use tokio::time::timeout;

use crate::deliver::{Delivered, ReadSecret, Undelivered, authorities, secret};
use crate::letter::Letter;
use crate::net::{self, Bounded};

/// Of all before the mail itself, and of the mail.
const PHASE_TIME: Duration = Duration::from_secs(30);
const GOODBYE_TIME: Duration = Duration::from_secs(1);
const WORDS_CHARS_MAX: usize = 200;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MailTls {
    /// The connection begins in plain and becomes TLS before anything is said.
    StartTls,
    /// TLS from the first byte.
    Tls,
    None,
}

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mail {
    pub server: String,
    pub port: u16,
    pub tls: MailTls,
    pub user: Option<String>,
    pub password_file: Option<PathBuf>,
    /// With or without a name.
    pub from: String,
    pub to: Vec<String>,
    pub ca_file: Option<PathBuf>,
}

impl Mail {
    pub(crate) fn target(&self) -> String {
        format!("{} by {}", self.to.join(", "), self.authority())
    }

    fn authority(&self) -> String {
        format!("{}:{}", self.server, self.port)
    }

    /// To all at once. Where one of them is refused, to each, so that the others get it.
    pub(crate) async fn deliver(&self, letter: &Letter, head: &str, read: ReadSecret) -> Delivered {
        let mail = self.mail(letter, head)?;
        let (all, bytes) = (mail.envelope().clone(), mail.formatted());
        let refused = match self.send(&all, &bytes, head, read).await {
            Ok(()) => return Ok(String::new()),
            Err(Failed { is_refusal: true, undelivered }) if all.to().len() > 1 => undelivered,
            Err(failed) => return Err(failed.undelivered),
        };
        let (mut not_to, mut taken) = (Vec::new(), 0);
        for to in all.to() {
            let one = Envelope::new(all.from().cloned(), vec![to.clone()]);
            let one = one.map_err(|error| Undelivered::surely(error.to_string()))?;
            match self.send(&one, &bytes, head, read).await {
                Ok(()) => taken += 1,
                Err(failed) => not_to.push(format!("{to}: {}", failed.undelivered.why)),
            }
        }
        match taken {
            0 => Err(refused),
            _ => Ok(format!("not to all: {}", not_to.join("; "))),
        }
    }

    async fn send(&self, to: &Envelope, bytes: &[u8], head: &str, read: ReadSecret) -> Result<(), Failed> {
        let late =
            |what: &str| format!("{} has not {what} within {} s", self.authority(), PHASE_TIME.as_secs());
        let opened = timeout(PHASE_TIME, self.open(head, read)).await;
        let mut connection = opened
            .unwrap_or_else(|_| Err(Undelivered::surely(late("let us in"))))
            .map_err(|undelivered| Failed { undelivered, is_refusal: false })?;
        let sent = timeout(PHASE_TIME, connection.send(to, bytes)).await;
        let result = match sent {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_) => {
                Err(Failed { undelivered: Undelivered::maybe(late("taken the mail")), is_refusal: false })
            }
        };
        // one that does not say goodbye has the mail all the same
        let _goodbye = timeout(GOODBYE_TIME, connection.quit()).await;
        result
    }

    fn mail(&self, letter: &Letter, head: &str) -> Result<Message, Undelivered> {
        let wrong = |why: String| Undelivered::surely(why);
        let mailbox = |text: &String| {
            text.parse::<Mailbox>().map_err(|error| wrong(format!("{text} is no mail address: {error}")))
        };
        let mut builder = Message::builder().from(mailbox(&self.from)?);
        for to in &self.to {
            builder = builder.to(mailbox(to)?);
        }
        // no holiday notice answers it (RFC 3834 §5)
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        builder
            .subject(&letter.subject)
            .message_id(Some(format!("<{}@{}>", letter.key, host_of(head))))
            .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
            .header(ContentType::TEXT_PLAIN)
            .body(letter.text.clone())
            .map_err(|error| wrong(error.to_string()))
    }

    /// Ready to take a mail.
    async fn open(&self, head: &str, read: ReadSecret) -> Result<AsyncSmtpConnection, Undelivered> {
        let refuse = |error: Error| Undelivered::surely(format!("{}: {}", self.authority(), words(&error)));
        let hello = ClientId::Domain(host_of(head));
        let stream = net::connect(&self.server, self.port).await?;
        let peer = stream.peer_addr().map_err(|error| Undelivered::surely(error.to_string()))?;
        let stream: Box<dyn AsyncTokioStream> = match self.tls {
            MailTls::Tls => {
                let secured = net::secured(&self.server, stream, self.ca_file.clone()).await?;
                Box::new(Bounded::new(secured, peer))
            }
            MailTls::StartTls | MailTls::None => Box::new(Bounded::new(stream, peer)),
        };
        let connection = AsyncSmtpConnection::connect_with_transport(stream, &hello).await;
        let mut connection = connection.map_err(refuse)?;
        if self.tls == MailTls::StartTls {
            connection.starttls(self.start_tls().await?, &hello).await.map_err(refuse)?;
        }
        if let (Some(user), Some(file)) = (&self.user, &self.password_file) {
            let password = secret(file, read).await?;
            let credentials = Credentials::new(user.clone(), password);
            connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await.map_err(refuse)?;
        }
        Ok(connection)
    }

    async fn start_tls(&self) -> Result<TlsParameters, Undelivered> {
        let refuse = |error: Error| Undelivered::surely(format!("{}: {}", self.authority(), words(&error)));
        let mut builder = TlsParametersBuilder::new(self.server.clone());
        if let Some(file) = &self.ca_file {
            let pem = authorities(file.clone()).await?;
            let name = |error: Error| Undelivered::surely(format!("{}: {}", file.display(), words(&error)));
            builder = builder.certificate_store(CertificateStore::None);
            builder = builder.add_root_certificate(Certificate::from_pem(&pem).map_err(name)?);
        }
        // the system's certificates are many files
        let built = tokio::task::spawn_blocking(move || builder.build_rustls()).await;
        built.map_err(|error| Undelivered::surely(error.to_string()))?.map_err(refuse)
    }

    fn failed(&self, error: &Error) -> Failed {
        let why = format!("{}: {}", self.authority(), words(error));
        // what the server refuses it does not have
        let undelivered = match error.is_permanent() || error.is_transient() || error.is_client() {
            true => Undelivered::surely(why),
            false => Undelivered::maybe(why),
        };
        Failed { undelivered, is_refusal: error.is_permanent() }
    }
}

/// Why a mail was not taken.
struct Failed {
    undelivered: Undelivered,
    /// The server does not want it for good: maybe for one of its recipients.
    is_refusal: bool,
}

fn words(error: &Error) -> String {
    use std::error::Error as _;
    let mut words = error.to_string();
    if let Some(source) = error.source()
        && !words.contains(&source.to_string())
    {
        words = format!("{words}: {source}");
    }
    let kept = words.chars().filter(|char| !char.is_control());
    kept.take(WORDS_CHARS_MAX).collect()
}

/// A name that a mail server takes.
fn host_of(name: &str) -> String {
    let kept: String =
        name.chars().filter(|char| char.is_ascii_alphanumeric() || ['-', '.'].contains(char)).collect();
    if kept.is_empty() { "localhost".to_owned() } else { kept }
}
