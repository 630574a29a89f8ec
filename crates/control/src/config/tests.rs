//! Files that are accepted, and the messages for those that are refused.

use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("/etc/tangelo/tangelo.toml"), text)
}

#[test]
fn an_empty_file_is_the_defaults() {
    let expected = Config { file: Some("/etc/tangelo/tangelo.toml".into()), ..Config::default() };
    assert_eq!(parse("# nothing\n").unwrap(), expected);
}

#[test]
fn the_packaged_example_is_accepted() {
    let text = include_str!("../../../../packaging/tangelo.toml");
    let config = parse(text).unwrap();
    assert_eq!((config.iscsi, config.socket), (Config::default().iscsi, Config::default().socket));
    // Every line that is commented out is a true example too.
    let all: String = text
        .lines()
        .map(|line| line.strip_prefix("#: ").unwrap_or(line))
        .fold(String::new(), |a, b| a + b + "\n");
    assert_ne!(all, text);
    let config = parse(&all).unwrap();
    assert!(config.tcp.is_some() && !config.drives.is_empty() && config.cores != Cores::All);
}

#[test]
fn everything_at_once() {
    let config = parse(
        r#"
state_dir = "state"
[listen]
iscsi = [
  "127.0.0.1:3260",
  "[::1]:3261",
  { address = "127.0.0.1:3262", group = 7, hosts = ["pve1", "pve2"] },
]
[api]
socket = "/tmp/t.sock"
tcp = "127.0.0.1:7780"
token_file = "token"
[drives]
paths = [
  "/dev/nvme?n1",
  "drives/*.img",
]
[cores]
list = [3, 1]
"#,
    )
    .unwrap();
    assert_eq!(config.state_dir, Path::new("/etc/tangelo/state"));
    let portals: Vec<_> =
        config.iscsi.iter().map(|portal| (portal.address.port(), portal.group, portal.hosts.len())).collect();
    assert_eq!(portals, [(3260, 1, 0), (3261, 1, 0), (3262, 7, 2)]);
    let tcp = config.tcp.unwrap();
    assert_eq!((tcp.address.port(), tcp.token_file.to_str()), (7780, Some("/etc/tangelo/token")));
    let drives: Vec<_> = config.drives.iter().map(|d| (d.pattern.as_str(), d.line)).collect();
    assert_eq!(drives, [("/dev/nvme?n1", Some(15)), ("/etc/tangelo/drives/*.img", Some(16))]);
    assert_eq!(config.cores, Cores::List(vec![3, 1]));
}

#[test]
fn what_is_refused_about_tls() {
    for (text, expected) in [
        ("[web]\nlisten = [\"[::]:1\", \"[::]:1\"]\n", "2: [::]:1 is listed twice; remove one"),
        ("[web]\nlisten = [\"head:1\"]\n", "2: \"head:1\" is not an address"),
        ("[web]\ncertificate = \"/c\"\n", "2: a certificate needs its key; add key ="),
        ("[web]\nkey = \"/k\"\n", "2: a key needs its certificate; add certificate ="),
        ("[web]\ntls = true\n", "2: unknown key \"tls\" in [web]; known are listen, certificate, key"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.starts_with(&format!("/etc/tangelo/tangelo.toml:{expected}")), "{text:?}: {error}");
    }
    let web =
        parse("[web]\nlisten = [\"[::]:7443\"]\ncertificate = \"web.pem\"\nkey = \"/k\"\n").unwrap().web;
    let files = web.certificate.unwrap();
    assert_eq!((web.listen.len(), files.certificate.to_str()), (1, Some("/etc/tangelo/web.pem")));
}

#[test]
fn what_is_refused_and_where_and_why() {
    let table = [
        ("[lissten]\n", "1: unknown key \"lissten\"; did you mean \"listen\"?"),
        ("\n\n[listen]\niscsy = []\n", "4: unknown key \"iscsy\" in [listen]; did you mean \"iscsi\"?"),
        (
            "memory = \"lots\"\n",
            "1: \"lots\" is not a size: write a number and a unit, such as 500GiB, 1.5TiB or 1TB",
        ),
        ("memory = \"8\"\n", "1: \"8\" has no unit: write 8GiB, 8MiB, or 8B for bytes"),
        ("memory = 4096\n", "1: memory must be a size, such as \"4GiB\", not a number"),
        (
            "volumes = 1\n",
            "1: unknown key \"volumes\"; known are state_dir, memory, listen, api, web, drives, cores",
        ),
        (
            "[listen]\niscsi = \"0.0.0.0:3260\"\n",
            "2: iscsi must be a list of addresses, such as [\"0.0.0.0:3260\"], not text",
        ),
        ("[listen]\niscsi = [\n 3260]\n", "3: iscsi must be an address and a port in quotes, such as"),
        (
            "[listen]\niscsi = [\"localhost\"]\n",
            "2: \"localhost\" is not an address; write an address and a port",
        ),
        ("[listen]\niscsi = [\"[::]:1\",\n\"[::]:1\"]\n", "3: [::]:1 is listed twice; remove one"),
        (
            "[listen]\niscsi = [{ address = \"0.0.0.0:1\", floating = \"eth0\" }]\n",
            "2: a portal that listens on every address cannot float",
        ),
        (
            "[listen]\niscsi = [{ address = \"10.0.0.1:1\", floating = \"a/24\" }]\n",
            "2: \"a/24\" is no interface's name",
        ),
        (
            "[listen]\niscsi = [\"10.0.0.1:1\", { address = \"10.0.0.9:1\", floating = \"eth0\" }]\n",
            "2: 10.0.0.9:1 floats, and shares portal group 1",
        ),
        ("[listen]\niscsi = [{ group = 2 }]\n", "2: a portal needs an address"),
        ("[listen]\niscsi = [{ address = \"[::]:1\", group = 0 }]\n", "2: group must be 1 to 32, not 0"),
        ("[listen]\niscsi = [{ address = \"[::]:1\", hosts = [] }]\n", "2: 1 to 1024 hosts are possible"),
        (
            "[listen]\niscsi = [{ address = \"[::]:1\", host = \"a\" }]\n",
            "2: unknown key \"host\" in [iscsi]",
        ),
        ("[listen]\niscsi = []\n", "2: 1 to 32 addresses are possible, here are 0"),
        ("[listen]\n[listen]\n", "2: "),
        ("state_dir = \"a\"\nstate_dir = \"b\"\n", "2: duplicate key"),
        ("state_dir = 7\n", "1: state_dir must be a path in quotes, not a number"),
        ("state_dir = \"\"\n", "1: state_dir must be a path, \"\" is none"),
        ("listen = true\n", "1: listen is a section: write [listen] and its keys below it"),
        ("[api]\ntcp = \"0.0.0.0:7780\"\n", "2: the API over TCP needs a token; add token_file"),
        ("[api]\ntoken_file = \"/t\"\n", "2: token_file is for the API over TCP; add tcp"),
        ("[drives]\npaths = [\"/dev/sda\", \"/dev/sda\"]\n", "2: /dev/sda is listed twice; remove one"),
        ("[drives]\npaths = [\"/dev/sd[a\"]\n", "2: \"/dev/sd[a\" is no pattern"),
        ("[cores]\ncount = 0\n", "2: count must be 1 to 16, not 0"),
        ("[cores]\ncount = 17\n", "2: count must be 1 to 16, not 17"),
        ("[cores]\ncount = -1\n", "2: count must be 1 to 16, not -1"),
        ("[cores]\ncount = 99999999999999999999999\n", "2: "),
        ("[cores]\ncount = \"2\"\n", "2: count must be a whole number, not text"),
        ("[cores]\nlist = [1, 1]\n", "2: core 1 is listed twice; remove one"),
        ("[cores]\ncount = 1\nlist = [1]\n", "3: give either list or count, not both"),
        ("[cores\n", "1: "),
        ("a = = 1\n", "1: "),
    ];
    for (text, expected) in table {
        let error = parse(text).expect_err(text).to_string();
        let expected = format!("/etc/tangelo/tangelo.toml:{expected}");
        assert!(error.starts_with(&expected), "{text:?}:\n  {error}\nis not\n  {expected}");
        assert!(error.len() > expected.len() || !expected.ends_with(": "), "{text:?}: no reason given");
    }
}

#[test]
fn a_named_file_must_be_there() {
    let error = Config::load(Some(Path::new("/nonexistent/tangelo.toml"))).unwrap_err().to_string();
    assert!(error.starts_with("/nonexistent/tangelo.toml: cannot be read: "), "{error}");
}

#[test]
fn patterns_give_each_drive_once_and_named_ones_always() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["d0.img", "d1.img", "other"] {
        std::fs::write(directory.path().join(name), b"").unwrap();
    }
    std::fs::create_dir(directory.path().join("d2.img")).unwrap();
    let file = directory.path().join("tangelo.toml");
    let text = "[drives]\npaths = [\"d?.img\",\n\"*.img\",\n\"missing\", \"none*\"]\n";
    let config = Config::parse(&file, text).unwrap();
    let remembered =
        ["d1.img", "other", "gone"].map(|name| directory.path().join(name).to_str().unwrap().to_owned());
    let drives = config.expand_drives(&remembered).unwrap();
    let found: Vec<_> = drives.iter().map(|d| (d.path.rsplit('/').next().unwrap(), d.line)).collect();
    assert_eq!(found, [("d0.img", Some(2)), ("d1.img", Some(2)), ("missing", Some(4)), ("other", None)]);
}

#[test]
fn the_default_patterns_are_patterns() {
    for drive in Config::default().drives {
        assert!(glob::Pattern::new(&drive.pattern).is_ok() && drive.line.is_none(), "{}", drive.pattern);
    }
    let matches = |path: &str| {
        let patterns = Config::default().drives;
        patterns.iter().any(|drive| glob::Pattern::new(&drive.pattern).unwrap().matches(path))
    };
    for disk in ["/dev/nvme0n1", "/dev/nvme12n10", "/dev/sda", "/dev/sdab", "/dev/vdb"] {
        assert!(matches(disk), "{disk}");
    }
    for other in ["/dev/nvme0", "/dev/nvme0n1p1", "/dev/sda1", "/dev/vdb2", "/dev/loop0", "/dev/dm-0"] {
        assert!(!matches(other), "{other}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_has_an_answer(text in "(\\[(listen|api|drives|cores)\\]\n|(iscsi|tcp|paths|count|list) = [\\[\\]\",0-9a-z:]{0,12}\n|.{0,20}\n){0,8}") {
        let _ = parse(&text);
    }
}

#[test]
fn how_the_health_of_drives_is_watched() {
    let health = parse("").unwrap().health;
    let seconds = (health.every.as_secs(), health.timeout.as_secs());
    assert_eq!((health.smartctl.as_deref(), seconds), (Some("smartctl"), (600, 20)));
    let text = "[health]\nsmartctl = \"/opt/smartctl\"\nevery_seconds = 5\ntimeout_seconds = 2\n[health.devices]\n\"/srv/drive-1\" = \"/dev/sg3\"\n\"/dev/sdb\" = \"megaraid,0  /dev/bus/0\"\n";
    let health = parse(text).unwrap().health;
    assert_eq!((health.smartctl.as_deref(), health.every.as_secs()), (Some("/opt/smartctl"), 5));
    assert_eq!(health.devices["/dev/sdb"], "megaraid,0  /dev/bus/0");
    assert_eq!(parse("[health]\nsmartctl = \"off\"\n").unwrap().health.smartctl, None);
    for (text, line, expected) in [
        ("[health]\nsmartctl = \"./smartctl\"\n", 2, "absolute path"),
        ("[health]\nsmartctl = \"\"\n", 2, "must be a program"),
        ("[health]\nevery_seconds = 4\n", 2, "5 to 86400"),
        ("[health]\ntimeout_seconds = 0\n", 2, "1 to 120"),
        ("[health]\nsmartctrl = \"x\"\n", 2, "did you mean \"smartctl\"?"),
        ("[health.devices]\n\"/d\" = \"sda\"\n", 2, "must be a device"),
        ("[health.devices]\n\"/d\" = \"--test=long /dev/sda\"\n", 2, "must be a device"),
        ("[health.devices]\n\"/d\" = \"a b /dev/sda\"\n", 2, "must be a device"),
        ("[health.devices]\nd = \"/dev/sda\"\n", 2, "no absolute path"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line, Some(line), "{text}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn how_the_other_head_is_fenced() {
    let text = "[fence]\nagent = \"fence_ipmilan\"\nmeans = \"off\"\ntimeout_seconds = 20\n[fence.parameters]\nip = \"192.0.2.9\"\nlanplus = true\nipport = 624\npassword = \"geheim\"\n";
    let fence = parse(text).unwrap().fence.unwrap();
    assert_eq!(
        (fence.agent.as_str(), fence.stays_off, fence.timeout_seconds, fence.line),
        ("fence_ipmilan", true, 20, 2)
    );
    let given: Vec<(&str, &str, usize)> = fence
        .parameters
        .iter()
        .map(|given| (given.name.as_str(), given.value.as_str(), given.line))
        .collect();
    assert_eq!(
        given,
        [("ip", "192.0.2.9", 6), ("lanplus", "true", 7), ("ipport", "624", 8), ("password", "geheim", 9)]
    );
    assert!(!format!("{fence:?}").contains("geheim"), "a secret must not get into logs");
    let plain = parse("[fence]\nagent = \"/opt/agent\"\n").unwrap().fence.unwrap();
    assert_eq!((plain.stays_off, plain.timeout_seconds, plain.parameters.len()), (false, 60, 0));
    for (text, line, says) in [
        ("[fence]\nmeans = \"off\"\n", 2, "needs agent"),
        ("[fence]\nagent = \"../x\"\n", 2, "absolute path"),
        ("[fence]\nagent = \"x\"\nmeans = \"kill\"\n", 3, "\"reboot\" or \"off\""),
        ("[fence]\nagent = \"x\"\ntimeout_seconds = 0\n", 3, "1 to 600"),
        ("[fence]\nagent = \"x\"\ntimeout = 5\n", 3, "unknown key \"timeout\" in [fence]"),
        ("[fence]\nagent = \"x\"\n[fence.parameters]\nip = [1]\n", 4, "must be text"),
        ("[fence]\nagent = \"x\"\n[fence.parameters]\nip = \"a\\nb\"\n", 4, "one parameter a line"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.line == Some(line) && error.reason.contains(says), "{text:?}: {error}");
    }
}

#[test]
fn a_file_with_secrets_is_not_for_everybody() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tangelo.toml");
    std::fs::write(&path, "[fence]\nagent = \"x\"\n[fence.parameters]\npassword = \"geheim\"\n").unwrap();
    let load = |mode| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Config::load(Some(&path)).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(load(0o640), Ok(()));
    let refused = load(0o644).unwrap_err();
    assert!(refused.contains(":2: ") && refused.contains("chmod 640"), "{refused}");
}

#[test]
fn portals_that_float_name_their_interface() {
    let text = "[listen]\niscsi = [\"10.0.0.1:3260\", { address = \"10.0.0.9:3260\", group = 9, floating = \"eth0\" }, { address = \"10.0.0.9:3261\", group = 9 }]\n";
    let config = Config::parse(std::path::Path::new("t.toml"), text).unwrap();
    let [floating] = &config.floating[..] else { panic!("{config:?}") };
    assert_eq!((floating.address.to_string(), floating.interface.as_str()), ("10.0.0.9".to_owned(), "eth0"));
    let floats: Vec<bool> = config.iscsi.iter().map(|portal| config.floats(portal)).collect();
    assert_eq!(floats, [false, true, true]);
}
