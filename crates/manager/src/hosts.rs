//! Commands about hosts.

use catalog::{CatalogError, Change, Chap, Host, HostUpdate as Update, Initiator, Setting};

use crate::manager::Manager;
use api::{CommandError, CommandErrorKind, HostStep, HostUpdate, Made, NewChap, NewHost, Reply};

impl Manager {
    pub(crate) async fn create_host(&self, new: NewHost, dry_run: bool) -> Result<Reply, CommandError> {
        let initiators = new.initiators.iter().map(|name| initiator(name)).collect::<Result<Vec<_>, _>>()?;
        let host = Host {
            name: new.name.parse()?,
            initiators,
            chap: new.chap.as_ref().map(chap).transpose()?,
            mutual: new.mutual_chap.as_ref().map(chap).transpose()?,
        };
        let planned = self.plan(&Change::CreateHost { host })?;
        let planned =
            planned.step(HostStep::CreateHost { host: new.name.clone(), initiators: new.initiators.clone() });
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.commit(&planned.next).await?;
        let made = self.host_status(&new.name, &[]).map(Made::Host);
        Ok(planned.reply(false, made))
    }

    pub(crate) async fn delete_host(
        &self,
        name: &str,
        unmap: bool,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let planned = self.plan(&Change::DeleteHost { host: name.to_owned(), unmap })?;
        let planned = planned.step(HostStep::DeleteHost { host: name.to_owned() });
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.commit(&planned.next).await?;
        Ok(planned.reply(false, None))
    }

    /// Changes a host. Sessions of initiators that remain continue, even if CHAP changes: the change applies to the
    /// next login. Sessions of removed initiators end.
    pub(crate) async fn update_host(
        &self,
        name: &str,
        update: &HostUpdate,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let before = self.state.borrow().catalog.find_host(name).cloned();
        let before = before.ok_or_else(|| CatalogError::NotFound { kind: "host", name: name.to_owned() })?;
        let wanted = Update {
            name: None,
            initiators: Some(initiators_after(&before, update)?),
            chap: setting(update.no_chap, &update.chap)?,
            mutual: setting(update.no_chap || update.no_mutual_chap, &update.mutual_chap)?,
        };
        let planned = self.plan(&Change::ModifyHost { host: name.to_owned(), update: wanted })?;
        let planned = planned.steps(steps(name, update));
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.commit(&planned.next).await?;
        let made = self.host_status(name, &[]).map(Made::Host);
        Ok(planned.reply(false, made))
    }
}

/// The initiators of a host after a change. An initiator that is to be removed must exist.
fn initiators_after(before: &Host, update: &HostUpdate) -> Result<Vec<Initiator>, CommandError> {
    let mut initiators = before.initiators.clone();
    for gone in &update.remove_initiators {
        let place = initiators.iter().position(|known| known.as_str().eq_ignore_ascii_case(gone));
        let missing = || CatalogError::NoSuchInitiator { host: before.name.clone(), initiator: gone.clone() };
        initiators.remove(place.ok_or_else(missing)?);
    }
    for new in &update.add_initiators {
        initiators.push(initiator(new)?);
    }
    Ok(initiators)
}

/// An initiator that can log in to this program.
fn initiator(name: &str) -> Result<Initiator, CommandError> {
    let initiator: Initiator = name.parse()?;
    let transport = match initiator {
        Initiator::Iscsi(_) => return Ok(initiator),
        Initiator::Nvme(_) => "NVMe",
        Initiator::FibreChannel(_) => "Fibre Channel",
    };
    Err(CommandError::new(
        CommandErrorKind::Invalid,
        format!("{initiator} is the name of an initiator of {transport}, which is not served yet"),
        "name the host's iSCSI initiator, as in iqn.1993-08.org.debian:01:abc",
    ))
}

fn setting(clear: bool, set: &Option<NewChap>) -> Result<Setting<Chap>, CommandError> {
    match set {
        Some(new) => Ok(Setting::Set(chap(new)?)),
        None if clear => Ok(Setting::Clear),
        None => Ok(Setting::Keep),
    }
}

/// What the update changes.
fn steps(name: &str, update: &HostUpdate) -> Vec<HostStep> {
    let host = || name.to_owned();
    let user = |chap: &NewChap| Some(chap.user.clone());
    let add = |new: &String| HostStep::AddInitiator { host: host(), initiator: new.clone() };
    let remove = |gone: &String| HostStep::RemoveInitiator { host: host(), initiator: gone.clone() };
    let mut steps: Vec<HostStep> = update.add_initiators.iter().map(add).collect();
    steps.extend(update.remove_initiators.iter().map(remove));
    if update.no_chap {
        steps.push(HostStep::SetChap { host: host(), user: None });
    } else if let Some(chap) = &update.chap {
        steps.push(HostStep::SetChap { host: host(), user: user(chap) });
    }
    if let Some(chap) = &update.mutual_chap {
        steps.push(HostStep::SetMutualChap { host: host(), user: user(chap) });
    } else if update.no_mutual_chap {
        steps.push(HostStep::SetMutualChap { host: host(), user: None });
    }
    if steps.is_empty() {
        steps.push(HostStep::LeaveHost { host: host() });
    }
    steps
}

fn chap(new: &NewChap) -> Result<Chap, CommandError> {
    Ok(Chap::new(&new.user, new.secret.parse()?)?)
}
