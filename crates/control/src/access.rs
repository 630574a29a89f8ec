//! Who gets in: the users of this head with their file, the sessions of browsers, and what guessing costs.
//!
//! What always holds: a change is durable before anybody sees it; passwords are hashed beside the runtime, at most [`HASHES_MAX`] at once, so
//! guessing takes a bounded part of the machine; whatever is wrong with the file, the daemon serves, and the Unix socket lets in.

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use api::{AccessStep, CommandError, CommandErrorKind, Role, SignInRefusal};
use tokio::sync::Semaphore;
use users::{
    Guesses, PasswordHash, Secret, SecretHash, Session, Sessions, Store, User, UserChange, Users, Verdict,
};

/// Hashes that are worked out at once: each takes 32 MiB, and a core.
const HASHES_MAX: usize = 2;

/// Why nobody has signed in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SignInError {
    /// What to tell the browser is the same for all of these but [`SignInRefusal::TooMany`]. The user: if there is one of the name.
    Refused { user: Option<String>, why: SignInRefusal, retry: Option<Duration> },
    /// The file of users cannot be read.
    Unavailable(String),
}

/// A browser that has signed in: the secret for its cookie.
pub struct SignedIn {
    pub secret: Secret,
    pub user: String,
}

/// Somebody who is let in.
pub struct LetIn {
    pub name: String,
    pub role: Role,
    /// Of a session.
    pub csrf: Option<Arc<str>>,
}

#[derive(Default)]
struct State {
    users: Users,
    /// Why the file of users was not read.
    trouble: Option<String>,
    sessions: Sessions,
    guesses: Guesses,
}

/// See the module's words.
pub struct Access {
    /// `None`: nothing is kept.
    store: Option<Store>,
    state: Mutex<State>,
    /// Held by whoever changes the file.
    changing: tokio::sync::Mutex<()>,
    hashes: Arc<Semaphore>,
    start: Instant,
}

/// The wall clock, in milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64)
}

impl Access {
    /// Reads the file of users. If that fails, nobody is let in but over the Unix socket.
    pub fn open(state_dir: &Path) -> Arc<Access> {
        let access = Access::new(Some(Store::new(state_dir)));
        access.read();
        Arc::new(access)
    }

    /// Without a file: what is changed is forgotten at the end.
    pub(crate) fn of_nobody() -> Arc<Access> {
        Arc::new(Access::new(None))
    }

    fn new(store: Option<Store>) -> Access {
        Access {
            store,
            state: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            hashes: Arc::new(Semaphore::new(HASHES_MAX)),
            start: Instant::now(),
        }
    }

    /// Reads the file again, if that has failed before.
    pub fn reload(&self) {
        if self.state().trouble.is_some() {
            self.read();
        }
    }

    fn read(&self) {
        let Some(store) = &self.store else { return };
        let read = store.load();
        let mut state = self.state();
        state.trouble = None;
        match read {
            Ok(users) => state.users = users,
            Err(error) => {
                tracing::error!(
                    "nobody can sign in, and tokens are refused, but for the token_file: {error}"
                );
                state.trouble = Some(error.to_string());
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// What is known of everybody.
    pub fn look<T>(
        &self,
        look: impl FnOnce(&Users, Vec<&Session>, Duration) -> T,
    ) -> Result<T, CommandError> {
        let (now, state) = (self.now(), self.state());
        match &state.trouble {
            Some(trouble) => Err(unavailable(trouble)),
            None => Ok(look(&state.users, state.sessions.list(now), now)),
        }
    }

    /// Changes who gets in. `ended`: the user whose sessions end with it, but for the one of who asks.
    pub async fn change(
        &self,
        dry_run: bool,
        change: impl FnOnce(&mut Users) -> Result<Vec<AccessStep>, CommandError>,
        ended: Option<(&str, Option<SecretHash>)>,
    ) -> Result<Vec<AccessStep>, CommandError> {
        let _changing = self.changing.lock().await;
        let mut users = self.look(|users, _, _| users.clone())?;
        let mut steps = change(&mut users)?;
        if steps.is_empty() || dry_run {
            return Ok(steps);
        }
        self.save(users.clone()).await?;
        let mut state = self.state();
        state.users = users;
        if let Some((user, kept)) = ended {
            let sessions = state.sessions.end_all(|session| session.user == user, kept.as_ref());
            if sessions > 0 {
                steps.push(AccessStep::EndSessions { user: user.to_owned(), sessions });
            }
        }
        Ok(steps)
    }

    async fn save(&self, users: Users) -> Result<(), CommandError> {
        let Some(store) = self.store.clone() else { return Ok(()) };
        let saved = tokio::task::spawn_blocking(move || store.save(&users)).await;
        saved.expect("it does not panic").map_err(|error| {
            let hint = "make room there, or see why it cannot be written; nothing was changed";
            CommandError::new(CommandErrorKind::Io, error.to_string(), hint)
        })
    }

    /// Works with a password, which takes long.
    async fn hashed<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let permit = self.hashes.clone().acquire_owned().await.expect("it is never closed");
        let worked = tokio::task::spawn_blocking(move || {
            let _until_it_is_done = permit;
            work()
        });
        worked.await.expect("it does not panic")
    }

    pub async fn hash(&self, password: String) -> PasswordHash {
        self.hashed(move || PasswordHash::new(&password)).await
    }

    /// A program with a token. Unknown, revoked and ended ones are the same.
    pub fn token(self: &Arc<Self>, secret: &SecretHash) -> Option<LetIn> {
        let now_ms = now_ms();
        let mut state = self.state();
        let (name, token) = state.users.token_with(secret).filter(|(_, token)| token.is_good(now_ms))?;
        let let_in = LetIn { name: name.clone(), role: token.role, csrf: None };
        if state.users.note_use(&let_in.name, now_ms) {
            tokio::spawn(self.clone().save_uses());
        }
        Some(let_in)
    }

    async fn save_uses(self: Arc<Self>) {
        let _changing = self.changing.lock().await;
        let users = self.state().users.clone();
        if let Err(error) = self.save(users).await {
            tracing::warn!("when a token was used is not stored: {}", error.message);
        }
    }

    /// A browser that has signed in, and what its user may do now.
    pub fn session(&self, secret: &SecretHash) -> Option<LetIn> {
        let now = self.now();
        let mut state = self.state();
        let session = state.sessions.using(secret, now)?.clone();
        let user = state.users.user(&session.user).filter(|user| user.standing(now_ms()).is_ok());
        match user {
            Some(user) => Some(LetIn { role: user.role, name: session.user, csrf: Some(session.csrf) }),
            None => {
                state.sessions.end(secret);
                None
            }
        }
    }

    /// Whether a session or a token that was let in still would be. It does not count as a use.
    pub fn is_still_good(&self, secret: &SecretHash) -> bool {
        let (now, now_ms) = (self.now(), now_ms());
        let state = self.state();
        if let Some(session) = state.sessions.look(secret, now) {
            return state.users.user(&session.user).is_some_and(|user| user.standing(now_ms).is_ok());
        }
        state.users.token_with(secret).is_some_and(|(_, token)| token.is_good(now_ms))
    }

    /// Signs in. It takes as long for a name that there is not.
    pub async fn sign_in(
        &self,
        from: std::net::SocketAddr,
        name: &str,
        password: String,
    ) -> Result<SignedIn, SignInError> {
        let known = self.attempt(from.ip(), name).await?;
        let hash = known.as_ref().map_or_else(PasswordHash::of_nobody, |user| user.password.clone());
        let fits = self.hashed(move || hash.fits(&password)).await;
        let refuse = |why| {
            let user = known.as_ref().map(|_| name.to_owned());
            Err(SignInError::Refused { user, why, retry: None })
        };
        if !fits {
            return refuse(SignInRefusal::NameOrPassword);
        }
        let (now, now_ms) = (self.now(), now_ms());
        let mut state = self.state();
        // it may have been changed meanwhile
        let user = state
            .users
            .user(name)
            .filter(|user| known.as_ref().is_some_and(|known| known.password == user.password));
        let Some(user) = user else { return refuse(SignInRefusal::NameOrPassword) };
        if let Err(why) = user.standing(now_ms) {
            return refuse(why);
        }
        state.guesses.was_right(from.ip(), name);
        let secret = Secret::random();
        let session = Session {
            number: 0,
            user: name.to_owned(),
            csrf: Secret::random().text().into(),
            address: from.to_string(),
            began: now,
            last_used: now,
            began_ms: now_ms,
        };
        state.sessions.begin(secret.hash(), session, now);
        Ok(SignedIn { secret, user: name.to_owned() })
    }

    /// The user who is tried, when it is this attempt's turn.
    async fn attempt(&self, from: IpAddr, name: &str) -> Result<Option<User>, SignInError> {
        let (known, verdict) = {
            let now = self.now();
            let mut state = self.state();
            if let Some(trouble) = &state.trouble {
                return Err(SignInError::Unavailable(trouble.clone()));
            }
            let known = state.users.user(name).cloned();
            // each name that might be one is slow by itself, so that this does not tell which there are
            let tried = if users::check_name("user", name).is_ok() { name } else { "" };
            (known, state.guesses.attempt(from, tried, now))
        };
        match verdict {
            Verdict::After(slow) => {
                tokio::time::sleep(slow).await;
                Ok(known)
            }
            Verdict::Refused(wait) => {
                let user = known.map(|_| name.to_owned());
                Err(SignInError::Refused { user, why: SignInRefusal::TooMany, retry: Some(wait) })
            }
        }
    }

    /// Whether this is the user's password. It costs what an attempt to sign in costs.
    pub async fn knows_password(
        &self,
        from: IpAddr,
        name: &str,
        password: String,
    ) -> Result<bool, SignInError> {
        let hash = self.attempt(from, name).await?.map_or_else(PasswordHash::of_nobody, |user| user.password);
        let fits = self.hashed(move || hash.fits(&password)).await;
        if fits {
            self.state().guesses.was_right(from, name);
        }
        Ok(fits)
    }

    pub fn sign_out(&self, secret: &SecretHash) -> Option<Session> {
        self.state().sessions.end(secret)
    }

    /// Ends sessions: all of a user, or the one of a number.
    pub fn end_sessions(&self, is_meant: impl Fn(&Session) -> bool, dry_run: bool) -> Vec<AccessStep> {
        let now = self.now();
        let mut state = self.state();
        let mut of_users = std::collections::BTreeMap::<String, u64>::new();
        for session in state.sessions.list(now).into_iter().filter(|session| is_meant(session)) {
            *of_users.entry(session.user.clone()).or_default() += 1;
        }
        if !dry_run {
            state.sessions.end_all(is_meant, None);
        }
        of_users.into_iter().map(|(user, sessions)| AccessStep::EndSessions { user, sessions }).collect()
    }

    /// A user's own new password. The user's other sessions end.
    pub async fn set_password(
        &self,
        name: &str,
        password: PasswordHash,
        kept: Option<SecretHash>,
    ) -> Result<Vec<AccessStep>, CommandError> {
        let change = UserChange { password: Some(password), ..UserChange::default() };
        self.change(false, |users| users.set_user(name, change, now_ms()), Some((name, kept))).await
    }
}

fn unavailable(trouble: &str) -> CommandError {
    let hint = "hosts are served meanwhile, and the Unix socket lets in";
    CommandError::new(CommandErrorKind::Unavailable, trouble, hint)
}
