//! TLS, signing in, and roles, from outside: over real sockets, against a fake array.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use ::users::Secret;
use api::*;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::guard::COOKIE;
use super::tests::{Fixture, config, start};
use crate::client::{ClientError, Fingerprint, Server, Trust};
use crate::rest::*;

const PASSWORD: &str = "correct horse battery";

/// An answer: its status, its head and its body.
struct Answered {
    status: u16,
    head: String,
    body: String,
}

impl Answered {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The cookie that was set, as it is sent back.
    fn cookie(&self) -> String {
        self.header("set-cookie").and_then(|cookie| cookie.split(';').next()).expect("a cookie").to_owned()
    }
}

impl Fixture {
    fn trust(&self) -> Trust {
        let fingerprint: Fingerprint = self.doors.fingerprint().unwrap().parse().unwrap();
        Trust::Fingerprint(fingerprint)
    }

    fn token_file(&self, name: &str, secret: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, secret).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// A program over TLS, with a new token.
    async fn program(&self, name: &str, role: Role) -> Server {
        let local = Server::Socket(self.socket());
        let new = NewToken { name: name.to_owned(), role, expires_ms: None };
        let made: TokenMade = local.post("/v1/tokens", &new).await.unwrap();
        let token_file = self.token_file(name, &made.secret.unwrap());
        Server::Tls { authority: self.web.to_string(), token_file, trust: self.trust() }
    }

    async fn add_user(&self, name: &str, role: Role) {
        let local = Server::Socket(self.socket());
        let new = NewUser { name: name.to_owned(), role, password: PASSWORD.to_owned(), expires_ms: None };
        local.post::<_, Changed>("/v1/users", &new).await.unwrap();
    }

    /// Raw over TLS: a request with these lines after the first, and a body.
    async fn browse(&self, first: &str, lines: &[String], body: &str) -> Answered {
        let stream = TcpStream::connect(self.web).await.unwrap();
        // the tests of certificates are elsewhere
        let config = tls::client_that_judges(|_| Ok(())).with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let (web, length) = (self.web, body.len());
        let mut request = format!("{first} HTTP/1.1\r\nHost: {web}\r\nConnection: close\r\n");
        lines.iter().for_each(|line| request.push_str(&format!("{line}\r\n")));
        request.push_str(&format!("Content-Length: {length}\r\n\r\n{body}"));
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        Answered { status: head[9..12].parse().unwrap(), head: head.to_owned(), body: body.to_owned() }
    }

    fn same_origin(&self) -> String {
        format!("Origin: https://{}", self.web)
    }

    async fn sign_in(&self, name: &str, password: &str) -> Answered {
        let form = format!("name={name}&password={}", password.replace(' ', "+"));
        let kind = "Content-Type: application/x-www-form-urlencoded".to_owned();
        self.browse("POST /sign-in", &[self.same_origin(), kind], &form).await
    }

    /// The cookie of a new session, and its CSRF token.
    async fn session(&self, name: &str) -> (String, String) {
        let answered = self.sign_in(name, PASSWORD).await;
        assert_eq!((answered.status, answered.header("location")), (303, Some("/")), "{}", answered.body);
        let cookie = answered.cookie();
        let secret = Secret::parse(cookie.split_once('=').unwrap().1).unwrap();
        let csrf = self.doors.access().session(&secret.hash()).unwrap().csrf.unwrap();
        (format!("Cookie: {cookie}"), format!("X-CSRF-Token: {csrf}"))
    }

    /// Waits for an event of this code.
    async fn reported(&self, code: EventCode) -> (Subject, EventFacts) {
        for _ in 0..500 {
            let asked = self.array.asked.lock().unwrap().clone();
            let found = asked.into_iter().find_map(|command| match command {
                Command::Report { subject, facts, .. } if facts.code() == code => Some((subject, facts)),
                _ => None,
            });
            if let Some(found) = found {
                return found;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("no event {code}");
    }
}

fn refusal(result: Result<serde_json::Value, ClientError>) -> CommandErrorKind {
    match result {
        Err(ClientError::Refused(refusal)) => refusal.kind,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn the_client_takes_the_certificate_that_it_was_told_and_no_other() {
    let fixture = start().await;
    let program = fixture.program("grafana", Role::Look).await;
    program.get::<Status>("/v1/status").await.unwrap();
    let Server::Tls { token_file, .. } = &program else { unreachable!() };
    let web: WebStatus = program.get("/v1/web").await.unwrap();
    let shown = web.certificate.unwrap();
    assert_eq!((shown.own, web.listen), (true, vec![fixture.web.to_string()]));
    let ca = fixture.directory.path().join("ca.pem");
    std::fs::write(&ca, shown.pem).unwrap();
    let with = |authority: String, trust| Server::Tls { authority, token_file: token_file.clone(), trust };
    let by_file = with(fixture.web.to_string(), Trust::Authorities(ca.clone()));
    by_file.get::<Status>("/v1/status").await.unwrap();
    let other: Fingerprint = "00".repeat(32).parse().unwrap();
    let authority = || fixture.web.to_string();
    for server in [with(authority(), Trust::Fingerprint(other)), with(authority(), Trust::System)] {
        let refused = server.get::<Status>("/v1/status").await.unwrap_err();
        assert!(matches!(refused, ClientError::NotTrusted { .. }), "{refused:?}");
    }
}

#[tokio::test]
async fn a_token_may_do_what_its_role_may_until_it_is_revoked() {
    let fixture = start().await;
    let [look, operate, administer] =
        [Role::Look, Role::Operate, Role::Administer].map(|role| fixture.program(role.word(), role));
    let (look, operate, administer) = (look.await, operate.await, administer.await);
    let snapshots = serde_json::json!({ "snapshots": [{ "volume": "vm-01", "name": "now" }] });
    let raw = serde_json::json!({ "name": "r", "backing": { "raw": "/dev/sda" } });
    type Asked = Result<serde_json::Value, ClientError>;
    for (server, role) in [(&look, Role::Look), (&operate, Role::Operate), (&administer, Role::Administer)] {
        server.get::<Status>("/v1/status").await.unwrap();
        let may = |asked: Asked, needed: Role| match asked {
            Err(ClientError::Refused(refusal)) => {
                assert_eq!(refusal.kind == CommandErrorKind::Forbidden, role < needed, "{refusal}");
            }
            other => assert!(role >= needed, "{other:?}"),
        };
        may(server.post("/v1/snapshots", &snapshots).await, Role::Operate);
        may(server.post("/v1/volumes", &raw).await, Role::Administer);
        may(server.delete("/v1/volumes/nope").await, Role::Administer);
        may(server.get("/v1/users").await, Role::Administer);
        may(server.post("/v1/volumes/x/nothing", &snapshots).await, Role::Look);
    }
    let me: Me = operate.get("/v1/me").await.unwrap();
    assert_eq!((me.name.as_str(), me.role), ("operate", Role::Operate));
    let (subject, facts) = fixture.reported(EventCode::ChangeMade).await;
    let EventFacts::ChangeMade { command: CommandKind::TokenAdd, origin, .. } = facts else {
        panic!("{facts:?}")
    };
    assert!(matches!(origin, Origin::Local { .. }) && subject == Subject::Token("look".to_owned()));

    let tokens: TokenList = administer.get("/v1/tokens").await.unwrap();
    assert!(tokens.tokens.iter().all(|token| token.last_used_ms.is_some()), "{tokens:?}");
    administer.delete::<Changed>("/v1/tokens/operate").await.unwrap();
    assert_eq!(refusal(operate.get("/v1/status").await), CommandErrorKind::Unauthorized);
    look.get::<Status>("/v1/status").await.unwrap();
}

#[tokio::test]
async fn a_browser_signs_in_changes_and_signs_out() {
    let fixture = start().await;
    fixture.add_user("alice", Role::Operate).await;
    let away = fixture.browse("GET /", &[], "").await;
    assert_eq!((away.status, away.header("location")), (303, Some("/sign-in")));
    let form = fixture.browse("GET /sign-in", &[], "").await;
    assert!(form.status == 200 && form.body.contains("<form"), "{}", form.body);
    for (header, part) in [
        ("strict-transport-security", "max-age="),
        ("content-security-policy", "default-src 'none'"),
        ("x-frame-options", "DENY"),
        ("cache-control", "no-store"),
    ] {
        assert!(form.header(header).is_some_and(|value| value.contains(part)), "{header}: {}", form.head);
    }
    let (cookie, csrf) = fixture.session("alice").await;
    let (subject, _) = fixture.reported(EventCode::SignedIn).await;
    assert_eq!(subject, Subject::User("alice".to_owned()));
    let me = fixture.browse("GET /v1/me", std::slice::from_ref(&cookie), "").await;
    assert!(me.status == 200 && me.body.contains("\"alice\""), "{}", me.body);
    let metrics = fixture.browse("GET /metrics", std::slice::from_ref(&cookie), "").await;
    assert_eq!(metrics.status, 200);

    let change = |lines: Vec<String>| {
        let fixture = &fixture;
        let body = r#"{"snapshots":[{"volume":"vm-01","name":"now"}]}"#;
        async move { fixture.browse("POST /v1/snapshots", &lines, body).await.status }
    };
    let here = fixture.same_origin();
    let changed = change(vec![cookie.clone(), csrf.clone(), here.clone()]).await;
    assert_eq!(changed, 200);
    for lines in [
        vec![cookie.clone()],
        vec![cookie.clone(), here.clone()],
        vec![cookie.clone(), csrf.clone()],
        vec![cookie.clone(), csrf.clone(), "Origin: https://evil.example".to_owned()],
        vec![cookie.clone(), csrf.clone(), here.clone(), "Sec-Fetch-Site: cross-site".to_owned()],
        vec![cookie.clone(), "X-CSRF-Token: wrong".to_owned(), here.clone()],
    ] {
        assert_eq!(change(lines.clone()).await, 403, "{lines:?}");
    }
    let forged = format!("Cookie: {COOKIE}={}", Secret::random().text());
    assert_eq!(change(vec![forged, csrf.clone(), here.clone()]).await, 401);

    let field = format!("csrf={}", csrf.split_once(": ").unwrap().1);
    let kind = "Content-Type: application/x-www-form-urlencoded".to_owned();
    let lines = [cookie.clone(), here, kind];
    assert_eq!(fixture.browse("POST /sign-out", &lines, "csrf=wrong").await.status, 403);
    let out = fixture.browse("POST /sign-out", &lines, &field).await;
    assert_eq!((out.status, out.header("location")), (303, Some("/sign-in")));
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(fixture.browse("GET /v1/me", &[cookie], "").await.status, 401);
    fixture.reported(EventCode::SignedOut).await;
}

#[tokio::test]
async fn guessing_is_slowed_and_the_answer_tells_nothing() {
    let fixture = start().await;
    fixture.add_user("alice", Role::Look).await;
    let (unknown, wrong) = (
        fixture.sign_in("mallory", "no such password").await,
        fixture.sign_in("alice", "no such password").await,
    );
    assert_eq!((unknown.status, wrong.status), (403, 403));
    assert_eq!(unknown.body.replace("mallory", "alice"), wrong.body);
    let (_, facts) = fixture.reported(EventCode::SignInRefused).await;
    assert_eq!(facts, EventFacts::SignInRefused { user: None, why: SignInRefusal::NameOrPassword });
    assert_eq!(fixture.sign_in("alice", "still wrong, sorry").await.status, 403);
    let waits = fixture.sign_in("alice", PASSWORD).await;
    assert_eq!((waits.status, waits.header("retry-after")), (429, Some("1")), "{}", waits.body);
    tokio::time::sleep(std::time::Duration::from_millis(1_050)).await;
    assert_eq!(fixture.sign_in("alice", PASSWORD).await.status, 303);
    let other_site = ["Origin: https://evil.example".to_owned()];
    assert_eq!(fixture.browse("POST /sign-in", &other_site, "name=a&password=b").await.status, 403);
    let here = [fixture.same_origin()];
    assert_eq!(fixture.browse("POST /sign-in", &here, "nothing").await.status, 400);
}

#[tokio::test]
async fn what_changes_about_a_user_ends_the_sessions_at_once() {
    let fixture = start().await;
    let local = Server::Socket(fixture.socket());
    for (name, update) in [
        ("disabled", r#"{"disabled":true}"#),
        ("reroled", r#"{"role":"look"}"#),
        ("another", r#"{"password":"another horse battery"}"#),
    ] {
        fixture.add_user(name, Role::Administer).await;
        let (cookie, _) = fixture.session(name).await;
        assert_eq!(fixture.browse("GET /v1/users", std::slice::from_ref(&cookie), "").await.status, 200);
        let (code, _) = fixture.request("PATCH", &format!("/v1/users/{name}"), update).await;
        assert_eq!(code, 200);
        assert_eq!(fixture.browse("GET /v1/users", &[cookie], "").await.status, 401, "{name}");
    }
    assert_eq!(fixture.sign_in("disabled", PASSWORD).await.status, 403);
    fixture.add_user("alice", Role::Operate).await;
    let (cookie, csrf) = fixture.session("alice").await;
    let (other, _) = fixture.session("alice").await;
    let lines = [cookie.clone(), csrf, fixture.same_origin()];
    let wrong = r#"{"current":"not this one","new":"a new horse battery"}"#;
    assert_eq!(fixture.browse("POST /v1/me/password", &lines, wrong).await.status, 403);
    let right = format!(r#"{{"current":"{PASSWORD}","new":"a new horse battery"}}"#);
    let set = fixture.browse("POST /v1/me/password", &lines, &right).await;
    assert_eq!(set.status, 200, "{}", set.body);
    assert_eq!(fixture.browse("GET /v1/me", &[other], "").await.status, 401);
    assert_eq!(fixture.browse("GET /v1/me", std::slice::from_ref(&cookie), "").await.status, 200);
    let sessions: SessionList = local.get("/v1/sessions").await.unwrap();
    let number = sessions.sessions.iter().find(|session| session.user == "alice").unwrap().number;
    local.delete::<Changed>(&format!("/v1/sessions/{number}")).await.unwrap();
    assert_eq!(fixture.browse("GET /v1/me", std::slice::from_ref(&cookie), "").await.status, 401);
    assert_eq!(refusal(local.delete(&format!("/v1/sessions/{number}")).await), CommandErrorKind::NotFound);
    local.delete::<Changed>("/v1/users/alice").await.unwrap();
    assert_eq!(fixture.sign_in("alice", "a new horse battery").await.status, 403);
}

#[tokio::test]
async fn users_outlive_the_daemon_and_a_damaged_file_locks_nobody_out_of_the_socket() {
    let fixture = start().await;
    fixture.add_user("alice", Role::Look).await;
    let config = config(fixture.directory.path());
    let access = crate::access::Access::open(&config.state_dir);
    assert_eq!(access.look(|users, _, _| users.users().count()), Ok(1));
    let file = fixture.directory.path().join("users.json");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let access = crate::access::Access::open(&config.state_dir);
    let refused = access.look(|users, _, _| users.users().count()).unwrap_err();
    assert!(
        refused.kind == CommandErrorKind::Unavailable && refused.message.contains("damaged"),
        "{refused}"
    );
    std::fs::write(&file, &whole).unwrap();
    access.reload();
    assert_eq!(access.look(|users, _, _| users.users().count()), Ok(1));
}

/// A stream that a browser keeps open ends with its session.
#[tokio::test]
async fn a_stream_ends_with_the_session() {
    let fixture = start().await;
    let program = fixture.program("watcher", Role::Look).await;
    let mut stream = program.stream("/v1/events/stream").await.unwrap();
    let local = Server::Socket(fixture.socket());
    local.delete::<Changed>("/v1/tokens/watcher").await.unwrap();
    let facts = EventFacts::PoolOpened { drives: 1, lost_drives: 0 };
    let event = Event { sequence: 1, time_ms: 1, count: 1, subject: Subject::pool("fast"), facts };
    fixture.events.publish(vec![event]);
    let next = tokio::time::timeout(std::time::Duration::from_secs(20), stream.next()).await;
    assert_eq!(next.expect("it ends"), None);
}

/// Who says nothing is cut off, and keeps nobody else out meanwhile.
#[tokio::test]
async fn a_handshake_that_does_not_come_keeps_nobody_out() {
    let fixture = start().await;
    let mut silent = Vec::new();
    for _ in 0..2 * base::limits::API_CONNECTIONS_MAX {
        silent.push(TcpStream::connect(fixture.web).await.unwrap());
    }
    let form = fixture.browse("GET /sign-in", &[], "").await;
    assert_eq!(form.status, 200);
}
