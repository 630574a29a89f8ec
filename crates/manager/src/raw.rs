//! The devices of raw volumes while they are served: whether they are there, and how large they are.
//!
//! ```text
//!   checked every few seconds ─► gone: the volume is offline, its device is looked for (`absent.rs`)
//!                              ├► larger: the catalog first, then every shard and, with a unit attention, the hosts
//!                              └► smaller: the volume keeps its size; blocks behind the end give a medium error
//! ```
//!
//! A check may take long if a device hangs, so checks are done outside the change lock.

use std::rc::Rc;

use base::limits::VOLUME_BYTES_MAX;
use base::{AlignedBuffer, BLOCK_BYTES, Nanos, VolumeId};
use catalog::{Change, Volume};
use env::{DriveHandle, DriveInfo, IoError};
use task::{join_all, race};

use shard::Stage;

use crate::manager::Manager;
use crate::probed::Probed;
use crate::raw_device::{DeviceCheck, is_another, seen, volume_bytes};
use crate::state::RawDevice;
use api::{DeviceTrouble, Problem, VolumeCondition};

const LOOK_EVERY: Nanos = Nanos::from_secs(4);
/// A device that does not answer within this time is not known to be gone.
const ANSWER_TIME_MAX: Nanos = Nanos::from_secs(2);

impl Manager {
    /// Runs until the array stops.
    pub(crate) async fn watch_raw_devices(self: Rc<Self>) {
        while self.context.stage.get() == Stage::Serving {
            self.context.io.sleep(LOOK_EVERY).await;
            if self.stopping.get() {
                continue;
            }
            let seen = self.measure_raw_devices().await;
            if seen.iter().any(|&(volume, handle, seen)| self.is_news(volume, handle, seen)) {
                let _lock = self.changes.acquire(1).await;
                if !self.stopping.get() {
                    self.act_on_checks(&seen).await;
                }
            }
        }
    }

    /// Checks every open device, all at once.
    async fn measure_raw_devices(&self) -> Vec<(VolumeId, DriveHandle, DeviceCheck)> {
        let open: Vec<_> = {
            let state = self.state.borrow();
            let open = state.raw.iter().filter_map(|raw| Some((raw.volume, raw.drive.clone().ok()?)));
            open.collect()
        };
        let looks = open.into_iter().map(|(volume, (handle, info))| {
            let look = self.measure_device(handle, info.size_bytes);
            async move { (volume, handle, look.await) }
        });
        join_all(looks.collect::<Vec<_>>()).await
    }

    /// Measures a device, and reads its last known block: a device that exists only by name has only a size. Both begin
    /// at once, while the handle is open.
    fn measure_device(
        &self,
        handle: DriveHandle,
        read_end: u64,
    ) -> impl Future<Output = DeviceCheck> + use<> {
        let io = self.context.io.clone();
        let look = self.raw_looks.borrow_mut().insert(handle).then(|| {
            let measured = io.drive_measure(handle);
            let last = read_end.saturating_sub(BLOCK_BYTES as u64);
            let read = io.drive_read(handle, last, AlignedBuffer::zeroed(1));
            let looks = self.raw_looks.clone();
            io.spawn_join(async move {
                let (measured, (_, read)) = (measured.await, read.await);
                looks.borrow_mut().remove(&handle);
                seen(measured, read, read_end)
            })
        });
        async move {
            let Some(look) = look else { return DeviceCheck::Nothing };
            match race(look, io.sleep(ANSWER_TIME_MAX)).await {
                Ok(seen) => seen.unwrap_or(DeviceCheck::Nothing),
                Err(()) => DeviceCheck::Nothing,
            }
        }
    }

    /// Whether a result of the check requires an action.
    fn is_news(&self, volume: VolumeId, handle: DriveHandle, seen: DeviceCheck) -> bool {
        let state = self.state.borrow();
        let Some(raw) = state.raw.iter().find(|raw| raw.is(volume, handle)) else { return false };
        let known = raw.drive.as_ref().map_or(0, |(_, info)| info.end_bytes);
        match seen {
            DeviceCheck::Gone => true,
            DeviceCheck::EndsAt(end) => end != known || self.growth(volume, end).is_some(),
            DeviceCheck::Nothing => false,
        }
    }

    /// The new size of a volume on a device that ends there, if it is larger than the present one.
    fn growth(&self, volume: VolumeId, end_bytes: u64) -> Option<u64> {
        let state = self.state.borrow();
        let volume = state.catalog.volume(volume)?;
        let size_bytes = volume_bytes(end_bytes, volume.block_bytes).min(VOLUME_BYTES_MAX);
        (size_bytes > volume.size_bytes).then_some(size_bytes)
    }

    /// Checks every open device and acts on the results. Must be called under the change lock.
    pub(crate) async fn check_raw_devices(&self) {
        let seen = self.measure_raw_devices().await;
        self.act_on_checks(&seen).await;
    }

    /// Acts on the results for devices that are still open. Must be called under the change lock.
    async fn act_on_checks(&self, all: &[(VolumeId, DriveHandle, DeviceCheck)]) {
        let (mut gone, mut changed) = (Vec::new(), false);
        for &(volume, handle, seen) in all {
            if !self.is_news(volume, handle, seen) {
                continue;
            }
            let mut state = self.state.borrow_mut();
            let raw = state.raw.iter_mut().find(|raw| raw.is(volume, handle)).expect("it is news");
            match (seen, &mut raw.drive) {
                (DeviceCheck::EndsAt(end), Ok((_, info))) => {
                    (info.end_bytes, info.size_bytes) = (end, end - end % BLOCK_BYTES as u64);
                }
                _ => {
                    raw.drive = Err(DeviceTrouble::Error { error: IoError::Gone });
                    gone.push(handle);
                }
            }
            changed = true;
        }
        if changed {
            // when this ends, no shard uses the missing devices any more
            self.broadcast().await;
        }
        self.close_in_time(gone).await;
        for &(volume, handle, seen) in all {
            if let DeviceCheck::EndsAt(end) = seen {
                self.grow_with_device(volume, handle, end).await;
            }
        }
    }

    /// Closes devices that are gone. One that does not answer is closed when it does: others may have their turn.
    async fn close_in_time(&self, gone: Vec<DriveHandle>) {
        let io = &self.context.io;
        let close = |handle| {
            let closing = io.clone();
            // an error while closing a device still closes it
            io.spawn_join(async move {
                let _ = closing.drive_close(handle).await;
            })
        };
        let closed = join_all(gone.into_iter().map(close).collect::<Vec<_>>());
        let _ = race(closed, io.sleep(ANSWER_TIME_MAX)).await;
    }

    /// The catalog changes first: a crash must not take back what a host was told.
    async fn grow_with_device(&self, volume: VolumeId, handle: DriveHandle, end_bytes: u64) {
        let open = self.state.borrow().raw.iter().any(|raw| raw.is(volume, handle));
        let Some(size_bytes) = self.growth(volume, end_bytes).filter(|_| open) else { return };
        if let Ok(planned) = self.plan(&Change::DeviceGrew { volume, size_bytes }) {
            // if this cannot be stored now, the next check finds it again
            let _ = self.commit(&planned.next).await;
        }
    }

    /// The opened device of a raw volume; otherwise it is closed again.
    pub(crate) async fn as_raw_device(
        &self,
        opened: Result<Probed, IoError>,
        volume: VolumeId,
        size_bytes: u64,
    ) -> Result<(DriveHandle, DriveInfo), DeviceTrouble> {
        let Probed { handle, info, .. } = opened.map_err(|error| DeviceTrouble::Error { error })?;
        let another = {
            let state = self.state.borrow();
            let before = state.raw.iter().find(|raw| raw.volume == volume);
            is_another(before.and_then(|raw| raw.last.as_ref()), &info)
        };
        let why_not = if another {
            DeviceTrouble::Another
        } else if info.end_bytes < size_bytes {
            DeviceTrouble::Smaller { has_bytes: info.end_bytes }
        } else {
            return Ok((handle, info));
        };
        self.close_drive(handle).await;
        Err(why_not)
    }

    /// The problems of raw volumes' devices.
    pub(crate) fn raw_problems(&self) -> Vec<Problem> {
        let state = self.state.borrow();
        let problem = |raw: &RawDevice| raw.problem(state.catalog.volume(raw.volume)?);
        state.raw.iter().filter_map(problem).collect()
    }

    /// The condition of a raw volume with this device.
    pub(crate) fn raw_condition(&self, volume: &Volume, path: &str) -> VolumeCondition {
        let state = self.state.borrow();
        let path = path.to_owned();
        let Some(raw) = state.raw.iter().find(|raw| raw.volume == volume.id) else {
            return VolumeCondition::DeviceNotOpened { path };
        };
        match (&raw.drive, raw.left_bytes(volume)) {
            (Err(trouble), _) => VolumeCondition::DeviceUnusable { path, trouble: *trouble },
            (Ok(_), Some(left_bytes)) => {
                VolumeCondition::DeviceSmaller { left_bytes, volume_bytes: volume.size_bytes }
            }
            (Ok(_), None) => VolumeCondition::Healthy,
        }
    }
}

#[cfg(test)]
mod tests {
    use env::{DriveIdentity, DriveKind};

    use super::*;

    #[test]
    fn what_a_look_tells() {
        let (gone, slow) = (IoError::Gone, IoError::TimedOut);
        let rows = [
            (Ok(8192), Ok(()), DeviceCheck::EndsAt(8192)),
            (Ok(16384), Ok(()), DeviceCheck::EndsAt(16384)),
            (Ok(8192), Err(IoError::Media), DeviceCheck::EndsAt(8192)),
            (Ok(8192), Err(gone), DeviceCheck::Gone),
            // the device ends before what was read
            (Ok(4608), Err(gone), DeviceCheck::EndsAt(4608)),
            (Err(gone), Ok(()), DeviceCheck::Gone),
            (Err(gone), Err(gone), DeviceCheck::Gone),
            (Err(slow), Err(gone), DeviceCheck::Gone),
            (Err(slow), Ok(()), DeviceCheck::Nothing),
            (Err(slow), Err(IoError::Media), DeviceCheck::Nothing),
        ];
        for (measured, read, expected) in rows {
            assert_eq!(seen(measured, read, 8192), expected, "{measured:?} {read:?}");
        }
    }

    #[test]
    fn a_volume_is_whole_blocks_of_what_its_device_has() {
        assert_eq!([volume_bytes(8192 + 1536, 512), volume_bytes(8192 + 1536, 4096)], [8192 + 1536, 8192]);
    }

    #[test]
    fn another_device_is_known_by_its_serial_number() {
        let info = |serial: &str| DriveInfo {
            path: "/dev/sdx".to_owned(),
            kind: DriveKind::BlockDevice,
            size_bytes: 4096,
            end_bytes: 4096,
            volatile_cache: false,
            model: "model".to_owned(),
            serial: serial.to_owned(),
            bay: String::new(),
            identity: DriveIdentity::Device(0),
        };
        let rows = [("a", "a", false), ("a", "b", true), ("", "b", false), ("a", "", false)];
        for (before, now, expected) in rows {
            assert_eq!(is_another(Some(&info(before)), &info(now)), expected, "{before} {now}");
        }
        assert!(!is_another(None, &info("a")));
    }
}
