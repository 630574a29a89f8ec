//! The content of volumes over a real socket, from and into a fake array.

use std::sync::atomic::Ordering;

use api::{Command, CommandErrorKind, TransferOrder, VolumeStep};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::tests::{Fixture, start};
use crate::client::{ClientError, Server, Upload};
use crate::fake::{IMAGE_BYTES, IMAGE_EXTENTS, image};
use crate::rest::Changed;
use crate::transfer::records::{Piece, end, head};

/// Head and body of an answer.
async fn raw(fixture: &Fixture, request: &[u8]) -> (String, Vec<u8>) {
    let mut stream = UnixStream::connect(fixture.socket()).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let split = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
    let body = answer.split_off(split);
    (String::from_utf8(answer).unwrap().to_lowercase(), body)
}

async fn get(fixture: &Fixture, path: &str, headers: &str) -> (String, Vec<u8>) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{headers}\r\n");
    raw(fixture, request.as_bytes()).await
}

async fn put(fixture: &Fixture, path: &str, headers: &str, body: &[u8]) -> (String, Vec<u8>) {
    let length = body.len();
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    raw(fixture, &[head.as_bytes(), body].concat()).await
}

fn volume(fixture: &Fixture) -> String {
    fixture.array.status.lock().unwrap().volumes[0].name.clone()
}

#[tokio::test]
async fn an_export_is_the_raw_image_and_its_ranges() {
    let fixture = start().await;
    let name = volume(&fixture);
    let (head, body) = get(&fixture, &format!("/v1/volumes/{name}/data"), "").await;
    assert!(head.starts_with("http/1.1 200") && body == image(), "{head}");
    assert!(head.contains(&format!("content-length: {IMAGE_BYTES}\r\n")) && !head.contains("accept-ranges"));
    let path = format!("/v1/snapshots/{name}/mon/data");
    let (head, body) = get(&fixture, &path, "").await;
    assert!(body == image() && head.contains("accept-ranges: bytes\r\n"), "{head}");
    assert!(head.contains("etag: \"5eed-7\"\r\n") && head.contains("content-type: application/octet-stream"));
    for (first, last) in
        [(0, 0), (5000, 12_345), (4095, 4096), (1_500_000, 5_250_000), (5_245_000, 8_388_607)]
    {
        let (head, body) = get(&fixture, &path, &format!("Range: bytes={first}-{last}\r\n")).await;
        assert!(head.starts_with("http/1.1 206"), "{head}");
        assert!(head.contains(&format!("content-range: bytes {first}-{last}/{IMAGE_BYTES}\r\n")), "{head}");
        assert!(body == image()[first..=last], "{first}-{last}");
    }
    let (head, body) = get(&fixture, &path, "Range: bytes=9-\r\nIf-Range: \"5eed-7\"\r\n").await;
    assert!(head.starts_with("http/1.1 206") && body == image()[9..]);
    let (head, body) = get(&fixture, &path, "Range: bytes=9-\r\nIf-Range: \"other\"\r\n").await;
    assert!(head.starts_with("http/1.1 200") && body == image());
    let (head, _) = get(&fixture, &path, &format!("Range: bytes={IMAGE_BYTES}-\r\n")).await;
    assert!(
        head.starts_with("http/1.1 416") && head.contains(&format!("content-range: bytes */{IMAGE_BYTES}"))
    );
    // a volume has another content each time
    let (head, body) = get(&fixture, &format!("/v1/volumes/{name}/data"), "Range: bytes=9-\r\n").await;
    assert!(head.starts_with("http/1.1 200") && body == image());
    let (head, _) = get(&fixture, "/v1/volumes/none/data", "").await;
    assert!(head.starts_with("http/1.1 404"), "{head}");
}

#[tokio::test]
async fn a_client_gets_no_holes_and_notices_what_breaks_off() {
    let fixture = start().await;
    let (server, name) = (Server::Socket(fixture.socket()), volume(&fixture));
    for from in [0, 8192, IMAGE_EXTENTS[1].start, IMAGE_BYTES] {
        let path = format!("/v1/snapshots/{name}/mon/data?from_bytes={from}");
        let mut download = server.download(&path).await.unwrap();
        assert_eq!((download.size_bytes, download.content.as_str()), (IMAGE_BYTES, "5eed-7"));
        let (mut found, mut moved) = (vec![0; IMAGE_BYTES as usize], 0);
        while let Some(piece) = download.next().await.unwrap() {
            match piece {
                Piece::Data { offset_bytes, data } => {
                    moved += data.len() as u64;
                    found[offset_bytes as usize..][..data.len()].copy_from_slice(&data);
                }
                Piece::End { size_bytes } => assert_eq!(size_bytes, IMAGE_BYTES),
            }
        }
        assert!(found[from as usize..] == image()[from as usize..], "from {from}");
        let there: u64 =
            IMAGE_EXTENTS.iter().map(|range| range.end.saturating_sub(range.start.max(from))).sum();
        assert_eq!(moved, there);
    }
    *fixture.array.unreadable_from.lock().unwrap() = IMAGE_EXTENTS[1].start;
    let mut download = server.download(&format!("/v1/volumes/{name}/data")).await.unwrap();
    let broken = loop {
        match download.next().await {
            Ok(piece) => assert!(piece.is_some(), "it has no end"),
            Err(error) => break error,
        }
    };
    assert!(matches!(broken, ClientError::Broken { .. }), "{broken:?}");
    let (head, body) = get(&fixture, &format!("/v1/volumes/{name}/data"), "").await;
    assert!(head.contains(&format!("content-length: {IMAGE_BYTES}")) && (body.len() as u64) < IMAGE_BYTES);
}

fn written(fixture: &Fixture) -> Vec<u8> {
    let mut image = vec![0; IMAGE_BYTES as usize];
    for (offset, data) in std::mem::take(&mut *fixture.array.written.lock().unwrap()) {
        assert!(!data.chunks(4096).any(|block| block.iter().all(|&byte| byte == 0)), "zeros are written");
        image[offset as usize..][..data.len()].copy_from_slice(&data);
    }
    image
}

fn is_complete(fixture: &Fixture) -> bool {
    let mut asked = fixture.array.asked.lock().unwrap();
    std::mem::take(&mut *asked).iter().any(|command| matches!(command, Command::TransferComplete { .. }))
}

#[tokio::test]
async fn an_import_is_complete_only_if_all_of_it_came() {
    let fixture = start().await;
    let path = format!("/v1/volumes/{}/data", volume(&fixture));
    let (head_, body) = put(&fixture, &path, "", &image()).await;
    assert!(head_.starts_with("http/1.1 200"), "{head_} {}", String::from_utf8_lossy(&body));
    assert!(written(&fixture) == image() && is_complete(&fixture));
    // an image that ends inside a block
    let short = &image()[..5000];
    let (head_, _) = put(&fixture, &path, "Content-Type: application/octet-stream\r\n", short).await;
    assert!(head_.starts_with("http/1.1 200") && written(&fixture)[..8192] == [short, &[0; 3192]].concat());
    assert!(is_complete(&fixture));

    let records = "Content-Type: application/vnd.tangelo.extents\r\n";
    let whole =
        [&head(8192, 4096)[..], &[7; 4096], &head(IMAGE_BYTES - 4096, 4096), &[8; 4096], &end(IMAGE_BYTES)];
    let (head_, _) = put(&fixture, &path, records, &whole.concat()).await;
    let found = written(&fixture);
    assert!(head_.starts_with("http/1.1 200") && found[8192..12_288] == [7; 4096] && is_complete(&fixture));
    assert!(found[..8192].iter().all(|&byte| byte == 0) && found[IMAGE_BYTES as usize - 4096..] == [8; 4096]);

    let cases: [(&str, Vec<u8>, &str); 6] = [
        (records, whole[..4].concat(), "no end"),
        (records, [&whole.concat()[..], b"x"].concat(), "not in order"),
        (records, [&head(IMAGE_BYTES, 4096)[..], &[7; 4096]].concat(), "more to import"),
        ("", [image(), vec![1]].concat(), "more to import"),
        ("Content-Type: application/json\r\n", b"{}".to_vec(), "application/octet-stream"),
        ("Content-Type: multipart/form-data\r\n", b"".to_vec(), "application/octet-stream"),
    ];
    for (headers, body, message) in cases {
        let (head_, body) = put(&fixture, &path, headers, &body).await;
        let body = String::from_utf8_lossy(&body).into_owned();
        assert!(head_.starts_with("http/1.1 400") && body.contains(message), "{head_} {body}");
        assert!(!is_complete(&fixture), "{message}");
    }
    let torn =
        format!("PUT {path} HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n{}", "x".repeat(9000));
    let mut stream = UnixStream::connect(fixture.socket()).await.unwrap();
    stream.write_all(torn.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
    assert!(!is_complete(&fixture));
    let (_, body) = put(&fixture, &format!("{path}?dry_run=true&overwrite=true"), "", b"").await;
    assert!(String::from_utf8_lossy(&body).contains("fill volume"));
    let asked = std::mem::take(&mut *fixture.array.asked.lock().unwrap());
    let is_meant = |command: &Command| {
        let Command::TransferBegin { order, dry_run, .. } = command else { return false };
        *dry_run && matches!(order, TransferOrder::Import { overwrite: true, .. })
    };
    assert!(asked.iter().any(is_meant), "{asked:?}");
    assert!(!fixture.array.silent.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_client_sends_without_holes() {
    let fixture = start().await;
    let server = Server::Socket(fixture.socket());
    let path = format!("/v1/volumes/{}/data", volume(&fixture));
    let (outgoing, upload) = Upload::new();
    let sending = tokio::spawn(async move {
        for piece in [head(4096, 4096), Bytes::from(vec![9; 4096]), end(IMAGE_BYTES)] {
            assert!(outgoing.send(piece).await);
        }
    });
    let changed: Changed = server.upload(&path, upload).await.unwrap();
    sending.await.unwrap();
    let imported = VolumeStep::ImportVolume { volume: volume(&fixture) };
    assert_eq!(changed.steps, [imported.into()]);
    assert!(written(&fixture)[4096..8192] == [9; 4096]);
}

/// A client that is refused at the beginning, or in the middle, is told why although it goes on sending.
#[tokio::test]
async fn a_refused_client_is_told_why() {
    let fixture = start().await;
    let (server, name) = (Server::Socket(fixture.socket()), volume(&fixture));
    for (name, from, kind) in [
        ("none", 0, CommandErrorKind::NotFound),
        (name.as_str(), IMAGE_BYTES - (1 << 20), CommandErrorKind::Invalid),
    ] {
        let (outgoing, upload) = Upload::new();
        let sending = tokio::spawn(async move {
            for piece in 0..64 {
                let data = Bytes::from(vec![9; 1 << 20]);
                if !outgoing.send(head(from + (piece << 20), 1 << 20)).await || !outgoing.send(data).await {
                    return;
                }
            }
        });
        let refused = server.upload::<Changed>(&format!("/v1/volumes/{name}/data"), upload).await;
        assert!(matches!(&refused, Err(ClientError::Refused(error)) if error.kind == kind), "{refused:?}");
        sending.await.unwrap();
    }
}
