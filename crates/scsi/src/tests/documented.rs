//! docs/scsi-commands.md must be equal to the text made from the opcode table.

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scsi-commands.md");

#[test]
// a test of a file has to read it, and to write it when told
#[allow(clippy::disallowed_methods)]
fn the_command_list_is_up_to_date() {
    let made = crate::command_list();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PATH, &made).expect("docs/ can be written");
    }
    let there = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(there == made, "docs/scsi-commands.md is out of date: UPDATE_DOCS=1 cargo test -p scsi");
}
