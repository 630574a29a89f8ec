//! Exports and imports of whole volumes, as the control plane asks for them.

mod common;

use std::sync::{Arc, Mutex};

use api::{
    Bulk, BulkError, BulkOutput, BulkRequest, BulkResult, Command, CommandErrorKind, CopyOrder, LeaseHolder,
    Reply, TransferGrant, TransferOrder, VolumeStep,
};
use base::Nanos;
use bytes::Bytes;
use common::Lab;
use common::host::Host;

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const MIB: u64 = 1 << 20;
const SIZE: u64 = 64 * MIB;

/// A transfer that somebody wants.
struct Moving {
    grant: TransferGrant,
    holder: LeaseHolder,
}

fn array(seed: u64, shards: u16) -> (Lab, Host) {
    let mut lab = Lab::with_pool(seed, shards);
    lab.create_pool_volume("disk", false);
    lab.create_host("alpha", ALPHA);
    lab.map("disk", "alpha", 0, false);
    let host = Host::log_in(&mut lab, 0, ALPHA, 1);
    host.settle(&mut lab, 0);
    (lab, host)
}

fn begin(lab: &mut Lab, order: TransferOrder) -> Result<Moving, CommandErrorKind> {
    let holder = LeaseHolder::new();
    match lab.command(Command::TransferBegin { order, lease: holder.lease(), dry_run: false }) {
        Ok(Reply::TransferBegan(grant)) => Ok(Moving { grant, holder }),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.kind),
    }
}

fn export(volume: &str, snapshot: Option<&str>) -> TransferOrder {
    TransferOrder::Export { volume: volume.to_owned(), snapshot: snapshot.map(str::to_owned) }
}

fn import(volume: &str, length_bytes: Option<u64>, overwrite: bool) -> TransferOrder {
    TransferOrder::Import { volume: volume.to_owned(), length_bytes, overwrite }
}

fn ask(lab: &mut Lab, moving: &Moving, request: BulkRequest) -> BulkResult {
    let place: Arc<Mutex<Option<BulkResult>>> = Arc::default();
    let answer = place.clone();
    let reply = Box::new(move |result| *answer.lock().unwrap() = Some(result));
    let bulk = Bulk { transfer: moving.grant.transfer, request, caller: moving.holder.lease() };
    lab.send_bulk(moving.grant.shard, bulk, reply);
    let check = place.clone();
    lab.simulation.step_until(Default::default(), || check.lock().unwrap().is_some()).unwrap();
    place.lock().unwrap().take().unwrap()
}

fn read(lab: &mut Lab, moving: &Moving, offset_bytes: u64, length_bytes: usize) -> Vec<u8> {
    match ask(lab, moving, BulkRequest::Read { offset_bytes, length_bytes }) {
        Ok(BulkOutput::Data(pieces)) => pieces.concat(),
        other => panic!("{other:?}"),
    }
}

fn extents(lab: &mut Lab, moving: &Moving) -> Vec<std::ops::Range<u64>> {
    let (mut all, mut from_bytes) = (Vec::new(), 0);
    while from_bytes < moving.grant.size_bytes {
        let Ok(BulkOutput::Extents(found)) = ask(lab, moving, BulkRequest::Extents { from_bytes }) else {
            panic!("no extents from {from_bytes}")
        };
        all.extend(found.ranges);
        from_bytes = found.until_bytes;
    }
    all
}

fn write(lab: &mut Lab, moving: &Moving, offset_bytes: u64, data: &[u8]) -> BulkResult {
    let credit = match ask(lab, moving, BulkRequest::Credit { length_bytes: data.len() })? {
        BulkOutput::Credit(credit) => credit,
        other => panic!("{other:?}"),
    };
    let data = vec![Bytes::copy_from_slice(data)];
    ask(lab, moving, BulkRequest::Write { offset_bytes, data, credit })
}

fn complete(lab: &mut Lab, moving: &Moving, volume: &str) -> Result<Reply, CommandErrorKind> {
    let (transfer, volume) = (moving.grant.transfer, volume.to_owned());
    lab.command(Command::TransferComplete { transfer, volume }).map_err(|error| error.kind)
}

fn copy(order: CopyOrder) -> Command {
    Command::Copy { order, dry_run: false }
}

#[test]
fn an_export_is_of_one_moment_and_an_import_is_whole() {
    for shards in [1, 3] {
        let (mut lab, host) = array(20, shards);
        host.write(&mut lab, 0, 0, &vec![1; MIB as usize]);
        host.write(&mut lab, 0, 20_480, &[2; 8192]);
        let out = begin(&mut lab, export("disk", None)).unwrap();
        assert!(!out.grant.can_resume && out.grant.size_bytes == SIZE);
        host.write(&mut lab, 0, 0, &[9; 4096]);
        host.write(&mut lab, 0, 40_960, &[9; 4096]);
        assert_eq!(extents(&mut lab, &out), [0..MIB, 10 * MIB..10 * MIB + 8192], "{shards} shards");
        assert!(read(&mut lab, &out, 0, MIB as usize) == vec![1; MIB as usize]);
        assert!(read(&mut lab, &out, 20 * MIB, 4096) == vec![0; 4096], "it was written later");
        // the layer that was frozen for it goes with it
        lab.pass(Nanos::from_secs(20));
        assert!(read(&mut lab, &out, 10 * MIB, 8192) == [2; 8192]);
        let kept = |lab: &mut Lab| lab.status().pools[0].references.kept_bytes;
        drop(out);
        lab.pass(Nanos::from_secs(30));
        assert_eq!(kept(&mut lab), 0);

        lab.create_pool_volume("other", false);
        let into = begin(&mut lab, import("other", Some(SIZE), false)).unwrap();
        write(&mut lab, &into, 3 * MIB, &[7; 8192]).unwrap();
        // nothing shows before it is complete
        let before = begin(&mut lab, export("other", None)).unwrap();
        assert_eq!(extents(&mut lab, &before), []);
        complete(&mut lab, &into, "other").unwrap();
        assert_eq!(write(&mut lab, &into, 0, &[7; 4096]).unwrap_err(), BulkError::Ended);
        lab.simulation.world.power_loss(0);
        host.kill(&mut lab);
        lab.restart();
        let after = begin(&mut lab, export("other", None)).unwrap();
        let found = extents(&mut lab, &after);
        assert!(found.len() == 1 && found[0] == (3 * MIB..3 * MIB + 8192), "{found:?}");
        assert!(read(&mut lab, &after, 3 * MIB, 8192) == [7; 8192]);
    }
}

#[test]
fn what_is_refused() {
    let (mut lab, host) = array(21, 2);
    lab.create_memory_volume("volatile", MIB);
    lab.create_pool_volume("other", false);
    host.write(&mut lab, 0, 0, &[1; 4096]);
    let cases = [
        (export("none", None), CommandErrorKind::NotFound),
        (export("disk", Some("none")), CommandErrorKind::NotFound),
        (export("volatile", None), CommandErrorKind::Invalid),
        (import("none", None, false), CommandErrorKind::NotFound),
        (import("volatile", None, false), CommandErrorKind::Invalid),
        (import("other", Some(SIZE + 1), false), CommandErrorKind::Invalid),
        (import("disk", None, true), CommandErrorKind::InUse),
    ];
    for (order, kind) in cases {
        assert_eq!(begin(&mut lab, order.clone()).err(), Some(kind), "{order:?}");
    }
    lab.unmap("disk", "alpha");
    assert_eq!(
        begin(&mut lab, import("disk", None, false)).err(),
        Some(CommandErrorKind::InUse),
        "it holds data"
    );
    let (order, lease) = (import("disk", None, true), LeaseHolder::new().lease());
    let would = lab.change(Command::TransferBegin { order, lease, dry_run: true });
    let fill = VolumeStep::FillVolume { volume: "disk".to_owned(), replaces: true };
    assert_eq!(would.steps, [fill.into()]);

    let into = begin(&mut lab, import("disk", None, true)).unwrap();
    let out = begin(&mut lab, export("disk", None)).unwrap();
    let block = 4096;
    for (offset_bytes, length_bytes) in
        [(SIZE, block), (0, 0), (512, block), (0, 512), (0, (MIB as usize) + block)]
    {
        let outside = ask(&mut lab, &out, BulkRequest::Read { offset_bytes, length_bytes });
        assert_eq!(outside.err(), Some(BulkError::OutOfRange), "{offset_bytes} {length_bytes}");
    }
    assert_eq!(write(&mut lab, &out, 0, &[1; 4096]).err(), Some(BulkError::WrongDirection));
    let back = ask(&mut lab, &into, BulkRequest::Read { offset_bytes: 0, length_bytes: block });
    assert_eq!(back.err(), Some(BulkError::WrongDirection));

    // mapped, resized or deleted meanwhile: it stays what it was
    write(&mut lab, &into, 0, &[5; 4096]).unwrap();
    lab.map("disk", "alpha", 0, false);
    assert_eq!(complete(&mut lab, &into, "disk").err(), Some(CommandErrorKind::InUse));
    host.settle(&mut lab, 0);
    assert!(host.read(&mut lab, 0, 0, 8) == [1; 4096]);
    let into = begin(&mut lab, import("other", None, false)).unwrap();
    let (name, size_bytes) = ("other".to_owned(), 2 * SIZE);
    lab.change(Command::VolumeResize { name, size_bytes, force: false, dry_run: false });
    assert_eq!(complete(&mut lab, &into, "other").err(), Some(CommandErrorKind::InUse));
    assert_eq!(complete(&mut lab, &into, "other").err(), Some(CommandErrorKind::Unavailable), "it has ended");
}

#[test]
fn transfers_end_with_their_snapshot_and_with_whoever_wants_them() {
    let (mut lab, host) = array(22, 2);
    host.write(&mut lab, 0, 0, &vec![1; 4 * MIB as usize]);
    lab.change(copy(CopyOrder::Snapshot { snapshots: vec![("disk".to_owned(), "mon".to_owned())] }));
    let out = begin(&mut lab, export("disk", Some("mon"))).unwrap();
    let again = begin(&mut lab, export("disk", Some("mon"))).unwrap();
    assert!(out.grant.can_resume && out.grant.content == again.grant.content);
    // data that is kept does not keep the snapshot from being deleted
    let kept =
        ask(&mut lab, &out, BulkRequest::Read { offset_bytes: 0, length_bytes: MIB as usize }).unwrap();
    let (volume, snapshot) = ("disk".to_owned(), "mon".to_owned());
    lab.change(copy(CopyOrder::DeleteSnapshot { volume, snapshot }));
    let ended = ask(&mut lab, &out, BulkRequest::Read { offset_bytes: 0, length_bytes: 4096 });
    assert_eq!(ended.err(), Some(BulkError::Ended));
    assert_eq!(lab.bulk_held_bytes(), MIB as usize);
    drop(kept);
    lab.pass(Nanos::from_millis(50));
    assert_eq!(lab.bulk_held_bytes(), 0);

    // an import that nobody wants any more gives its space back
    lab.create_pool_volume("other", false);
    lab.pass(Nanos::from_secs(10));
    let used = lab.status().pools[0].used_bytes;
    let into = begin(&mut lab, import("other", None, false)).unwrap();
    for piece in 0..4 {
        write(&mut lab, &into, piece * MIB, &vec![6; MIB as usize]).unwrap();
    }
    assert!(lab.status().pools[0].used_bytes >= used + 4 * MIB);
    let transfer = into.grant.transfer;
    drop(into);
    lab.pass(Nanos::from_secs(10));
    assert!(lab.status().pools[0].used_bytes < used + MIB);
    let late = Moving { grant: TransferGrant { transfer, ..out.grant.clone() }, holder: LeaseHolder::new() };
    assert_eq!(write(&mut lab, &late, 0, &[1; 4096]).err(), Some(BulkError::Ended));
}

/// A reader that drops nothing gets no more, hosts are served, and another reader is, too.
#[test]
fn a_slow_reader_holds_nobody_up() {
    let (mut lab, host) = array(23, 1);
    host.write(&mut lab, 0, 0, &vec![1; 4 * MIB as usize]);
    let (slow, quick) =
        (begin(&mut lab, export("disk", None)).unwrap(), begin(&mut lab, export("disk", None)).unwrap());
    let mut kept = Vec::new();
    for piece in 0..4 {
        let read = BulkRequest::Read { offset_bytes: piece * MIB, length_bytes: MIB as usize };
        kept.push(ask(&mut lab, &slow, read).unwrap());
    }
    let one_more = BulkRequest::Read { offset_bytes: 0, length_bytes: 4096 };
    assert_eq!(ask(&mut lab, &slow, one_more).err(), Some(BulkError::NoCredit));
    assert!(host.read(&mut lab, 0, 0, 8) == [1; 4096] && read(&mut lab, &quick, 0, 4096) == [1; 4096]);
    drop(kept);
    assert!(read(&mut lab, &slow, 0, 4096) == [1; 4096]);
    // a stop waits for nobody
    let kept = ask(&mut lab, &slow, BulkRequest::Read { offset_bytes: 0, length_bytes: 4096 }).unwrap();
    assert_eq!(lab.command(Command::Shutdown), Ok(Reply::Stopped));
    drop(kept);
}
