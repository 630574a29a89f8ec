//! Who gets in over the network: users, sessions, tokens, the certificate.

use base::calendar::moment;
use base::table::Table;
use control::rest::{SessionList, TokenList, TokenMade, UserList, WebStatus};
use serde::Serialize;

use super::{Show, change_text};

fn end(expires_ms: Option<u64>) -> String {
    expires_ms.map_or("never".to_owned(), moment)
}

impl Show for UserList {
    fn text(&self) -> String {
        if self.users.is_empty() {
            return "There are no users: `tangelo user add` makes one, who can sign in where [web] listens.\n".to_owned();
        }
        let mut table = Table::new(&["USER", "ROLE", "STATE", "SESSIONS", "ENDS", "SINCE"]);
        for user in &self.users {
            let state = match (user.disabled, user.expired) {
                (true, _) => "disabled",
                (_, true) => "ended",
                _ => "enabled",
            };
            table.row(vec![
                user.name.clone(),
                user.role.to_string(),
                state.to_owned(),
                user.sessions.to_string(),
                end(user.expires_ms),
                moment(user.created_ms),
            ]);
        }
        rendered(&table)
    }
}

impl Show for SessionList {
    fn text(&self) -> String {
        if self.sessions.is_empty() {
            return "Nobody has signed in.\n".to_owned();
        }
        let mut table = Table::new(&["SESSION", "USER", "FROM", "SINCE", "IDLE"]);
        for session in &self.sessions {
            table.row(vec![
                session.number.to_string(),
                session.user.clone(),
                session.address.clone(),
                moment(session.began_ms),
                format!("{} min", session.idle_seconds / 60),
            ]);
        }
        rendered(&table)
    }
}

impl Show for TokenList {
    fn text(&self) -> String {
        if self.tokens.is_empty() {
            return "There are no tokens: `tangelo token add` makes one for a program.\n".to_owned();
        }
        let mut table = Table::new(&["TOKEN", "ROLE", "STATE", "LAST USED", "ENDS", "SINCE"]);
        for token in &self.tokens {
            table.row(vec![
                token.name.clone(),
                token.role.to_string(),
                if token.expired { "ended" } else { "good" }.to_owned(),
                token.last_used_ms.map_or("-".to_owned(), moment),
                end(token.expires_ms),
                moment(token.created_ms),
            ]);
        }
        rendered(&table)
    }
}

fn rendered(table: &Table) -> String {
    let mut out = String::new();
    table.render("", &mut out);
    out
}

impl Show for TokenMade {
    fn text(&self) -> String {
        let mut out = change_text(self.secret.is_none(), &self.steps, &[]);
        if let Some(secret) = &self.secret {
            out.push_str(&format!("Its secret, which is not shown again:\n{secret}\n"));
        }
        out
    }
}

impl Show for WebStatus {
    fn text(&self) -> String {
        let Some(certificate) = &self.certificate else {
            return "This head is not reached over TLS: name addresses as [web] listen in its file.\n"
                .to_owned();
        };
        let mut out: String = self.listen.iter().map(|address| format!("https://{address}\n")).collect();
        let whose = if certificate.own { "made by this head" } else { "from a file" };
        out.push_str(&format!("certificate: {whose}\nSHA-256: {}\n", certificate.fingerprint));
        if !certificate.names.is_empty() {
            out.push_str(&format!("for: {}\n", certificate.names.join(", ")));
        }
        if let Some(ends_ms) = certificate.ends_ms {
            out.push_str(&format!("until: {}; it is renewed before\n", moment(ends_ms)));
        }
        out
    }
}

/// The certificate alone.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Pem(pub WebStatus);

impl Show for Pem {
    fn text(&self) -> String {
        self.0.certificate.as_ref().map_or_else(|| self.0.text(), |certificate| certificate.pem.clone())
    }

    fn exit_code(&self) -> u8 {
        u8::from(self.0.certificate.is_none())
    }
}
