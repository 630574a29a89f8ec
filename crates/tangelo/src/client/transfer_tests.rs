//! Exports and imports by the command line, against a real server with a fake array.

use std::os::unix::fs::MetadataExt;

use control::fake::{IMAGE_BYTES, healthy, image};

use super::tests::{Fixture, start};

/// In the directory of the test.
fn file(fixture: &Fixture, name: &str) -> std::path::PathBuf {
    fixture.directory.path().join(name)
}

fn run(fixture: &Fixture, line: &str) -> String {
    let directory = fixture.directory.path().to_str().unwrap();
    fixture.run(&line.replace("DIRECTORY", directory))
}

#[test]
fn an_export_is_a_file_with_holes_when_it_is_whole() {
    let fixture = start(healthy());
    let out = run(&fixture, "volume export vm-01 DIRECTORY/live.img");
    assert_eq!(out, "exit code 0\nexported vm-01 to DIRECTORY/live.img: 8 MiB, 1.5 MiB moved\n");
    let live = file(&fixture, "live.img");
    assert!(std::fs::read(&live).unwrap() == image());
    assert!(std::fs::metadata(&live).unwrap().blocks() * 512 < IMAGE_BYTES / 2, "it has no holes");
    let out = run(&fixture, "volume export vm-01 DIRECTORY/live.img");
    assert!(out.starts_with("exit code 2\nerror: DIRECTORY/live.img exists: --force replaces it"), "{out}");
    let out = run(&fixture, "volume export vm-01 DIRECTORY/live.img --force");
    assert!(out.starts_with("exit code 0"), "{out}");
    // a pipe, a device: no holes, no other name
    let out = run(&fixture, "-o json volume export vm-01 /dev/null");
    assert!(out.contains("\"data_bytes\": 1581056"), "{out}");
    let out = run(&fixture, "-o json volume export vm-01 -");
    assert!(out.contains("exclude each other"), "{out}");
}

#[test]
fn an_export_of_a_snapshot_goes_on_where_it_broke_off() {
    let fixture = start(healthy());
    let part = file(&fixture, "then.img.5eed-7.part");
    *fixture.array.unreadable_from.lock().unwrap() = 1 << 20;
    let out = run(&fixture, "volume export vm-01@monday DIRECTORY/then.img");
    assert!(out.starts_with("exit code 2\nerror: the connection to DIRECTORY/t.sock broke off"), "{out}");
    // how much of it came is up to the sockets
    assert!(!file(&fixture, "then.img").exists() && image().starts_with(&std::fs::read(&part).unwrap()));
    std::fs::write(&part, &image()[..1 << 20]).unwrap();
    // a volume is another one the next time
    let out = run(&fixture, "volume export vm-01 DIRECTORY/live.img");
    assert!(out.starts_with("exit code 2") && !file(&fixture, "live.img.5eed-7.part").exists(), "{out}");
    *fixture.array.unreadable_from.lock().unwrap() = u64::MAX;
    let out = run(&fixture, "volume export vm-01@monday DIRECTORY/then.img");
    assert_eq!(out, "exit code 0\nexported vm-01@monday to DIRECTORY/then.img: 8 MiB, 520 KiB moved\n");
    assert!(std::fs::read(file(&fixture, "then.img")).unwrap() == image() && !part.exists());
}

#[test]
fn an_import_sends_no_zeros() {
    let fixture = start(healthy());
    let from = file(&fixture, "from.img");
    std::fs::write(&from, &image()[..5_250_000]).unwrap();
    let out = run(&fixture, "volume import DIRECTORY/from.img vm-01");
    assert_eq!(out, "exit code 0\nimport volume vm-01\n");
    let mut found = vec![0; IMAGE_BYTES as usize];
    for (offset, data) in &*fixture.array.written.lock().unwrap() {
        found[*offset as usize..][..data.len()].copy_from_slice(data);
    }
    assert!(found[..5_250_000] == image()[..5_250_000] && found[5_250_000..].iter().all(|&byte| byte == 0));
    let out = run(&fixture, "volume import DIRECTORY/from.img vm-01 --dry-run");
    assert_eq!(out, "exit code 0\nThis would be done:\n  fill volume vm-01\nNothing was changed.\n");
    let out = run(&fixture, "volume import DIRECTORY/from.img vm-01 --overwrite");
    assert!(out.starts_with("exit code 2\nerror: there is no undo for this"), "{out}");
    let out = run(&fixture, "volume import DIRECTORY/none.img vm-01");
    assert!(out.starts_with("exit code 2\nerror: DIRECTORY/none.img: No such file"), "{out}");
    let out = run(&fixture, "volume import DIRECTORY/from.img none");
    assert!(out.starts_with("exit code 1\nerror: there is no volume called \"none\""), "{out}");
}
