//! The server from outside: over a real socket, against a fake array.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use api::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;

use super::*;
use crate::client::{ClientError, Server};
use crate::config::{ApiTcp, Config, Web};
use crate::events::KeptEvents;
use crate::fake::{FakeAlerts, FakeArray, healthy};
use crate::rest::*;

pub(super) struct Fixture {
    pub(super) directory: tempfile::TempDir,
    pub(super) array: Arc<FakeArray>,
    stop: watch::Sender<bool>,
    pub(super) events: Arc<EventLog>,
    server: JoinHandle<()>,
    pub(super) tcp: std::net::SocketAddr,
    pub(super) web: std::net::SocketAddr,
    pub(super) doors: Arc<Doors>,
}

pub(super) fn config(directory: &Path) -> Config {
    let token_file = directory.join("token");
    std::fs::write(&token_file, "0123456789abcdef").unwrap();
    std::fs::set_permissions(&token_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let tcp = ApiTcp { address: "127.0.0.1:0".parse().unwrap(), token_file };
    let web = Web { listen: vec!["127.0.0.1:0".parse().unwrap()], certificate: None };
    let (socket, state_dir) = (directory.join("run/t.sock"), directory.to_owned());
    Config { socket, state_dir, tcp: Some(tcp), web, ..Config::default() }
}

pub(super) async fn start() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let listeners = Listeners::open(&config(directory.path())).await.unwrap();
    let (tcp, web) = (listeners.tcp_address().unwrap(), listeners.web_addresses()[0]);
    let doors = listeners.doors();
    let array = Arc::new(FakeArray::new(healthy()));
    let (stop, stopped) = watch::channel(false);
    let events = Arc::new(EventLog::new(KeptEvents::default()));
    let alerts = Arc::new(FakeAlerts);
    let server = tokio::spawn(serve(listeners, array.clone(), events.clone(), alerts, stopped));
    Fixture { directory, array, stop, events, server, tcp, web, doors }
}

impl Fixture {
    pub(super) fn socket(&self) -> std::path::PathBuf {
        self.directory.path().join("run/t.sock")
    }

    /// What comes back for raw bytes: head and body.
    pub(super) async fn raw(&self, request: &str) -> String {
        let mut stream = UnixStream::connect(self.socket()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A server that answers before it has read everything may reset the connection behind its answer.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    pub(super) async fn request(&self, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        let answer = self.raw(&(head + body)).await;
        let status = answer[9..12].parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or_else(|_| panic!("not JSON: {answer}")))
    }
}

#[tokio::test]
async fn every_described_resource_is_there() {
    let fixture = start().await;
    // a stream of them ends
    fixture.events.end();
    let description: serde_json::Value = serde_json::from_str(&openapi_json()).unwrap();
    let mut count = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        let path = path
            .replace("{name}", "x")
            .replace("{host}", "x")
            .replace("{volume}", "x")
            .replace("{number}", "7");
        for method in methods.as_object().unwrap().keys() {
            let request =
                format!("{} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", method.to_uppercase());
            let answer = fixture.raw(&request).await;
            let known = !answer.contains("there is no resource") && !answer.contains("cannot be used on");
            assert!(known, "{method} {path}: {answer}");
            count += 1;
        }
    }
    assert_eq!(count, 81);
}

#[tokio::test]
async fn alerts_are_listed_and_tried() {
    let fixture = start().await;
    let (code, list) = fixture.request("GET", "/v1/alerts", "").await;
    assert_eq!((code, &list["channels"][0]["name"]), (200, &"mail".into()));
    assert_eq!(list["channels"][0]["told"][0]["code"], "health-unwatched");
    let (code, tested) = fixture.request("POST", "/v1/alerts/test", "{}").await;
    assert_eq!((code, &tested["results"][0]["delivered"]), (200, &false.into()));
    let (code, refusal) = fixture.request("POST", "/v1/alerts/test", r#"{"channel":"pager"}"#).await;
    assert_eq!((code, refusal["code"].as_str()), (404, Some("not_found")));
    let (code, _) = fixture.request("POST", "/v1/alerts/test", r#"{"chanel":"mail"}"#).await;
    assert_eq!(code, 400);
}

#[tokio::test]
async fn status_and_lists() {
    let fixture = start().await;
    for (most, told) in [(0, false), (1, false), (1000, true)] {
        let (_, status) = fixture.request("GET", &format!("/v1/status?snapshots={most}"), "").await;
        assert_eq!(status["snapshots"].is_array(), told, "{most}: {status}");
    }
    let (code, status) = fixture.request("GET", "/v1/status", "").await;
    assert!(status["snapshots"].is_null());
    assert_eq!(
        (code, &status["schema"], &status["summary"]["health"]),
        (200, &crate::rest::SCHEMA.into(), &"healthy".into())
    );
    assert_eq!(status["summary"]["survives_next_failure"], true);
    for (path, key, length) in [
        ("/v1/drives", "drives", 5),
        ("/v1/pools", "pools", 1),
        ("/v1/volumes", "volumes", 2),
        ("/v1/hosts", "hosts", 2),
        ("/v1/mappings", "mappings", 1),
        ("/v1/snapshots", "snapshots", 2),
        ("/v1/bin", "bin", 1),
        ("/v1/schedules", "schedules", 1),
        ("/v1/snapshots?volume=old-lun", "snapshots", 0),
    ] {
        let (code, list) = fixture.request("GET", path, "").await;
        assert_eq!((code, list[key].as_array().unwrap().len()), (200, length), "{path}");
    }
}

#[tokio::test]
async fn changes_reach_the_array_as_they_were_asked() {
    let fixture = start().await;
    let body = r#"{"name":"v","backing":{"pool":"fast"},"size_bytes":4096}"#;
    let (code, changed) = fixture.request("POST", "/v1/volumes?dry_run=true", body).await;
    assert_eq!((code, &changed["dry_run"]), (200, &true.into()));
    fixture
        .request(
            "POST",
            "/v1/volumes",
            r#"{"name":"m","backing":"memory","size_bytes":4096,"block_bytes":4096}"#,
        )
        .await;
    let (code, _) =
        fixture.request("PATCH", "/v1/volumes/vm-01?dry_run=true", r#"{"size_bytes":8192}"#).await;
    assert_eq!(code, 200);
    let standby = r#"{"group":2,"state":"standby"}"#;
    let (code, _) = fixture.request("POST", "/v1/volumes/vm-01/access", standby).await;
    assert_eq!(code, 200);
    let (code, _) = fixture.request("DELETE", "/v1/volumes/vm-01?unmap=true", "").await;
    assert_eq!(code, 200);
    fixture.request("DELETE", "/v1/mappings/pve%31/vm-01", "").await;
    let asked = std::mem::take(&mut *fixture.array.asked.lock().unwrap());
    let volume = |name: &str, backing, block_bytes| NewVolume {
        name: name.to_owned(),
        backing,
        size_bytes: Some(4096),
        block_bytes,
        write_back: false,
    };
    let expected = [
        Command::VolumeCreate { volume: volume("v", NewBacking::Pool("fast".into()), 512), dry_run: true },
        Command::VolumeCreate { volume: volume("m", NewBacking::Memory, 4096), dry_run: false },
        Command::VolumeResize { name: "vm-01".into(), size_bytes: 8192, force: false, dry_run: true },
        Command::VolumeAccess {
            name: "vm-01".into(),
            access: GroupAccess { group: 2, state: AccessState::Standby },
            dry_run: false,
        },
        Command::VolumeDelete { name: "vm-01".into(), unmap: true, eradicate: false, dry_run: false },
        Command::Unmap { volume: "vm-01".into(), host: "pve1".into(), dry_run: false },
    ];
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn orders_of_snapshots_reach_the_array_as_they_were_asked() {
    let fixture = start().await;
    let both = r#"{"snapshots":[{"volume":"vm-01","name":"now"},{"volume":"log","name":"then"}]}"#;
    for (method, path, body) in [
        ("POST", "/v1/snapshots?dry_run=true", both),
        ("DELETE", "/v1/snapshots/vm-01/now", ""),
        ("POST", "/v1/snapshots/vm-01/now/rollback", ""),
        ("POST", "/v1/snapshots/vm-01/now/clone", r#"{"name":"copy"}"#),
        ("POST", "/v1/snapshots/vm-01/now/refresh", r#"{"clones_of":"vm-01@then","remap":true}"#),
        ("POST", "/v1/volumes/vm-01/copy", r#"{"name":"whole"}"#),
        ("POST", "/v1/volumes/vm-01/promote?dry_run=true", ""),
        ("POST", "/v1/bin/vm-01/undelete", ""),
        ("DELETE", "/v1/bin/vm-01", ""),
        ("POST", "/v1/schedules", r#"{"name":"s","volumes":["a"],"keep":{"daily":7}}"#),
        ("DELETE", "/v1/schedules/s?dry_run=true", ""),
        ("GET", "/v1/snapshots?volume=vm-01", ""),
        ("GET", "/v1/snapshots", ""),
    ] {
        let (code, answer) = fixture.request(method, path, body).await;
        assert_eq!(
            (code, &answer["schema"]),
            (200, &crate::rest::SCHEMA.into()),
            "{method} {path}: {answer}"
        );
    }
    let asked = std::mem::take(&mut *fixture.array.asked.lock().unwrap());
    let copy = |order, dry_run| Command::Copy { order, dry_run };
    let snapshots = vec![("vm-01".into(), "now".into()), ("log".into(), "then".into())];
    let (volume, snapshot) = ("vm-01".to_owned(), "now".to_owned());
    let expected = [
        copy(CopyOrder::Snapshot { snapshots }, true),
        copy(CopyOrder::DeleteSnapshot { volume: volume.clone(), snapshot: snapshot.clone() }, false),
        copy(CopyOrder::RollBack { volume: volume.clone(), snapshot: snapshot.clone() }, false),
        copy(
            CopyOrder::Clone { volume: volume.clone(), snapshot: snapshot.clone(), name: "copy".into() },
            false,
        ),
        copy(CopyOrder::Refresh { volume, snapshot, clones_of: "vm-01@then".into(), remap: true }, false),
        copy(CopyOrder::CopyVolume { volume: "vm-01".into(), name: "whole".into() }, false),
        copy(CopyOrder::Promote { volume: "vm-01".into() }, true),
        copy(CopyOrder::Undelete { volume: "vm-01".into() }, false),
        copy(CopyOrder::Eradicate { volume: "vm-01".into() }, false),
        Command::Schedule {
            order: ScheduleOrder::Create {
                name: "s".into(),
                volumes: vec!["a".into()],
                keep: Keep { daily: 7, ..Keep::default() },
            },
            dry_run: false,
        },
        Command::Schedule { order: ScheduleOrder::Delete { name: "s".into() }, dry_run: true },
        Command::SnapshotList { volume: Some("vm-01".into()) },
        Command::SnapshotList { volume: None },
    ];
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn refusals_are_json_with_the_right_status() {
    let fixture = start().await;
    let too_large = "x".repeat(base::limits::API_BODY_BYTES_MAX + 1);
    let table = [
        ("GET", "/v1/nothing", "", 404, "not_found"),
        ("GET", "/", "", 404, "not_found"),
        ("PUT", "/v1/status", "", 405, "method_not_allowed"),
        ("DELETE", "/v1/volumes", "", 405, "method_not_allowed"),
        ("DELETE", "/v1/volumes/vm-01/data", "", 405, "method_not_allowed"),
        ("PUT", "/v1/snapshots/vm-01/mon/data", "", 405, "method_not_allowed"),
        ("POST", "/v1/volumes", "", 400, "invalid"),
        ("POST", "/v1/volumes", "{", 400, "invalid"),
        ("POST", "/v1/volumes", r#"{"name":"a"}"#, 400, "invalid"),
        ("POST", "/v1/volumes", r#"{"name":"a","backing":"null","size":1}"#, 400, "invalid"),
        ("POST", "/v1/volumes", &too_large, 413, "too_large"),
        ("POST", "/v1/volumes?dry-run=1", r#"{"name":"a","backing":"null"}"#, 400, "invalid"),
        ("POST", "/v1/volumes", r#"{"name":"vm-01","backing":"null"}"#, 409, "already_exists"),
        ("DELETE", "/v1/volumes/vm-01", "", 409, "in_use"),
        ("DELETE", "/v1/volumes/nope", "", 404, "not_found"),
        ("DELETE", "/v1/volumes/%FF", "", 400, "invalid"),
        ("POST", "/v1/snapshots", r#"{"snapshots":[{"volume":"vm-01"}]}"#, 400, "invalid"),
        ("GET", "/v1/snapshots?vol=vm-01", "", 400, "invalid"),
    ];
    for (method, path, body, status, code) in table {
        let (found, error) = fixture.request(method, path, body).await;
        assert_eq!((found, &error["code"]), (status, &code.into()), "{method} {path}: {error}");
        assert!(
            error["message"].as_str().is_some_and(|m| !m.is_empty()) && error["hint"].is_string(),
            "{error}"
        );
    }
    assert!(fixture.raw("no HTTP at all\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
}

#[tokio::test]
async fn a_secret_in_a_bad_request_is_not_repeated() {
    let fixture = start().await;
    let body = r#"{"name":"h","initiators":[],"chap":"open-sesame-123"}"#;
    let (_, error) = fixture.request("POST", "/v1/hosts", body).await;
    assert!(!error.to_string().contains("sesame"), "{error}");
    assert_eq!(error["code"], "invalid");
}

#[tokio::test]
async fn tcp_asks_for_the_token() {
    let fixture = start().await;
    let ask = async |header: &str| {
        let mut stream = TcpStream::connect(fixture.tcp).await.unwrap();
        let request = format!("GET /v1/status HTTP/1.1\r\nHost: t\r\n{header}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    for wrong in
        ["", "Authorization: Bearer wrong\r\n", "Authorization: 0123456789abcdef\r\n", "Authorization: B\r\n"]
    {
        let answer = ask(wrong).await;
        assert!(
            answer.starts_with("HTTP/1.1 401 ") && answer.contains("www-authenticate: Bearer"),
            "{answer}"
        );
        assert!(!answer.contains("iqn."), "the status was told to a stranger");
    }
    assert!(ask("Authorization: bearer 0123456789abcdef\r\n").await.starts_with("HTTP/1.1 200 "));

    let token_file = fixture.directory.path().join("token");
    let server = Server::Tcp { authority: fixture.tcp.to_string(), token_file };
    assert_eq!(server.get::<Status>("/v1/status").await.unwrap().array, healthy());
}

#[tokio::test]
async fn a_second_daemon_is_refused_and_a_dead_ones_socket_taken_over() {
    let fixture = start().await;
    let config = config(fixture.directory.path());
    let refused = Listeners::open(&config).await.err().expect("refused").to_string();
    assert!(refused.contains("another tangelo serves this socket"), "{refused}");
    let mode = std::fs::metadata(fixture.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);

    fixture.stop.send(true).unwrap();
    fixture.server.await.unwrap();
    assert!(!config.socket.exists(), "an orderly stop takes the socket along");
    let error = Server::Socket(config.socket.clone()).get::<Status>("/v1/status").await.unwrap_err();
    assert!(
        matches!(error, ClientError::Unreachable { .. }) && error.hint().contains("tangelo serve"),
        "{error}"
    );

    drop(std::os::unix::net::UnixListener::bind(&config.socket).unwrap());
    assert!(config.socket.exists(), "left behind by a daemon that died");
    drop(Listeners::open(&config).await.unwrap());
    std::fs::write(&config.socket, "not a socket").unwrap();
    let refused = Listeners::open(&config).await.err().expect("refused").to_string();
    assert!(refused.contains("not a socket"), "{refused}");
}
