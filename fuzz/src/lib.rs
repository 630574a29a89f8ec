//! Every place where bytes from outside enter, as a fuzz target: a function that takes any bytes and must return.
//!
//! A target panics where the product would break a promise. What is checksummed is tried twice: as it is, and with a
//! good checksum, so that what stands behind the check is reached. Targets keep no state between calls.

mod api;

use base::{BLOCK_BYTES, crc32c};

/// A fuzz target.
pub struct Target {
    pub name: &'static str,
    pub what: &'static str,
    pub run: fn(&[u8]),
    /// Longest input that is worth trying.
    pub bytes_max: usize,
}

/// What stands before a page in an input: its layer, level and index.
const PAGE_KEY_BYTES: usize = 13;

/// All of them. A directory of `fuzz/corpus` has the name of each.
pub const TARGETS: [Target; 20] = [
    Target {
        name: "iscsi-pdu",
        what: "every iSCSI PDU, additional headers, text",
        run: iscsi::fuzz::parsers,
        bytes_max: 512,
    },
    Target {
        name: "iscsi-login",
        what: "a connection that nobody has logged in on",
        run: iscsi::fuzz::connection_before_login,
        bytes_max: 4096,
    },
    Target {
        name: "iscsi-raw-session",
        what: "a connection after login, any bytes",
        run: iscsi::fuzz::connection_after_login,
        bytes_max: 4096,
    },
    Target {
        name: "iscsi-session",
        what: "a connection after login, PDUs that are nearly right",
        run: iscsi::fuzz::session_after_login,
        bytes_max: 4096,
    },
    Target {
        name: "iscsi-initiator",
        what: "an initiator that logs in to anything",
        run: iscsi::fuzz::initiator,
        bytes_max: 4096,
    },
    Target {
        name: "scsi-cdb",
        what: "a CDB and its data against a logical unit",
        run: scsi_cdb,
        bytes_max: 4096,
    },
    Target {
        name: "pair-link",
        what: "a connection between two heads",
        run: pair::link::fuzz::link,
        bytes_max: 1024,
    },
    Target {
        name: "mirror-message",
        what: "what owner and partner say about drives",
        run: mirror::message::fuzz,
        bytes_max: 16 << 10,
    },
    Target { name: "pair-register", what: "the register of a pair", run: pair_register, bytes_max: 1024 },
    Target { name: "label", what: "a drive's label", run: label, bytes_max: BLOCK_BYTES },
    Target { name: "batch-header", what: "the header of a batch", run: batch_header, bytes_max: BLOCK_BYTES },
    Target { name: "root", what: "a lane's root", run: root, bytes_max: 16 << 10 },
    Target { name: "table", what: "a table of segments", run: pool::fuzz::table, bytes_max: 16 << 10 },
    Target {
        name: "map-page",
        what: "a page of the map",
        run: map_page,
        bytes_max: PAGE_KEY_BYTES + BLOCK_BYTES,
    },
    Target {
        name: "catalog-slot",
        what: "where the stored catalog begins",
        run: pool::fuzz::catalog_slot,
        bytes_max: 64,
    },
    Target {
        name: "changed-pool",
        what: "a pool of which a sealed structure was changed, opened and used",
        run: sim::scenarios::bear_change,
        bytes_max: 256,
    },
    Target {
        name: "api-body",
        what: "bodies of API requests; the first byte says of which",
        run: api::body,
        bytes_max: 4096,
    },
    Target {
        name: "api-request",
        what: "API requests: method, path, options, body",
        run: api::request,
        bytes_max: 4096,
    },
    Target {
        name: "text",
        what: "the stored catalog and the configuration file",
        run: text,
        bytes_max: 4096,
    },
    Target { name: "smartctl", what: "what smartctl prints of a drive", run: smartctl, bytes_max: 4096 },
];

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

fn scsi_cdb(bytes: &[u8]) {
    // None where the input is too short to say which unit.
    let _response = scsi::exercise(bytes);
}

fn pair_register(bytes: &[u8]) {
    if let Ok(register) = pair::Register::decode(bytes) {
        let again = pair::Register::decode(&register.encode());
        assert_eq!(again, Ok(register), "what is understood is stored in the same way");
    }
}

fn label(bytes: &[u8]) {
    pool::fuzz::label(bytes);
    pool::fuzz::label(&sealed(block(bytes), 12));
}

fn batch_header(bytes: &[u8]) {
    pool::fuzz::batch_header(bytes);
    pool::fuzz::batch_header(&sealed(block(bytes), 12));
}

/// What names a page stands before it; the page is made as long as one is.
fn map_page(bytes: &[u8]) {
    pool::fuzz::map_page(bytes);
    if let Some((key, page)) = bytes.split_at_checked(PAGE_KEY_BYTES) {
        pool::fuzz::map_page(&[key, &block(page)].concat());
    }
}

/// A root says at 16 how long it is, and its checksum covers that much.
fn root(bytes: &[u8]) {
    pool::fuzz::root(bytes);
    if bytes.len() >= 20 {
        let mut whole = bytes.to_vec();
        let length = u32::try_from(whole.len()).expect("inputs are small");
        whole[16..20].copy_from_slice(&length.to_le_bytes());
        pool::fuzz::root(&sealed(whole, 12));
    }
}

fn text(bytes: &[u8]) {
    if let Ok(catalog) = catalog::Catalog::decode(bytes) {
        let again = catalog::Catalog::decode(&catalog.encode());
        assert!(
            again.is_ok_and(|again| again.encode() == catalog.encode()),
            "a catalog must decode to itself"
        );
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        // Its errors are for people: they must not fail to be written either.
        if let Err(error) = control::config::Config::parse(std::path::Path::new("fuzz.toml"), text) {
            assert!(!error.to_string().is_empty());
        }
    }
}

/// What it says of itself is for people: it must not fail to be written either.
fn smartctl(bytes: &[u8]) {
    match health::parse(bytes, Some(0)) {
        Ok(reading) => assert!(reading.model.len() <= 64 && reading.serial.len() <= 64),
        Err(unread) => assert!(!unread.to_string().is_empty()),
    }
}

/// Exactly a block: cut, or with zeros behind.
fn block(bytes: &[u8]) -> Vec<u8> {
    let mut block = bytes[..bytes.len().min(BLOCK_BYTES)].to_vec();
    block.resize(BLOCK_BYTES, 0);
    block
}

/// With its checksum made good.
fn sealed(mut bytes: Vec<u8>, offset: usize) -> Vec<u8> {
    bytes[offset..offset + 4].fill(0);
    let checksum = crc32c(&bytes);
    bytes[offset..offset + 4].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_corpus_that_it_bears() {
        for target in &TARGETS {
            let inputs = corpus(target.name);
            inputs.iter().for_each(|input| (target.run)(input));
            assert!(!inputs.is_empty(), "{} has no corpus", target.name);
        }
    }

    /// The inputs of a target.
    pub(crate) fn corpus(name: &str) -> Vec<Vec<u8>> {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let entries = directory.read_dir().expect("every target has a corpus");
        entries.map(|entry| read(&entry.expect("the corpus can be listed").path())).collect()
    }

    fn read(path: &std::path::Path) -> Vec<u8> {
        #[allow(clippy::disallowed_methods, reason = "a test reads its inputs")]
        std::fs::read(path).expect("the corpus can be read")
    }
}
