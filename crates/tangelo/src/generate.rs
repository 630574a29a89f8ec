//! Completions, man pages and docs/cli.md, from the one definition of the command line.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;

use crate::cli::Cli;

/// For bash: names of what the array has, beside words of the command line. An `@` does not end a word, so that snapshots are
/// completed as a whole.
const BASH_NAMES: &str = r#"
COMP_WORDBREAKS=${COMP_WORDBREAKS//@/}
_tangelo_names() {
    _tangelo "$@"
    local word=${COMP_WORDS[COMP_CWORD]} names
    case $word in -*) return ;; esac
    names=$(tangelo complete -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null) || return 0
    if [ -n "$names" ]; then
        COMPREPLY=($(compgen -W "$names" -- "$word"))
    fi
}
complete -F _tangelo_names -o nosort -o bashdefault -o default tangelo
"#;

/// For zsh: the same, around the function that completes words. `-` begins an option, which has no name.
const ZSH_NAMES: &str = r#"
_tangelo() {
    local -a names
    if [[ $PREFIX != -* ]]; then
        names=(${(f)"$(tangelo complete -- "${(@Q)words[2,CURRENT-1]}" 2>/dev/null)"})
        (( $#names )) && compadd -a names && return 0
    fi
    _tangelo_words "$@"
}
"#;

/// For fish: the same, beside the words.
const FISH_NAMES: &str = r#"
function __fish_tangelo_names
    set -l before (commandline -opc)
    set -e before[1]
    tangelo complete -- $before 2>/dev/null
end
complete -c tangelo -n 'not string match -q -- "-*" (commandline -ct)' -a '(__fish_tangelo_names)'
"#;

/// The completion script for a shell.
pub fn completions(shell: clap_complete::Shell, out: &mut dyn Write) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tangelo", &mut script);
    match shell {
        clap_complete::Shell::Bash => script.extend_from_slice(BASH_NAMES.as_bytes()),
        clap_complete::Shell::Fish => script.extend_from_slice(FISH_NAMES.as_bytes()),
        clap_complete::Shell::Zsh => script = with_names(&script),
        _ => {}
    }
    out.write_all(&script)
}

/// The script for zsh, whose function for words is called from the one that knows names.
fn with_names(script: &[u8]) -> Vec<u8> {
    const BEGINS: &str = "\n_tangelo() {";
    let script = String::from_utf8_lossy(script);
    let (before, after) = script.split_once(BEGINS).expect("the generated script has its function");
    format!("{before}{ZSH_NAMES}\n_tangelo_words() {{{after}").into_bytes()
}

/// A page for the program and one for each command, in section 1.
pub fn man_pages(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(Cli::command(), directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is on top of docs/cli.md.
    const PREAMBLE: &str = "\
# The command line

Generated from the program's own definition: `UPDATE_DOCS=1 cargo test -p tangelo` writes this page anew.

`tangelo serve` runs the array; every other command asks it over its Unix socket (`--socket`), or over TCP with a
token (`--server HOST:PORT --token-file FILE`).

- `-o json` works on every command. Every answer has a `\"schema\"`; a refusal is
  `{\"schema\": 2, \"error\": {\"code\", \"message\", \"hint\"}}`.
- `--dry-run` on every command that changes something checks everything, tells what would change and which hosts it
  would affect, and changes nothing.
- Exit codes: 0 fine, 1 degraded or refused, 2 wrong usage or critical.
- Sizes carry a unit: `500GiB`, `1.5TiB` (powers of 1024), `1TB` (powers of 1000); `G` alone is `GiB`.
- `tangelo completions bash` (or `zsh`, `fish`, ...) prints a completion script. Those of bash, zsh and fish complete names of
  pools, volumes, snapshots, hosts, schedules and drives, too: they ask the daemon.
";

    fn describe(command: &mut clap::Command, path: &str, page: &mut String) {
        let help = command.clone().term_width(100).render_long_help();
        *page += &format!("\n## {path}\n\n```\n{}\n```\n", help.to_string().trim_end());
        let children =
            command.get_subcommands_mut().filter(|child| child.get_name() != "help" && !child.is_hide_set());
        for child in children {
            let path = format!("{path} {}", child.get_name());
            describe(child, &path, page);
        }
    }

    /// Bash itself completes, with a program that knows one pool.
    #[test]
    fn bash_completes_names() {
        let mut script = Vec::new();
        completions(clap_complete::Shell::Bash, &mut script).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tangelo.bash");
        fs::write(&path, script).unwrap();
        let ask = r#"
            tangelo() { [ "$*" = "complete -- pool show" ] && echo "fast slow"; }
            . "$1"
            COMP_WORDS=(tangelo pool show "$2") COMP_CWORD=3
            _tangelo_names tangelo "$2" show
            echo "${COMPREPLY[*]}"
        "#;
        for (word, expected) in [("", "fast slow"), ("f", "fast")] {
            let mut bash = std::process::Command::new("bash");
            let output = bash.args(["-c", ask, "bash"]).arg(&path).arg(word).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert_eq!(text.trim(), expected, "{}", String::from_utf8_lossy(&output.stderr));
        }
    }

    #[test]
    fn the_documented_command_line_is_the_defined_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let mut page = PREAMBLE.to_owned();
        let mut command = Cli::command();
        command.build();
        describe(&mut command, "tangelo", &mut page);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(path, &page).unwrap();
        }
        let kept = fs::read_to_string(path).unwrap_or_default();
        assert!(kept == page, "docs/cli.md is not up to date: UPDATE_DOCS=1 cargo test -p tangelo");
    }
}
