//! The commands that make a pair of two servers and a third machine, and the third vote itself. They ask no daemon.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::ArrayId;
use catalog::{Catalog, NameError};
use control::config::Config;
use control::state::{StateDirectory, StateError};
use setup::{Member, MemberEnd, MemberEvent, PairFile, Ports, Purpose, SetupError, Token};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{Joiner, Listen, Pair, Place, Register, Witness};
use crate::serve::array_name;

/// The exit code of a member of etcd that is not needed any more (EX_CONFIG of sysexits.h): its unit does not start it again.
const NOT_OF_A_PAIR: u8 = 78;

type Text = Result<String, String>;

pub fn pair(pair: &Pair, out: &mut dyn Write) -> ExitCode {
    finish(
        match pair {
            Pair::Create { listen, takeover_after } => create(listen, *takeover_after),
            Pair::Token { purpose, place } => token(*purpose, place),
            Pair::Join { token, listen } => join(token, listen),
            Pair::Replace(place) => replace(place),
            Pair::Disband { place, .. } => disband(place),
            Pair::Fence(_)
            | Pair::Status
            | Pair::Handover
            | Pair::Forget { .. }
            | Pair::Maintenance { .. } => {
                unreachable!("a daemon is asked")
            }
        },
        out,
    )
}

pub fn witness(witness: &Witness, out: &mut dyn Write) -> ExitCode {
    let Witness::Join { token, listen } = witness;
    finish(join_witness(token, listen), out)
}

fn finish(result: Text, out: &mut dyn Write) -> ExitCode {
    match result {
        Ok(text) => match out.write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        },
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn state_dir(place: &Place) -> Result<PathBuf, String> {
    Ok(Config::load(place.config.as_deref()).map_err(|error| error.to_string())?.state_dir)
}

fn ports(listen: &Listen) -> Result<Vec<Ports>, String> {
    listen
        .addresses
        .iter()
        .map(|text| text.parse().map_err(|error: setup::PortsError| error.to_string()))
        .collect()
}

fn words(error: SetupError) -> String {
    error.to_string()
}

fn create(listen: &Listen, takeover_ms: u32) -> Text {
    let state_dir = state_dir(&listen.place)?;
    let kept = kept_catalog(&state_dir)?;
    kept.as_ref().map_or(Ok(()), refuse_raw_volumes)?;
    let head = StateDirectory::head_of(&state_dir).map_err(|error| error.to_string())?;
    let term = kept.as_ref().map_or(0, Catalog::term);
    let array = kept.map_or_else(|| make_array(&state_dir), |catalog| Ok(catalog.array()))?;
    let created =
        setup::create(&state_dir, head, array, term, &ports(listen)?, takeover_ms).map_err(words)?;
    Ok(format!(
        "This head is the first of a pair. To go on:\n\n{}\non the other server:\n\n{}\non a third machine, which needs no drives:\n\n{}",
        start_units(&["tangelo-register", "tangelo"]),
        join_line(&created.head),
        join_line(&created.witness),
    ))
}

/// What this head has kept of its array.
fn kept_catalog(state_dir: &Path) -> Result<Option<Catalog>, String> {
    let bytes = StateDirectory::catalog_of(state_dir).map_err(|error| error.to_string())?;
    let decode = |bytes: Vec<u8>| {
        Catalog::decode(&bytes).map_err(|error| format!("{}/catalog.json: {error}", state_dir.display()))
    };
    bytes.map(decode).transpose()
}

/// An empty array, for a head that has none: heads of a pair make none by themselves.
fn make_array(state_dir: &Path) -> Result<ArrayId, String> {
    let failed = |error: StateError| error.to_string();
    let mut array = [0; 16];
    getrandom::fill(&mut array).map_err(|error| error.to_string())?;
    let array = ArrayId(u128::from_be_bytes(array));
    let name = array_name().parse().map_err(|error: NameError| error.to_string())?;
    let directory = StateDirectory::open(state_dir).map_err(failed)?;
    directory.save_catalog(&Catalog::new(array, name).encode()).map_err(failed)?;
    Ok(array)
}

/// A raw volume is on one head alone, and its path means another drive on the other one.
fn refuse_raw_volumes(catalog: &Catalog) -> Result<(), String> {
    let is_raw = |volume: &&catalog::Volume| matches!(volume.backing, catalog::VolumeKind::Raw { .. });
    match catalog.volumes().iter().find(is_raw) {
        None => Ok(()),
        Some(volume) => Err(format!(
            "volume {} is raw: the other head could not serve it; copy it into a pool (`tangelo volume copy`), and delete it first",
            volume.name
        )),
    }
}

fn join_line(token: &Token) -> String {
    let command = match token.purpose {
        Purpose::Head => "pair",
        Purpose::Witness => "witness",
    };
    format!("    tangelo {command} join {token} --listen ADDRESS\n")
}

/// What is to be started here, as systemd's command, and as what its units run.
fn start_units(units: &[&str]) -> String {
    let run = |unit: &&str| match *unit {
        "tangelo-register" => "`tangelo register serve`",
        _ => "`tangelo serve`",
    };
    let programs: Vec<&str> = units.iter().map(run).collect();
    format!(
        "    systemctl enable {0} && systemctl restart {0}\n\nwithout systemd, run {1} in its place, and again whenever it ends with code 75;\n",
        units.join(" "),
        programs.join(" and ")
    )
}

fn token(purpose: Joiner, place: &Place) -> Text {
    let purpose = match purpose {
        Joiner::Head => Purpose::Head,
        Joiner::Witness => Purpose::Witness,
    };
    Ok(join_line(&setup::new_token(&state_dir(place)?, purpose).map_err(words)?))
}

fn replace(place: &Place) -> Text {
    let state_dir = state_dir(place)?;
    let token = wait_for(async move { setup::replace(&state_dir).await.map_err(words) })?;
    Ok(format!(
        "The earlier head is not part of the array any more. To go on, start this one again:\n\n    systemctl restart tangelo\n\non the new server:\n\n{}\nthen, for each pool: tangelo pool convert POOL --across-heads\n",
        join_line(&token)
    ))
}

fn disband(place: &Place) -> Text {
    let state_dir = state_dir(place)?;
    // no daemon runs meanwhile
    let _locked = StateDirectory::open(&state_dir).map_err(|error| error.to_string())?;
    setup::disband(&state_dir).map_err(words)?;
    Ok("This head is alone from its next start on. It has what was written while it owned the array, or was in sync: what only the other head has is lost. \
        The other head must never be started with its drives again.\n\n    systemctl disable --now tangelo-register; systemctl start tangelo\n"
        .to_owned())
}

fn read_token(text: &str) -> Result<Token, String> {
    text.parse().map_err(|error: setup::TokenError| error.to_string())
}

fn join(token: &str, listen: &Listen) -> Text {
    let (token, ports, state_dir) = (read_token(token)?, ports(listen)?, state_dir(&listen.place)?);
    let pair: PairFile =
        wait_for(async move { setup::join_head(&token, &ports, &state_dir).await.map_err(words) })?;
    let others: Vec<String> = pair.partner_listen.iter().map(ToString::to_string).collect();
    Ok(format!(
        "This server is the other head of the array whose first head is at {}. To go on:\n\n{}",
        others.join(", "),
        start_units(&["tangelo-register", "tangelo"])
    ))
}

fn join_witness(token: &str, listen: &Listen) -> Text {
    let (token, ports, state_dir) = (read_token(token)?, ports(listen)?, state_dir(&listen.place)?);
    wait_for(async move { setup::join_witness(&token, &ports, &state_dir).await.map_err(words) })?;
    Ok(format!(
        "This machine is the third vote of the pair. To go on:\n\n{}",
        start_units(&["tangelo-register"])
    ))
}

fn wait_for<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

/// Runs this machine's member of etcd until a signal ends it.
pub fn register(register: &Register) -> ExitCode {
    let Register::Serve(place) = register;
    let result = state_dir(place).and_then(|state_dir| {
        let member = Member::open(&state_dir).map_err(words)?;
        println!("{}: member {} of etcd", state_dir.display(), member.name());
        wait_for(async move { member.run(stopped(), tell).await.map_err(words) })
    });
    match result {
        Ok(MemberEnd::Stopped) => ExitCode::SUCCESS,
        Ok(MemberEnd::Retired) => {
            println!("this server is part of no pair any more: etcd has ended, and its data is removed");
            ExitCode::from(NOT_OF_A_PAIR)
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn tell(event: MemberEvent) {
    match event {
        MemberEvent::Started { .. } => println!("{event}"),
        MemberEvent::Ended { .. } => eprintln!("{event}"),
    }
}

async fn stopped() {
    let both = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = both else { return };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
