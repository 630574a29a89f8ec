//! Examples of each kind of step, with their words.

use env::IoError;
use reservation::AccessState;

use super::*;
use crate::{DeviceTrouble, DriveGivenUp, DriveTrouble, FenceOutcome, Role, Subject, VolumeBacking};

type Example = (ChangeStep, &'static str);

pub(super) fn examples() -> Vec<Example> {
    let all = [of_pools(), of_drives(), of_labels(), of_volumes(), of_the_bin(), of_snapshots()];
    let more = [of_hosts(), of_mappings(), of_the_array(), of_pairs(), of_the_end_of_a_pair(), of_fencing()];
    let more = more.into_iter().chain([of_access()]);
    all.into_iter().chain(more).flatten().collect()
}

fn words(text: &str) -> String {
    text.to_owned()
}

fn pool() -> String {
    words("fast")
}

fn drive() -> String {
    words("/dev/sdb")
}

fn volume() -> String {
    words("vm-01")
}

fn snapshot() -> String {
    words("monday")
}

fn host() -> String {
    words("pve1")
}

fn of_access() -> Vec<Example> {
    use AccessStep::*;
    let user = || words("alice");
    let (end_ms, token) = (Some(1_795_694_400_000), || words("backup"));
    vec![
        (
            AddUser { user: user(), role: Role::Operate, expires_ms: None }.into(),
            "add user alice, who may operate",
        ),
        (
            SetRole { user: user(), before: Role::Operate, after: Role::Look }.into(),
            "user alice may look, and no longer operate",
        ),
        (SetPassword { user: user() }.into(), "another password for user alice"),
        (SetUserEnd { user: user(), expires_ms: end_ms }.into(), "user alice ends at 2026-11-26 12:00Z"),
        (SetUserEnd { user: user(), expires_ms: None }.into(), "user alice has no end date"),
        (DisableUser { user: user() }.into(), "disable user alice"),
        (EnableUser { user: user() }.into(), "enable user alice"),
        (DeleteUser { user: user() }.into(), "delete user alice"),
        (EndSessions { user: user(), sessions: 2 }.into(), "end 2 sessions of user alice"),
        (
            LoseLastAdministrator {}.into(),
            "no user is left who may administer: only this machine's Unix socket and tokens can",
        ),
        (
            AddToken { token: token(), role: Role::Look, expires_ms: end_ms }.into(),
            "add token backup, which may look, until 2026-11-26 12:00Z",
        ),
        (RevokeToken { token: token() }.into(), "revoke token backup"),
    ]
}

fn of_pools() -> Vec<Example> {
    use PoolStep::*;
    let risk = |volumes: &[&str]| RiskPool {
        pool: pool(),
        drive: drive(),
        volumes: NameList::new(volumes.iter().copied(), 2),
    };
    let set = |setting: &str, value, is_default| SetPool {
        pool: pool(),
        setting: words(setting),
        value,
        is_default,
    };
    let slow = SetSlowDrives {
        pool: pool(),
        slow_factor: 16,
        slow_latency_ms: 2,
        slow_seconds: 60,
        is_default: true,
    };
    vec![
        (
            CreatePool { pool: pool(), protection: words("parity-1"), drives: 4 }.into(),
            "create pool fast, parity-1, on 4 drives",
        ),
        (DeletePool { pool: pool() }.into(), "delete pool fast"),
        (OpenPool { pool: pool() }.into(), "open pool fast"),
        (
            UpgradePool { pool: pool(), before_format: 5, after_format: 6 }.into(),
            "move pool fast from format 5 to format 6, which earlier versions of Tangelo cannot open",
        ),
        (EmptyBin { pool: pool(), volumes: 1 }.into(), "delete 1 volume in its bin for good"),
        (EmptyBin { pool: pool(), volumes: 2 }.into(), "delete 2 volumes in its bin for good"),
        (
            risk(&[]).into(),
            "pool fast, which is offline, loses /dev/sdb: what it holds is lost if it cannot do without it",
        ),
        (
            risk(&["a"]).into(),
            "pool fast, which is offline, loses /dev/sdb: volume a is lost if the pool cannot do without it",
        ),
        (
            risk(&["a", "b", "c"]).into(),
            "pool fast, which is offline, loses /dev/sdb: volumes a, b and 1 more are lost if the pool cannot do without it",
        ),
        (ScrubPool { pool: pool(), stop: false }.into(), "scrub pool fast"),
        (ScrubPool { pool: pool(), stop: true }.into(), "stop scrubbing pool fast"),
        (set("scrub_every_seconds", Some(604_800), false).into(), "scrub: every 7 d"),
        (set("scrub_every_seconds", None, true).into(), "scrub: by hand only"),
        (set("repair_share_percent", Some(50), true).into(), "repair share: 50 % (default)"),
        (set("of_another_version", Some(5), false).into(), "of_another_version: 5"),
        (set("of_another_version", None, false).into(), "of_another_version: off"),
        (
            slow.into(),
            "slow drives: emptied when 16 times slower than their siblings, at 2 ms or more, for 1 min (default)",
        ),
        (FreeSpace { bytes: 1 << 20, at_least: false }.into(), "1 MiB are given back"),
        (
            FreeSpace { bytes: 1 << 20, at_least: true }.into(),
            "at least 1 MiB are given back; what only its copies by reference have kept comes back some seconds later",
        ),
    ]
}

fn of_drives() -> Vec<Example> {
    use DriveStep::*;
    let did = DriveGivenUp {
        pool: pool(),
        trouble: DriveTrouble::Missing,
        model: String::new(),
        serial: String::new(),
        bay: String::new(),
        given_up_ms: 1_795_694_400_000,
        spare: None,
    };
    let switch = words("/sys/locate");
    vec![
        (
            AddDrive { drive: drive(), pool: pool(), size_bytes: 1 << 40 }.into(),
            "add /dev/sdb to pool fast, erasing what is on it, 1 TiB",
        ),
        (EmptyDrive { drive: drive(), pool: pool() }.into(), "empty /dev/sdb, then take it out of pool fast"),
        (KeepDrive { drive: drive(), pool: pool() }.into(), "keep /dev/sdb in pool fast"),
        (
            RebuildDrive { drive: drive() }.into(),
            "/dev/sdb is out: what stood on it is rebuilt on the others",
        ),
        (
            BlinkDrive { drive: drive(), seconds: 30 }.into(),
            "/dev/sdb is read for half of every second, 30 s long: its activity light blinks",
        ),
        (
            LightBay { drive: drive(), seconds: 30, switch }.into(),
            "the light of /dev/sdb's bay is on for 30 s (/sys/locate)",
        ),
        (
            ClearDrive { drive: drive(), did }.into(),
            "drive /dev/sdb: it was not there any more, 2026-11-26 12:00Z: pool fast goes on without it",
        ),
        (
            SetSpare { drive: drive(), pool: pool(), release: false }.into(),
            "/dev/sdb is a spare of pool fast: it joins when a drive is lost",
        ),
        (
            SetSpare { drive: drive(), pool: pool(), release: true }.into(),
            "/dev/sdb is no spare of pool fast any more",
        ),
    ]
}

fn of_labels() -> Vec<Example> {
    use DriveStep::*;
    let erase = |holds| ChangeStep::from(EraseDrive { drive: drive(), size_bytes: 1 << 40, holds });
    let holds = |holds| erase(Some(holds));
    let offline = |volumes: &[&str]| DriveHolds::OfflineMember {
        pool: pool(),
        volumes: NameList::new(volumes.iter().copied(), 2),
    };
    let member = |array| DriveHolds::Member { pool: pool(), array };
    vec![
        (erase(None), "erase /dev/sdb, 1 TiB"),
        (holds(DriveHolds::Nothing), "erase /dev/sdb, 1 TiB, which holds nothing"),
        (
            holds(DriveHolds::Foreign { what: words("an ext4 file system") }),
            "erase /dev/sdb, 1 TiB, which holds an ext4 file system",
        ),
        (holds(member(None)), "erase /dev/sdb, 1 TiB, which holds a drive of pool fast"),
        (
            holds(member(Some(words("5eed")))),
            "erase /dev/sdb, 1 TiB, which holds a drive of pool fast (array 5eed)",
        ),
        (holds(offline(&[])), "erase /dev/sdb, 1 TiB, which holds a drive of pool fast, which is offline"),
        (
            holds(offline(&["a", "b"])),
            "erase /dev/sdb, 1 TiB, which holds a drive of pool fast, which is offline and has volumes a, b",
        ),
        (
            holds(DriveHolds::OtherVersion),
            "erase /dev/sdb, 1 TiB, which holds a drive of a pool of another version of Tangelo",
        ),
        (
            holds(DriveHolds::Damaged),
            "erase /dev/sdb, 1 TiB, which holds a drive of a Tangelo pool whose label is damaged",
        ),
        (
            holds(DriveHolds::Unreadable { error: IoError::Media }),
            "erase /dev/sdb, 1 TiB, which holds something that cannot be read (media error)",
        ),
        (EraseLabel { drive: drive() }.into(), "erase the label of /dev/sdb"),
        (
            LeaveLabel { drive: drive(), cause: LabelLeft::Away }.into(),
            "/dev/sdb is away and keeps its label: when it is back, `tangelo drive wipe DRIVE` erases it",
        ),
        (
            LeaveLabel { drive: drive(), cause: LabelLeft::Error { error: IoError::Other(5) } }.into(),
            "/dev/sdb keeps its label (system error 5): `tangelo drive wipe /dev/sdb` tries again",
        ),
    ]
}

fn of_volumes() -> Vec<Example> {
    use VolumeStep::*;
    let create = |backing| ChangeStep::from(CreateVolume { volume: volume(), size_bytes: 1 << 30, backing });
    let delete = |device| ChangeStep::from(DeleteVolume { volume: volume(), size_bytes: 1 << 30, device });
    vec![
        (create(VolumeBacking::Pool(pool())), "create volume vm-01, 1 GiB, in pool fast"),
        (create(VolumeBacking::Raw(drive())), "create volume vm-01, 1 GiB, on /dev/sdb as it is"),
        (create(VolumeBacking::Memory), "create volume vm-01, 1 GiB, in memory"),
        (create(VolumeBacking::Null), "create volume vm-01, 1 GiB, without storage"),
        (
            LeaveOutBytes { device: drive(), bytes: 512 }.into(),
            "leave out the last 512 bytes of /dev/sdb, which are no whole block of 4096 bytes: the backup header of a GPT is there; `--block-size 512` exports all of it",
        ),
        (delete(Some(drive())), "delete volume vm-01; what is on /dev/sdb stays"),
        (delete(None), "delete volume vm-01, 1 GiB, with its data"),
        (
            ResizeVolume { volume: volume(), before_bytes: 1 << 20, after_bytes: 3 << 20 }.into(),
            "resize volume vm-01 from 1 MiB to 3 MiB",
        ),
        (
            LoseData { volume: volume(), behind_bytes: 1 << 20 }.into(),
            "what volume vm-01 holds behind 1 MiB is lost",
        ),
        (FillVolume { volume: volume(), replaces: true }.into(), "replace what volume vm-01 holds"),
        (FillVolume { volume: volume(), replaces: false }.into(), "fill volume vm-01"),
        (ImportVolume { volume: volume() }.into(), "import volume vm-01"),
        (
            TakeDevice { volume: volume(), device: drive() }.into(),
            "volume vm-01 has its device /dev/sdb again",
        ),
        (
            MissDevice { volume: volume(), device: drive(), trouble: DeviceTrouble::Another }.into(),
            "volume vm-01 is without its device /dev/sdb: another device, with another serial number, is at its path",
        ),
    ]
}

fn of_the_bin() -> Vec<Example> {
    use VolumeStep::*;
    let bin = |snapshots| BinVolume { volume: volume(), size_bytes: 1 << 30, seconds: 86_400, snapshots };
    vec![
        (
            bin(2).into(),
            "put volume vm-01, 1 GiB, into the bin for 1 d, with its 2 snapshots: `tangelo volume undelete vm-01` brings it back",
        ),
        (
            UndeleteVolume { volume: volume(), snapshots: 1 }.into(),
            "bring back volume vm-01, with its snapshot",
        ),
        (EradicateVolume { volume: volume(), snapshots: 0 }.into(), "delete volume vm-01 for good"),
    ]
}

fn of_snapshots() -> Vec<Example> {
    use SnapshotStep::*;
    let refresh = |clones: &[&str]| RefreshClones {
        clones: NameList::new(clones.iter().copied(), 2),
        clones_of: words("golden@v1"),
        volume: words("golden"),
        snapshot: words("v2"),
    };
    vec![
        (TakeSnapshot { volume: volume(), snapshot: snapshot() }.into(), "take snapshot vm-01@monday"),
        (DeleteSnapshot { volume: volume(), snapshot: snapshot() }.into(), "delete snapshot vm-01@monday"),
        (
            RollBackVolume { volume: volume(), snapshot: snapshot() }.into(),
            "roll volume vm-01 back to vm-01@monday; what was written since is gone",
        ),
        (
            CloneVolume { clone: words("vm-02"), volume: volume(), snapshot: snapshot() }.into(),
            "create volume vm-02, a clone of vm-01@monday",
        ),
        (
            CopyVolume { copy: words("vm-02"), volume: volume() }.into(),
            "create volume vm-02, a copy of vm-01",
        ),
        (
            MoveSnapshot { snapshot: snapshot(), from_volume: volume(), to_volume: words("vm-02") }.into(),
            "snapshot vm-01@monday becomes vm-02@monday",
        ),
        (
            refresh(&["a"]).into(),
            "refresh 1 clone of golden@v1 to golden@v2: a; what was written to them is gone",
        ),
        (
            refresh(&["a", "b", "c"]).into(),
            "refresh 3 clones of golden@v1 to golden@v2: a, b and 1 more; what was written to them is gone",
        ),
        (
            CreateSchedule { schedule: words("nightly"), volumes: vec![volume(), words("vm-02")] }.into(),
            "take snapshots of vm-01, vm-02 by schedule nightly",
        ),
        (
            DeleteSchedule { schedule: words("nightly") }.into(),
            "delete schedule nightly; the snapshots that it has taken stay",
        ),
    ]
}

fn of_hosts() -> Vec<Example> {
    use HostStep::*;
    let user = || Some(words("me"));
    vec![
        (
            CreateHost { host: host(), initiators: vec![words("iqn.a"), words("iqn.b")] }.into(),
            "create host pve1 with iqn.a, iqn.b",
        ),
        (DeleteHost { host: host() }.into(), "delete host pve1, ending its sessions"),
        (AddInitiator { host: host(), initiator: words("iqn.a") }.into(), "host pve1: add initiator iqn.a"),
        (
            RemoveInitiator { host: host(), initiator: words("iqn.a") }.into(),
            "host pve1: remove initiator iqn.a, ending its sessions",
        ),
        (
            SetChap { host: host(), user: user() }.into(),
            "host pve1: CHAP user me, from its next login on; sessions that exist go on",
        ),
        (SetChap { host: host(), user: None }.into(), "host pve1: no CHAP"),
        (
            SetMutualChap { host: host(), user: user() }.into(),
            "host pve1: the array answers as me, from its next login on; sessions that exist go on",
        ),
        (SetMutualChap { host: host(), user: None }.into(), "host pve1: no mutual CHAP"),
        (LeaveHost { host: host() }.into(), "host pve1: nothing to change"),
    ]
}

fn of_mappings() -> Vec<Example> {
    use HostStep::*;
    let map = |lun, libiscsi_lun, read_only| {
        ChangeStep::from(MapVolume { volume: volume(), host: host(), lun, libiscsi_lun, read_only })
    };
    let drop = |why| ChangeStep::from(DropMapping { volume: volume(), host: host(), why });
    vec![
        (map(5, 5, false), "map volume vm-01 to host pve1 as LUN 5"),
        (
            map(256, 16_640, true),
            "map volume vm-01 to host pve1 as LUN 256, read-only (clients of libiscsi write 16640)",
        ),
        (UnmapVolume { volume: volume(), host: host() }.into(), "unmap volume vm-01 from host pve1"),
        (
            RestoreMapping { volume: volume(), host: host(), number: WasMapped::Lun(0) }.into(),
            "map volume vm-01 to host pve1 as LUN 0 again",
        ),
        (
            drop(NotMapped::Taken(WasMapped::Namespace(1))),
            "not mapped to host pve1: its namespace 1 is another volume now",
        ),
        (drop(NotMapped::HostDeleted), "not mapped to host pve1: that host has been deleted since"),
    ]
}

fn of_the_array() -> Vec<Example> {
    use ArrayStep::*;
    let address = || words("10.0.0.1:3260");
    let (before, after) = (AccessState::ActiveOptimized, AccessState::Standby);
    vec![
        (
            Rename { what: Subject::volume("vm-01"), name: words("vm-02") }.into(),
            "rename volume vm-01 to vm-02",
        ),
        (
            SetAccess { volume: volume(), group: 2, before, after }.into(),
            "portal group 2 of volume vm-01 from active/optimized to standby",
        ),
        (ListenOn { address: address(), stop: false }.into(), "listen on 10.0.0.1:3260"),
        (ListenOn { address: address(), stop: true }.into(), "no longer listen on 10.0.0.1:3260"),
        (AdmitHosts { portal: address(), hosts: vec![] }.into(), "10.0.0.1:3260 is for all hosts"),
        (
            AdmitHosts { portal: address(), hosts: vec![host(), words("pve2")] }.into(),
            "10.0.0.1:3260 is for pve1, pve2",
        ),
        (Recorded { words: words("create volume vm-01") }.into(), "create volume vm-01"),
    ]
}

fn of_pairs() -> Vec<Example> {
    use PairStep::*;
    let twin = || words("/dev/sdx");
    vec![
        (ShareDrive { drive: drive() }.into(), "both heads see /dev/sdb"),
        (ReserveDrive { drive: drive() }.into(), "hold /dev/sdb by a reservation, if the other head sees it"),
        (
            TwinDrive { drive: drive(), twin: twin() }.into(),
            "the twin of /dev/sdb is /dev/sdx of the other head",
        ),
        (
            MakeTwin { drive: drive(), twin: twin(), copied_bytes: 1 << 30 }.into(),
            "make /dev/sdx of the other head the twin of /dev/sdb; 1 GiB are copied",
        ),
        (
            RestartArray { alone: false }.into(),
            "start the array again, which hosts notice as a pause of about a second",
        ),
        (
            RestartArray { alone: true }.into(),
            "start the array again on this head alone, which hosts notice as a pause of about a second",
        ),
    ]
}

fn of_the_end_of_a_pair() -> Vec<Example> {
    use PairStep::*;
    vec![
        (
            ForgetHead { addresses: vec![] }.into(),
            "the other head, which has not joined, owns nothing and takes over nothing any more",
        ),
        (
            ForgetHead { addresses: vec![words("10.0.0.2")] }.into(),
            "the head at 10.0.0.2 owns nothing and takes over nothing any more",
        ),
        (EndTwin { drive: drive() }.into(), "/dev/sdb has no twin any more"),
        (EndReservation { drive: drive() }.into(), "/dev/sdb is not reserved any more"),
        (
            LeaveTwinRecord { drive: drive(), pool: pool() }.into(),
            "/dev/sdb of pool fast is not there: its record of the other head is erased when it comes back",
        ),
        (EndRegisterMember {}.into(), "end this server's member of etcd, and remove its data"),
        (DisableRegister {}.into(), "afterwards, here: `systemctl disable tangelo-register`"),
        (
            DisableOthers {}.into(),
            "on the other head and the witness: `systemctl disable --now tangelo tangelo-register`, then move the state directory away",
        ),
    ]
}

fn of_fencing() -> Vec<Example> {
    use PairStep::*;
    let ask = |says, is_heard| ChangeStep::from(AskFenceAgent { says, is_heard });
    let end = |outcome| ChangeStep::from(EndFencing { outcome });
    vec![
        (TryFenceAgent { agent: words("fence_ipmilan") }.into(), "fence_ipmilan takes what it is given"),
        (ask(FencePower::On, true), "it says \"on\" of the other head, which is heard: its word counts"),
        (ask(FencePower::On, false), "it says \"on\"; the other head is not heard, so that proves nothing"),
        (ask(FencePower::Off, true), "it says \"off\"; the other head is heard"),
        (ask(FencePower::Off, false), "it says \"off\"; the other head is not heard"),
        (
            ask(FencePower::Unknown { why: words("the agent has no status") }, false),
            "nobody will know whether it has fenced: the agent has no status",
        ),
        (FenceHead { stays_off: true }.into(), "switch the other head off"),
        (FenceHead { stays_off: false }.into(), "switch the other head off and on again"),
        (end(FenceOutcome::Running), "it is still under way: `tangelo pair status` tells its outcome"),
        (end(FenceOutcome::Fenced), "it was off"),
        (end(FenceOutcome::WasOff), "it was off already"),
        (end(FenceOutcome::Asked), "the agent was asked; it has no way to tell whether it has"),
        (end(FenceOutcome::NotNeeded), "the other head is heard again: it is not fenced"),
        (end(FenceOutcome::Maintenance), "there is maintenance: the other head is not fenced"),
        (end(FenceOutcome::Failed), "the other head is not fenced"),
    ]
}
