//! One lane as a subject of the workload: its volumes are block targets over this lane alone.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use base::{BLOCK_BYTES, LayerId, Lba, Nanos};
use block::{BlockError, BlockOutput, BlockRequest, BlockTarget, Geometry, Payload};
use pool::{Lane, LaneError, LaneRef, LaneRequest, PoolVolume};
use task::Io;

use crate::oracle::{SECTOR_BYTES, SECTORS_PER_BLOCK};
use crate::workload::{Answer, Request, Subject, VolumePlan};

/// Pause before a request is tried again that found no space.
const AGAIN: Nanos = Nanos::from_millis(10);

/// See the module's words.
pub struct LaneSubject {
    io: Io,
    lane: Rc<Lane>,
    volumes: BTreeMap<u32, (LayerId, PoolVolume)>,
}

impl LaneSubject {
    /// Volumes by the oracle's number, each in its layer.
    pub fn new(io: &Io, lane: Rc<Lane>, volumes: &[(VolumePlan, LayerId)]) -> LaneSubject {
        let target = |&(plan, layer): &(VolumePlan, LayerId)| {
            let geometry = Geometry {
                block_bytes: SECTOR_BYTES as u32,
                blocks: plan.blocks * SECTORS_PER_BLOCK,
                thin: true,
                write_back: plan.write_back,
            };
            (plan.volume, (layer, PoolVolume::new(vec![LaneRef::Local(lane.clone())], layer, geometry)))
        };
        let volumes = volumes.iter().map(target).collect();
        LaneSubject { io: io.clone(), lane, volumes }
    }

    /// Creates the layers that are not there yet.
    pub async fn ensure_layers(&self) -> Result<(), String> {
        for (layer, volume) in self.volumes.values() {
            let blocks = volume.geometry().size_bytes() / BLOCK_BYTES as u64;
            let request = || LaneRequest::CreateLayer { layer: *layer, parent: None, blocks };
            // a file system that is full will not stay so
            while let Err(error) = self.lane.execute(request()).await {
                if error != LaneError::OutOfSpace {
                    return Err(format!("creating {layer:?}: {error}"));
                }
                self.io.sleep(AGAIN).await;
            }
        }
        Ok(())
    }
}

fn block_request(request: Request) -> (u32, BlockRequest) {
    let lba = Lba;
    match request {
        Request::Read { volume, sectors } => {
            let blocks = (sectors.end - sectors.start) as u32;
            (volume, BlockRequest::Read { lba: lba(sectors.start), blocks })
        }
        Request::Write { volume, first, data, durable } => {
            (volume, BlockRequest::Write { lba: lba(first), data: Payload::from(data), durable })
        }
        Request::Zero { volume, sectors } => (
            volume,
            BlockRequest::WriteZeroes { lba: lba(sectors.start), blocks: sectors.end - sectors.start },
        ),
        Request::CompareAndWrite { volume, first, expected, data, durable } => {
            let (expected, data) = (Payload::from(expected), Payload::from(data));
            (volume, BlockRequest::CompareAndWrite { lba: lba(first), expected, data, durable })
        }
        Request::Flush { volume } => (volume, BlockRequest::Flush),
    }
}

impl Subject for LaneSubject {
    fn execute(&self, request: Request) -> Pin<Box<dyn Future<Output = Answer>>> {
        let (volume, request) = block_request(request);
        let target = self.volumes[&volume].1.clone();
        Box::pin(async move {
            match target.execute(request).await {
                Ok(BlockOutput::Data(data)) => Answer::Data(data.to_vec()),
                Ok(BlockOutput::None | BlockOutput::MapStatus { .. }) => Answer::Done,
                Err(BlockError::Miscompare { .. }) => Answer::Miscompare,
                Err(BlockError::OutOfSpace) => Answer::OutOfSpace,
                Err(error) => Answer::Failed(error.to_string()),
            }
        })
    }
}
