//! Commands about volumes and mappings.

use base::VolumeId;
use catalog::{Catalog, Change, Name, NewVolume as NewKind, Volume, VolumeKind, WantedNumber};
use env::{DriveHandle, DriveInfo};

use crate::manager::Manager;
use crate::raw_device::volume_bytes;
use crate::state::RawDevice;
use api::{
    CommandError, CommandErrorKind, HostStep, Made, NewBacking, NewVolume, Reply, VolumeBacking, VolumeStep,
};

impl Manager {
    pub(crate) async fn create_volume(&self, new: NewVolume, dry_run: bool) -> Result<Reply, CommandError> {
        let device = match &new.backing {
            NewBacking::Raw(path) => Some(self.open_raw(path, new.size_bytes).await?),
            _ => None,
        };
        let result = self.create_volume_on(&new, device.as_ref(), dry_run).await;
        if let (Some((drive, _)), true) = (&device, dry_run || result.is_err()) {
            // an error while closing a drive still closes it
            let _ = self.context.io.drive_close(*drive).await;
        }
        result
    }

    async fn create_volume_on(
        &self,
        new: &NewVolume,
        device: Option<&(DriveHandle, DriveInfo)>,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let size_bytes = match (device, new.size_bytes) {
            (Some((_, info)), _) => volume_bytes(info.end_bytes, new.block_bytes),
            (None, Some(size_bytes)) => size_bytes,
            (None, None) => {
                let message = format!("volume {} needs a size", new.name);
                return Err(CommandError::new(
                    CommandErrorKind::Invalid,
                    message,
                    "give --size, as in --size 100GiB",
                ));
            }
        };
        let (kind, backing) = match &new.backing {
            NewBacking::Pool(pool) => (NewKind::Pool(pool.clone()), VolumeBacking::Pool(pool.clone())),
            NewBacking::Raw(path) => (NewKind::Raw { path: path.clone() }, VolumeBacking::Raw(path.clone())),
            NewBacking::Memory => (NewKind::Memory, VolumeBacking::Memory),
            NewBacking::Null => (NewKind::Null, VolumeBacking::Null),
        };
        let change = Change::CreateVolume {
            name: new.name.parse()?,
            backing: kind,
            size_bytes,
            block_bytes: new.block_bytes,
            write_back: new.write_back,
            created_ms: self.context.io.wall_clock_ms(),
        };
        let planned = self.plan(&change)?;
        if let NewBacking::Pool(pool) = &new.backing {
            self.check_pool_online(pool)?;
        }
        let create = VolumeStep::CreateVolume { volume: new.name.clone(), size_bytes, backing };
        let planned = planned.step(create).steps(device.and_then(|(_, info)| cut_off(info, size_bytes)));
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        let volume = planned.next.find_volume(&new.name).expect("just created").id;
        if let Some((drive, info)) = device {
            self.state.borrow_mut().raw.push(RawDevice::new(volume, Ok((*drive, info.clone()))));
        }
        if let Err(error) = self.make_durable(&planned.next, volume).await {
            self.state.borrow_mut().raw.retain(|raw| raw.volume != volume);
            return Err(error);
        }
        let made = self.made_volume(volume).await;
        Ok(planned.reply(false, made))
    }

    /// Makes the volume's layer if it needs one, then stores the catalog that names it.
    async fn make_durable(&self, next: &Catalog, volume: VolumeId) -> Result<(), CommandError> {
        let volume = next.volume(volume).expect("just created");
        if let VolumeKind::Pool { pool, layer } = volume.backing {
            let created = self.create_layer(pool, layer, volume.size_bytes, None).await;
            let made = match created {
                Ok(()) => self.commit(next).await,
                Err(error) => Err(error),
            };
            if made.is_err() {
                self.pass_over_layers(next);
            }
            return made;
        }
        self.commit(next).await
    }

    /// Opens a device that will become a raw volume.
    async fn open_raw(
        &self,
        path: &str,
        size_bytes: Option<u64>,
    ) -> Result<(DriveHandle, DriveInfo), CommandError> {
        if size_bytes.is_some() {
            let message = "a raw volume is as large as its device";
            return Err(CommandError::new(CommandErrorKind::Invalid, message, "leave the size out"));
        }
        self.check_not_ours(path)?;
        match self.open_and_probe(path).await {
            Ok(opened) => Ok((opened.handle, opened.info)),
            Err(error) => Err(self.why_not_opened(path, error, &[]).await),
        }
    }

    /// The raw volume of this device.
    pub(crate) fn raw_volume_at(&self, path: &str) -> Option<Name> {
        let state = self.state.borrow();
        let at =
            |volume: &&Volume| matches!(&volume.backing, VolumeKind::Raw { path: other } if other == path);
        state.catalog.volumes().iter().find(at).map(|volume| volume.name.clone())
    }

    pub(crate) async fn delete_volume(
        &self,
        name: &str,
        unmap: bool,
        eradicate: bool,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let pool = self.state.borrow().catalog.find_volume(name).and_then(|volume| match volume.backing {
            VolumeKind::Pool { pool, .. } => Some(pool),
            _ => None,
        });
        if !eradicate && pool.is_some_and(|pool| self.bin_seconds(pool) > 0) {
            return self.delete_into_bin(name, unmap, dry_run).await;
        }
        let planned = self.plan(&Change::DeleteVolume { volume: name.to_owned(), unmap })?;
        let volume = self.state.borrow().catalog.find_volume(name).expect("the plan found it").clone();
        let device = match &volume.backing {
            VolumeKind::Raw { path } => Some(path.clone()),
            _ => None,
        };
        let size_bytes = volume.size_bytes;
        let planned = planned.step(VolumeStep::DeleteVolume { volume: name.to_owned(), size_bytes, device });
        let planned = match volume.place() {
            Some((pool, layer)) => planned.steps(self.gives_back_step(pool, &[layer]).await),
            None => planned,
        };
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.commit(&planned.next).await?;
        self.discard_volume(&volume).await;
        Ok(planned.reply(false, None))
    }

    /// Frees the blocks of a deleted volume. No shard runs a command on it any more.
    async fn discard_volume(&self, volume: &Volume) {
        match &volume.backing {
            VolumeKind::Pool { pool, layer } => self.drop_layer(*pool, *layer).await,
            VolumeKind::Raw { .. } => {
                let mut closing = Vec::new();
                self.state.borrow_mut().raw.retain(|raw| {
                    let gone = raw.volume == volume.id;
                    closing.extend(raw.drive.as_ref().ok().filter(|_| gone).map(|(drive, _)| *drive));
                    !gone
                });
                for drive in closing {
                    // an error while closing a drive still closes it
                    let _ = self.context.io.drive_close(drive).await;
                }
            }
            VolumeKind::Null {} | VolumeKind::Memory {} => {}
        }
    }

    pub(crate) async fn map(
        &self,
        volume: &str,
        host: &str,
        lun: Option<u16>,
        read_only: bool,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let change = Change::Map {
            volume: volume.to_owned(),
            host: host.to_owned(),
            number: WantedNumber::Lun(lun.map(u32::from)),
            read_only,
        };
        let planned = self.plan(&change)?;
        let id = planned.next.find_volume(volume).expect("just mapped").id;
        let mapped = planned.next.luns_of(host).find(|(_, mapping)| mapping.volume == id);
        let (lun, mapping) = mapped.expect("just mapped");
        let status = super::status::mapping_status(&planned.next, lun, mapping);
        let planned = planned.step(HostStep::MapVolume {
            volume: volume.to_owned(),
            host: host.to_owned(),
            lun,
            libiscsi_lun: for_libiscsi(lun),
            read_only,
        });
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.commit(&planned.next).await?;
        Ok(planned.reply(false, Some(Made::Mapping(status))))
    }

    pub(crate) async fn unmap(&self, volume: &str, host: &str, dry_run: bool) -> Result<Reply, CommandError> {
        let planned = self.plan(&Change::Unmap { volume: volume.to_owned(), host: host.to_owned() })?;
        let planned =
            planned.step(HostStep::UnmapVolume { volume: volume.to_owned(), host: host.to_owned() });
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.commit(&planned.next).await?;
        Ok(planned.reply(false, None))
    }

    /// Opens the devices of all raw volumes that the catalog knows.
    pub(crate) async fn open_raw_volumes(&self) {
        let wanted: Vec<_> = {
            let state = self.state.borrow();
            let raw = state.catalog.volumes().iter().filter_map(|volume| match &volume.backing {
                VolumeKind::Raw { path } => Some((volume.id, path.clone(), volume.size_bytes)),
                _ => None,
            });
            raw.collect()
        };
        for (volume, path, size_bytes) in wanted {
            let opened = self.open_when_free(&path).await;
            let drive = self.as_raw_device(opened, volume, size_bytes).await;
            self.state.borrow_mut().raw.push(RawDevice::new(volume, drive));
        }
    }
}

/// The bytes of a device that a volume of 4 KiB blocks cannot use, because the device ends inside a block.
fn cut_off(info: &DriveInfo, size_bytes: u64) -> Option<VolumeStep> {
    let bytes = info.end_bytes.checked_sub(size_bytes).filter(|&bytes| bytes > 0)?;
    Some(VolumeStep::LeaveOutBytes { device: info.path.clone(), bytes })
}

/// libiscsi takes the LUN of its URLs as the first two bytes of the LUN field, without the addressing method that is
/// required from 256 on; QEMU's own initiator and `iscsi-inq` use libiscsi.
fn for_libiscsi(lun: u16) -> u16 {
    (wire::scsi::Lun::new(lun).expect("the catalog has checked it").emit() >> 48) as u16
}

#[cfg(test)]
mod tests {
    use super::for_libiscsi;

    #[test]
    fn luns_as_libiscsi_writes_them() {
        assert_eq!([for_libiscsi(0), for_libiscsi(255)], [0, 255]);
        assert_eq!(for_libiscsi(256), 16_640);
        assert_eq!(for_libiscsi(16_383), 32_767);
    }
}
