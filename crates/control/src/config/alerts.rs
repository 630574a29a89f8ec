//! Who is told what is wrong, and how: `[alerts]`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use hyper::Uri;

use super::error::ConfigError;
use super::reader::{Section, Value};

const REPEAT_HOURS: u64 = 24;
const REPEAT_HOURS_MAX: u64 = 24 * 31;
const HEARTBEAT_SECONDS: u64 = 60;
const HEARTBEAT_SECONDS_MIN: u64 = 5;
const HEARTBEAT_SECONDS_MAX: u64 = 86_400;
/// Receivers of mail.
const RECEIVERS_MAX: usize = 16;
/// Characters of an address.
const ADDRESS_BYTES_MAX: usize = 254;
/// Minutes that a place on Earth is ahead of UTC, or behind it.
const OFFSET_MINUTES_MAX: u16 = 14 * 60;

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alerts {
    /// What lasts is told again this often; `None`: never.
    pub repeat: Option<Duration>,
    pub quiet: Option<QuietHours>,
    /// Notices are told, too.
    pub with_notices: bool,
    pub mail: Option<AlertMail>,
    pub webhook: Option<AlertUrl>,
    /// A program, by its absolute path.
    pub command: Option<String>,
    pub heartbeat: Option<(AlertUrl, Duration)>,
}

/// A time of each day, in minutes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuietHours {
    pub from: u16,
    pub to: u16,
    /// What local time is ahead of UTC.
    pub offset_minutes: i16,
}

/// How mail is encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AlertTls {
    StartTls,
    Tls,
    None,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlertMail {
    pub server: String,
    pub port: u16,
    pub tls: AlertTls,
    /// A name, and the file with its password.
    pub user: Option<(String, PathBuf)>,
    pub from: String,
    pub to: Vec<String>,
    pub ca_file: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlertUrl {
    pub url: String,
    pub token_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
}

impl Default for Alerts {
    fn default() -> Alerts {
        Alerts {
            repeat: Some(Duration::from_secs(REPEAT_HOURS * 3600)),
            quiet: None,
            with_notices: false,
            mail: None,
            webhook: None,
            command: None,
            heartbeat: None,
        }
    }
}

pub(super) fn read(mut section: Section) -> Result<Alerts, ConfigError> {
    let mut alerts = Alerts::default();
    if let Some(value) = section.take("repeat_hours") {
        let hours = value.integer(0, REPEAT_HOURS_MAX)?;
        alerts.repeat = (hours > 0).then(|| Duration::from_secs(hours * 3600));
    }
    if let Some(value) = section.take("quiet") {
        alerts.quiet = Some(read_quiet(&value)?);
    }
    if let Some(value) = section.take("least") {
        alerts.with_notices = match value.text("\"degraded\" or \"notice\"")? {
            "degraded" => false,
            "notice" => true,
            other => {
                return Err(
                    value.refuse(format!("least must be \"degraded\" or \"notice\", not \"{other}\""))
                );
            }
        };
    }
    if let Some(mail) = section.section("mail")? {
        alerts.mail = Some(read_mail(mail)?);
    }
    if let Some(mut webhook) = section.section("webhook")? {
        let mut url = read_url(&mut webhook, "webhook")?;
        url.token_file = webhook.take("token_file").map(|value| value.path()).transpose()?;
        webhook.finish()?;
        alerts.webhook = Some(url);
    }
    if let Some(mut command) = section.section("command")? {
        alerts.command = Some(read_command(&mut command)?);
        command.finish()?;
    }
    if let Some(mut heartbeat) = section.section("heartbeat")? {
        let url = read_url(&mut heartbeat, "heartbeat")?;
        let seconds = match heartbeat.take("every_seconds") {
            Some(value) => value.integer(HEARTBEAT_SECONDS_MIN, HEARTBEAT_SECONDS_MAX)?,
            None => HEARTBEAT_SECONDS,
        };
        heartbeat.finish()?;
        alerts.heartbeat = Some((url, Duration::from_secs(seconds)));
    }
    section.finish()?;
    Ok(alerts)
}

fn read_quiet(value: &Value) -> Result<QuietHours, ConfigError> {
    let wanted = "hours of local time and what that is ahead of UTC, such as \"22:00-07:00 +01:00\" or \"22:00-07:00 UTC\"";
    let text = value.text(wanted)?;
    let quiet = parse_quiet(text)
        .ok_or_else(|| value.refuse(format!("quiet must be {wanted}, \"{}\" is not", text.escape_debug())))?;
    match quiet.from == quiet.to {
        true => Err(value.refuse("quiet hours must end at another time than they begin".to_owned())),
        false => Ok(quiet),
    }
}

fn parse_quiet(text: &str) -> Option<QuietHours> {
    let (hours, offset) = text.trim().split_once(' ')?;
    let (from, to) = hours.split_once('-')?;
    let offset_minutes = match offset.trim() {
        "UTC" => 0,
        offset => {
            let (sign, offset) = match offset.split_at_checked(1)? {
                ("+", offset) => (1, offset),
                ("-", offset) => (-1, offset),
                _ => return None,
            };
            sign * parse_minutes(offset).filter(|minutes| *minutes <= OFFSET_MINUTES_MAX)? as i16
        }
    };
    Some(QuietHours { from: parse_minutes(from)?, to: parse_minutes(to)?, offset_minutes })
}

/// HH:MM
fn parse_minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str, max: u16| {
        let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|number| is_plain && *number <= max)
    };
    Some(number(hours, 23)? * 60 + number(minutes, 59)?)
}

fn read_mail(mut mail: Section) -> Result<AlertMail, ConfigError> {
    let wanted = "a server's name in quotes, such as \"mail.example.com\"";
    let value =
        mail.take("server").ok_or_else(|| mail.refuse(format!("[alerts.mail] needs server: {wanted}")))?;
    let server = value.text(wanted)?.to_owned();
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/@[]".contains(&byte));
    if server.is_empty() || !is_name(&server) || server.contains(':') && server.parse::<IpAddr>().is_err() {
        return Err(value.refuse(format!("server must be {wanted}; its port is a key of its own")));
    }
    let tls_value = mail.take("tls");
    let tls =
        match tls_value.as_ref().map(|value| value.text("\"starttls\", \"tls\" or \"none\"")).transpose()? {
            None | Some("starttls") => AlertTls::StartTls,
            Some("tls") => AlertTls::Tls,
            Some("none") => AlertTls::None,
            Some(other) => {
                let value = tls_value.as_ref().expect("it has a text");
                return Err(
                    value.refuse(format!("tls must be \"starttls\", \"tls\" or \"none\", not \"{other}\""))
                );
            }
        };
    let port = match mail.take("port") {
        Some(value) => value.integer(1, 65_535)? as u16,
        None => match tls {
            AlertTls::StartTls => 587,
            AlertTls::Tls => 465,
            AlertTls::None => 25,
        },
    };
    let user = read_user(&mut mail, tls, &server)?;
    let from = mail.take("from").ok_or_else(|| {
        mail.refuse("[alerts.mail] needs from: a mail address, such as \"tangelo@example.com\"".to_owned())
    })?;
    let from = read_address(&from)?;
    let to = read_receivers(&mut mail)?;
    let ca_file = mail.take("ca_file").map(|value| value.path()).transpose()?;
    mail.finish()?;
    Ok(AlertMail { server, port, tls, user, from, to, ca_file })
}

fn read_user(
    mail: &mut Section,
    tls: AlertTls,
    server: &str,
) -> Result<Option<(String, PathBuf)>, ConfigError> {
    let is_here =
        server == "localhost" || server.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match (mail.take("user"), mail.take("password_file")) {
        (None, None) => Ok(None),
        (Some(user), Some(_)) if tls == AlertTls::None && !is_here => Err(user.refuse(
            "without TLS everybody on the way reads the password: leave out user, or set tls to \"starttls\" or \"tls\"".to_owned(),
        )),
        (Some(user), Some(file)) => {
            let name = user.text("a name in quotes")?;
            if name.is_empty() || name.contains(char::is_control) {
                return Err(user.refuse("user must be a name".to_owned()));
            }
            Ok(Some((name.to_owned(), file.path()?)))
        }
        (Some(value), None) => {
            Err(value.refuse("a user needs password_file: a file that only root may read".to_owned()))
        }
        (None, Some(value)) => Err(value.refuse("password_file is for a user: add user".to_owned())),
    }
}

fn read_receivers(mail: &mut Section) -> Result<Vec<String>, ConfigError> {
    let wanted = "a list of mail addresses, such as [\"admin@example.com\"]";
    let value = mail.take("to").ok_or_else(|| mail.refuse(format!("[alerts.mail] needs to: {wanted}")))?;
    let to = value.list(wanted)?.iter().map(read_address).collect::<Result<Vec<String>, ConfigError>>()?;
    match (1..=RECEIVERS_MAX).contains(&to.len()) {
        true => Ok(to),
        false => {
            Err(value.refuse(format!("1 to {RECEIVERS_MAX} addresses are possible, here are {}", to.len())))
        }
    }
}

/// In ASCII, without a name.
fn read_address(value: &Value) -> Result<String, ConfigError> {
    let wanted = "a mail address, such as \"admin@example.com\"";
    let text = value.text(wanted)?;
    let is_fine = |text: &str| text.bytes().all(|b| b.is_ascii_graphic() && !b"<>()[]\\,;:\"@".contains(&b));
    let parts = text.rsplit_once('@').filter(|(user, host)| {
        let is_host = host.split('.').all(|label| !label.is_empty());
        !user.is_empty() && is_fine(user) && is_fine(host) && is_host && text.len() <= ADDRESS_BYTES_MAX
    });
    match parts {
        Some(_) => Ok(text.to_owned()),
        None => Err(value.refuse(format!("\"{}\" is not {wanted}", text.escape_debug()))),
    }
}

fn read_url(section: &mut Section, name: &str) -> Result<AlertUrl, ConfigError> {
    let wanted = "a URL in quotes, such as \"https://alerts.example.com/tangelo\"";
    let value =
        section.take("url").ok_or_else(|| section.refuse(format!("[alerts.{name}] needs url: {wanted}")))?;
    let text = value.text(wanted)?;
    let is_fine = |uri: &Uri| {
        let host = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let has_place = host.is_some_and(|authority| {
            let has_port = authority.port_u16().is_some_and(|port| port > 0);
            !authority.host().is_empty() && (authority.as_str() == authority.host() || has_port)
        });
        has_place && matches!(uri.scheme_str(), Some("http" | "https"))
    };
    if !text.parse::<Uri>().is_ok_and(|uri| is_fine(&uri)) {
        return Err(value.refuse(format!("url must be {wanted}, without a user")));
    }
    let ca_file = section.take("ca_file").map(|value| value.path()).transpose()?;
    Ok(AlertUrl { url: text.to_owned(), token_file: None, ca_file })
}

fn read_command(section: &mut Section) -> Result<String, ConfigError> {
    let wanted = "the absolute path of a program in quotes, such as \"/usr/local/bin/page-me\"";
    let value = section
        .take("program")
        .ok_or_else(|| section.refuse(format!("[alerts.command] needs program: {wanted}")))?;
    let program = value.text(wanted)?;
    match program.starts_with('/') && !program.contains(char::is_control) {
        true => Ok(program.to_owned()),
        false => Err(value.refuse(format!("program must be {wanted}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Config;
    use super::*;

    fn parse(text: &str) -> Result<Alerts, String> {
        let config = Config::parse(Path::new("/etc/tangelo/tangelo.toml"), text);
        config.map(|config| config.alerts).map_err(|error| error.to_string())
    }

    const MAIL: &str =
        "[alerts.mail]\nserver = \"m.example.com\"\nfrom = \"t@example.com\"\nto = [\"a@example.com\"]\n";

    #[test]
    fn everything_that_can_be_said() {
        assert_eq!(parse("").unwrap(), Alerts::default());
        let text = format!(
            "[alerts]\nrepeat_hours = 0\nquiet = \"22:00-07:30 -02:30\"\nleast = \"notice\"\n{MAIL}\
             tls = \"tls\"\nuser = \"u\"\npassword_file = \"word\"\nca_file = \"/ca\"\n\
             [alerts.webhook]\nurl = \"https://h/x\"\ntoken_file = \"token\"\n\
             [alerts.command]\nprogram = \"/bin/page\"\n[alerts.heartbeat]\nurl = \"http://h/\"\nevery_seconds = 5\n"
        );
        let alerts = parse(&text).unwrap();
        assert_eq!((alerts.repeat, alerts.with_notices), (None, true));
        let quiet = QuietHours { from: 22 * 60, to: 7 * 60 + 30, offset_minutes: -150 };
        assert_eq!(alerts.quiet, Some(quiet));
        let mail = alerts.mail.unwrap();
        assert_eq!((mail.port, mail.tls, mail.to.len()), (465, AlertTls::Tls, 1));
        assert_eq!(mail.user, Some(("u".to_owned(), "/etc/tangelo/word".into())));
        assert_eq!(alerts.webhook.unwrap().token_file, Some("/etc/tangelo/token".into()));
        assert_eq!(alerts.command.as_deref(), Some("/bin/page"));
        assert_eq!(alerts.heartbeat.unwrap().1, Duration::from_secs(5));
        let mail = parse(MAIL).unwrap().mail.unwrap();
        assert_eq!((mail.port, mail.tls, mail.user), (587, AlertTls::StartTls, None));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_line() {
        for (text, words) in [
            ("[alerts]\nquiet = \"22-7\"\n", "22:00-07:00"),
            ("[alerts]\nquiet = \"22:00-07:00\"\n", "tangelo.toml:2: "),
            ("[alerts]\nquiet = \"22:00-24:00 UTC\"\n", "quiet must be"),
            ("[alerts]\nquiet = \"22:00-22:00 UTC\"\n", "another time"),
            ("[alerts]\nquiet = \"22:00-07:00 +15:00\"\n", "quiet must be"),
            ("[alerts]\nleast = \"offline\"\n", "degraded"),
            ("[alerts]\nmails = 1\n", "did you mean \"mail\"?"),
            ("[alerts.mail]\nfrom = \"t@example.com\"\n", "needs server"),
            ("[alerts.webhook]\nurl = \"ftp://h/\"\n", "url must be"),
            ("[alerts.webhook]\nurl = \"https://user:word@h/\"\n", "without a user"),
            ("[alerts.webhook]\nurl = \"https://h:99999/\"\n", "url must be"),
            ("[alerts.webhook]\ntoken_file = \"x\"\n", "needs url"),
            ("[alerts.command]\nprogram = \"page\"\n", "absolute path"),
            ("[alerts.heartbeat]\nurl = \"http://h/\"\nevery_seconds = 1\n", "5 to 86400"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        for (line, words) in [
            ("tls = \"maybe\"\n", "starttls"),
            ("user = \"u\"\n", "password_file"),
            ("password_file = \"x\"\n", "add user"),
            ("user = \"u\"\npassword_file = \"x\"\ntls = \"none\"\n", "everybody on the way"),
        ] {
            let error = parse(&format!("{MAIL}{line}")).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
        for (from, to) in [
            ("a@example.com", "nobody"),
            ("a@example.com", "a@@b"),
            ("a@example.com", "a b@example.com"),
            ("a@example.com", "a@example.com\\nBcc: x@example.com"),
            ("m.example.com", "m.example.com:25"),
            ("m.example.com", ""),
        ] {
            assert!(parse(&MAIL.replace(from, to)).is_err(), "{to}");
        }
        let here = MAIL.replace("m.example.com", "127.0.0.1");
        assert!(parse(&format!("{here}user = \"u\"\npassword_file = \"x\"\ntls = \"none\"\n")).is_ok());
    }
}
