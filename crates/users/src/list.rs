//! All users and tokens: one value, and its changes. A change is checked as a whole before anything of it is taken over, and says what it
//! has changed, step by step.

use std::collections::BTreeMap;

use api::{AccessStep, CommandError, CommandErrorKind, Role, SignInRefusal};
use serde::{Deserialize, Serialize};

use crate::name::check_name;
use crate::password::PasswordHash;
use crate::secret::SecretHash;
use crate::{TOKENS_MAX, USERS_MAX};

/// When a token was used is known to the hour.
const HOUR_MS: u64 = 3_600_000;

/// Somebody who signs in. Moments are in milliseconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    pub role: Role,
    pub password: PasswordHash,
    /// From then on, nobody signs in as this user.
    pub expires_ms: Option<u64>,
    pub disabled: bool,
    pub created_ms: u64,
}

impl User {
    /// Whether this user may sign in, and stay.
    pub fn standing(&self, now_ms: u64) -> Result<(), SignInRefusal> {
        if self.disabled {
            return Err(SignInRefusal::Disabled);
        }
        match self.is_expired(now_ms) {
            true => Err(SignInRefusal::Expired),
            false => Ok(()),
        }
    }

    pub fn is_expired(&self, now_ms: u64) -> bool {
        is_over(self.expires_ms, now_ms)
    }
}

/// What a program presents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    pub role: Role,
    pub secret: SecretHash,
    pub expires_ms: Option<u64>,
    pub created_ms: u64,
    /// The beginning of the hour.
    pub last_used_ms: Option<u64>,
}

impl Token {
    pub fn is_good(&self, now_ms: u64) -> bool {
        !is_over(self.expires_ms, now_ms)
    }
}

fn is_over(expires_ms: Option<u64>, now_ms: u64) -> bool {
    expires_ms.is_some_and(|end_ms| end_ms <= now_ms)
}

/// What is to be different about a user.
#[derive(Clone, Default, Debug)]
pub struct UserChange {
    pub role: Option<Role>,
    pub password: Option<PasswordHash>,
    pub disabled: Option<bool>,
    /// `Some(None)`: no end date.
    pub expires_ms: Option<Option<u64>>,
}

/// Everybody.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    users: BTreeMap<String, User>,
    tokens: BTreeMap<String, Token>,
}

/// What a change has changed.
type Steps = Result<Vec<AccessStep>, CommandError>;

impl Users {
    pub fn users(&self) -> impl Iterator<Item = (&String, &User)> {
        self.users.iter()
    }

    pub fn tokens(&self) -> impl Iterator<Item = (&String, &Token)> {
        self.tokens.iter()
    }

    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.get(name)
    }

    /// Refuses a name that no user has.
    pub fn check_user(&self, name: &str) -> Result<(), CommandError> {
        self.users.contains_key(name).then_some(()).ok_or_else(|| no_such("user", name))
    }

    pub fn token(&self, name: &str) -> Option<&Token> {
        self.tokens.get(name)
    }

    /// The token that has this secret, and its name.
    pub fn token_with(&self, secret: &SecretHash) -> Option<(&String, &Token)> {
        self.tokens.iter().find(|(_, token)| token.secret == *secret)
    }

    pub fn add_user(&mut self, name: &str, user: User) -> Steps {
        check_name("user", name)?;
        refuse_known("user", name, self.users.contains_key(name), self.users.len(), USERS_MAX)?;
        check_end(user.expires_ms, user.created_ms)?;
        let step =
            AccessStep::AddUser { user: name.to_owned(), role: user.role, expires_ms: user.expires_ms };
        self.users.insert(name.to_owned(), user);
        Ok(vec![step])
    }

    /// What stays as it was is no step.
    pub fn set_user(&mut self, name: &str, change: UserChange, now_ms: u64) -> Steps {
        let had_administrator = self.has_administrator();
        let known = self.users.get_mut(name).ok_or_else(|| no_such("user", name))?;
        check_end(change.expires_ms.flatten(), now_ms)?;
        let user = || name.to_owned();
        let mut steps = Vec::new();
        if let Some(after) = change.role.filter(|role| *role != known.role) {
            steps.push(AccessStep::SetRole { user: user(), before: known.role, after });
            known.role = after;
        }
        if let Some(password) = change.password {
            steps.push(AccessStep::SetPassword { user: user() });
            known.password = password;
        }
        if let Some(disabled) = change.disabled.filter(|disabled| *disabled != known.disabled) {
            let user = user();
            steps.push(if disabled {
                AccessStep::DisableUser { user }
            } else {
                AccessStep::EnableUser { user }
            });
            known.disabled = disabled;
        }
        if let Some(expires_ms) = change.expires_ms.filter(|expires_ms| *expires_ms != known.expires_ms) {
            steps.push(AccessStep::SetUserEnd { user: user(), expires_ms });
            known.expires_ms = expires_ms;
        }
        steps.extend(self.lost_administrator(had_administrator));
        Ok(steps)
    }

    pub fn delete_user(&mut self, name: &str) -> Steps {
        let had_administrator = self.has_administrator();
        self.users.remove(name).ok_or_else(|| no_such("user", name))?;
        let mut steps = vec![AccessStep::DeleteUser { user: name.to_owned() }];
        steps.extend(self.lost_administrator(had_administrator));
        Ok(steps)
    }

    pub fn add_token(&mut self, name: &str, token: Token) -> Steps {
        check_name("token", name)?;
        refuse_known("token", name, self.tokens.contains_key(name), self.tokens.len(), TOKENS_MAX)?;
        check_end(token.expires_ms, token.created_ms)?;
        let step =
            AccessStep::AddToken { token: name.to_owned(), role: token.role, expires_ms: token.expires_ms };
        self.tokens.insert(name.to_owned(), token);
        Ok(vec![step])
    }

    pub fn revoke_token(&mut self, name: &str) -> Steps {
        self.tokens.remove(name).ok_or_else(|| no_such("token", name))?;
        Ok(vec![AccessStep::RevokeToken { token: name.to_owned() }])
    }

    /// Notes that a token is used. Whether that is worth storing: once an hour.
    pub fn note_use(&mut self, name: &str, now_ms: u64) -> bool {
        let Some(token) = self.tokens.get_mut(name) else { return false };
        let hour_ms = Some(now_ms / HOUR_MS * HOUR_MS);
        std::mem::replace(&mut token.last_used_ms, hour_ms) != hour_ms
    }

    /// Whether a user can administer. End dates do not count: they come without a change.
    fn has_administrator(&self) -> bool {
        self.users.values().any(|user| user.role == Role::Administer && !user.disabled)
    }

    fn lost_administrator(&self, had: bool) -> Option<AccessStep> {
        (had && !self.has_administrator()).then_some(AccessStep::LoseLastAdministrator {})
    }

    /// Whether all that a file holds could have been made by changes.
    pub(crate) fn is_sound(&self) -> bool {
        let names = self.users.keys().chain(self.tokens.keys());
        self.users.len() <= USERS_MAX
            && self.tokens.len() <= TOKENS_MAX
            && names.into_iter().all(|name| check_name("user", name).is_ok())
            && self.users.values().all(|user| user.password.is_sound())
    }
}

fn no_such(kind: &str, name: &str) -> CommandError {
    let (message, hint) = (
        format!("there is no {kind} called \"{name}\""),
        format!("`tangelo {kind} list` shows what there is"),
    );
    CommandError::new(CommandErrorKind::NotFound, message, hint)
}

fn refuse_known(
    kind: &str,
    name: &str,
    is_known: bool,
    there: usize,
    max: usize,
) -> Result<(), CommandError> {
    if is_known {
        let message = format!("there is a {kind} called \"{name}\" already");
        return Err(CommandError::new(CommandErrorKind::AlreadyExists, message, "take another name"));
    }
    if there >= max {
        let message = format!("there are {max} {kind}s, which is the most that are possible");
        let hint = match kind {
            "token" => "`tangelo token revoke` removes one that is not needed",
            _ => "`tangelo user delete` removes one that is not needed",
        };
        return Err(CommandError::new(CommandErrorKind::Full, message, hint));
    }
    Ok(())
}

fn check_end(expires_ms: Option<u64>, now_ms: u64) -> Result<(), CommandError> {
    match is_over(expires_ms, now_ms) {
        true => {
            let hint = "give a moment that is still to come";
            Err(CommandError::new(CommandErrorKind::Invalid, "this end date is over", hint))
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    const NOW_MS: u64 = 1_795_694_400_000;

    fn user(role: Role) -> User {
        let password = PasswordHash::of_nobody();
        User { role, password, expires_ms: None, disabled: false, created_ms: NOW_MS }
    }

    fn token(secret: &Secret) -> Token {
        let secret = secret.hash();
        Token { role: Role::Look, secret, expires_ms: None, created_ms: NOW_MS, last_used_ms: None }
    }

    #[test]
    fn changes_say_what_they_change() {
        let mut all = Users::default();
        all.add_user("alice", user(Role::Administer)).unwrap();
        all.add_user("bob", user(Role::Look)).unwrap();
        let again = all.add_user("bob", user(Role::Look)).unwrap_err();
        assert_eq!(again.kind, CommandErrorKind::AlreadyExists);
        assert_eq!(all.set_user("bob", UserChange::default(), NOW_MS).unwrap(), []);
        let same = UserChange { role: Some(Role::Look), disabled: Some(false), ..UserChange::default() };
        assert_eq!(all.set_user("bob", same, NOW_MS).unwrap(), []);
        let change = UserChange { role: Some(Role::Operate), disabled: Some(true), ..UserChange::default() };
        let steps = all.set_user("bob", change, NOW_MS).unwrap();
        let [role, disabled] = steps.as_slice() else { panic!("{steps:?}") };
        assert!(matches!(role, AccessStep::SetRole { before: Role::Look, after: Role::Operate, .. }));
        assert!(matches!(disabled, AccessStep::DisableUser { .. }));
        assert_eq!(all.user("bob").unwrap().standing(NOW_MS), Err(SignInRefusal::Disabled));
        let unknown = all.set_user("carol", UserChange::default(), NOW_MS).unwrap_err();
        assert_eq!(unknown.kind, CommandErrorKind::NotFound);
    }

    #[test]
    fn an_end_date_ends() {
        let mut all = Users::default();
        let over = User { expires_ms: Some(NOW_MS), ..user(Role::Look) };
        assert_eq!(all.add_user("alice", over).unwrap_err().kind, CommandErrorKind::Invalid);
        all.add_user("alice", User { expires_ms: Some(NOW_MS + 5), ..user(Role::Look) }).unwrap();
        let alice = all.user("alice").unwrap();
        assert_eq!(alice.standing(NOW_MS + 4), Ok(()));
        assert_eq!(alice.standing(NOW_MS + 5), Err(SignInRefusal::Expired));
        let none = UserChange { expires_ms: Some(None), ..UserChange::default() };
        all.set_user("alice", none, NOW_MS).unwrap();
        assert_eq!(all.user("alice").unwrap().standing(u64::MAX), Ok(()));
    }

    /// It is allowed, because the Unix socket is there, and it is said.
    #[test]
    fn the_last_administrator_may_go() {
        let two = || {
            let mut all = Users::default();
            all.add_user("alice", user(Role::Administer)).unwrap();
            all.add_user("bob", user(Role::Administer)).unwrap();
            all
        };
        let is_last = |steps: &[AccessStep]| steps.contains(&AccessStep::LoseLastAdministrator {});
        let mut all = two();
        assert!(!is_last(&all.delete_user("bob").unwrap()));
        assert!(is_last(&all.delete_user("alice").unwrap()));
        for change in [
            UserChange { role: Some(Role::Operate), ..UserChange::default() },
            UserChange { disabled: Some(true), ..UserChange::default() },
        ] {
            let mut all = two();
            assert!(!is_last(&all.set_user("bob", change.clone(), NOW_MS).unwrap()));
            assert!(is_last(&all.set_user("alice", change, NOW_MS).unwrap()));
        }
    }

    #[test]
    fn a_token_is_found_by_its_secret_until_it_is_revoked() {
        let (secret, other) = (Secret::random(), Secret::random());
        let mut all = Users::default();
        all.add_token("grafana", token(&secret)).unwrap();
        assert_eq!(all.token_with(&secret.hash()).unwrap().0, "grafana");
        assert!(all.token_with(&other.hash()).is_none());
        assert!(all.note_use("grafana", NOW_MS + 5) && !all.note_use("grafana", NOW_MS + 3_599_999));
        assert!(all.note_use("grafana", NOW_MS + 3_600_000));
        assert_eq!(all.token("grafana").unwrap().last_used_ms, Some(NOW_MS + 3_600_000));
        all.revoke_token("grafana").unwrap();
        assert!(all.token_with(&secret.hash()).is_none() && !all.note_use("grafana", NOW_MS));
        let ended = Token { expires_ms: Some(NOW_MS + 1), ..token(&secret) };
        assert!(ended.is_good(NOW_MS) && !ended.is_good(NOW_MS + 1));
    }

    #[test]
    fn numbers_are_bounded() {
        let mut all = Users::default();
        for number in 0..USERS_MAX {
            all.add_user(&format!("u{number}"), user(Role::Look)).unwrap();
        }
        assert_eq!(all.add_user("more", user(Role::Look)).unwrap_err().kind, CommandErrorKind::Full);
        for number in 0..TOKENS_MAX {
            all.add_token(&format!("t{number}"), token(&Secret::random())).unwrap();
        }
        assert_eq!(all.add_token("more", token(&Secret::random())).unwrap_err().kind, CommandErrorKind::Full);
        assert!(all.is_sound());
    }
}
