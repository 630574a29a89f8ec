//! What the mirror has ordered: requests begin on the own drive and go to the partner, pieces are copied, records are written.

use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES};
use bytes::Bytes;
use env::DriveHandle;
use mirror::message::{WRITE_BYTES_MAX, write_parts};
use mirror::{Ask, CopyError, CopyId, RECORD_BYTES, Record, RequestId, TwinId};

use super::{Asked, Center, FAILED_RECORD_PAUSE, Work};
use crate::parts::in_parts;
use crate::record;
use crate::wire::Wire;

impl Center {
    pub(super) async fn record(self: Rc<Self>, drive: usize, record: Record) {
        let result = record::write(&self.io, DriveHandle(drive as u32), &record).await;
        match result {
            Ok(()) => drop(self.failing.borrow_mut().remove(&drive)),
            Err(_) => {
                // it is tried again as long as it is needed
                self.failing.borrow_mut().insert(drive);
                self.io.sleep(FAILED_RECORD_PAUSE).await;
            }
        }
        self.recording.borrow_mut().remove(&drive);
        self.mirror.borrow_mut().on_recorded(drive, result);
        self.follow();
        self.ended.notify();
    }

    pub(super) fn begin_own(self: &Rc<Self>, id: RequestId) {
        let (handle, work) = {
            let requests = self.requests.borrow();
            let request = &requests[&id];
            (request.handle, request.work.clone())
        };
        let center = self.clone();
        self.io.spawn(async move {
            let result = match work {
                Work::Write { offset_bytes, data, durable } => {
                    center.io.drive_write(handle, offset_bytes, data, durable).await
                }
                Work::Flush => center.io.drive_flush(handle).await,
            };
            center.mirror.borrow_mut().on_own(id, result);
            center.follow();
        });
    }

    /// Sends a request to the partner. Without a connection it is sent when there is one.
    pub(super) fn send(&self, id: RequestId) {
        let mut requests = self.requests.borrow_mut();
        let request = requests.get_mut(&id).expect("it has not ended");
        let twin =
            self.mirror.borrow().id(request.handle.0 as usize).expect("it has requests, so it is there");
        (request.far_left, request.far_result) = (0, Ok(()));
        match &request.work {
            Work::Write { offset_bytes, data, durable } => {
                let mut at = *offset_bytes;
                for pieces in in_parts(data, WRITE_BYTES_MAX) {
                    request.far_left += 1;
                    let length: usize = pieces.iter().map(Bytes::len).sum();
                    self.send_write(Asked::Request(id), twin, at, *durable, pieces);
                    at += length as u64;
                }
            }
            Work::Flush => {
                request.far_left = 1;
                let ask = Ask::Flush { request: self.ask(Asked::Request(id)), twin };
                if let Some(wire) = self.open_wire() {
                    wire.send_ask(&ask);
                }
            }
        }
    }

    fn send_write(&self, asked: Asked, twin: TwinId, offset_bytes: u64, durable: bool, data: Vec<Bytes>) {
        let (kind, header) = write_parts(self.ask(asked), twin, offset_bytes, durable);
        if let Some(wire) = self.open_wire() {
            wire.send_frame(kind, std::iter::once(Bytes::copy_from_slice(&header)).chain(data).collect());
        }
    }

    /// The number by which the partner will answer.
    fn ask(&self, asked: Asked) -> RequestId {
        let number = self.next();
        self.asked.borrow_mut().insert(number, asked);
        RequestId(number)
    }

    pub(super) fn open_wire(&self) -> Option<Rc<Wire>> {
        self.wire.borrow().clone().filter(|_| self.is_open.get())
    }

    pub(super) async fn copy(
        self: Rc<Self>,
        copy: CopyId,
        drive: usize,
        offset_bytes: u64,
        length_bytes: u64,
    ) {
        let offset_bytes = offset_bytes + RECORD_BYTES as u64;
        let buffer = AlignedBuffer::uncleared(length_bytes as usize / BLOCK_BYTES);
        let (buffer, result) = self.io.drive_read(DriveHandle(drive as u32), offset_bytes, buffer).await;
        if !self.mirror.borrow().wants(copy) {
            return;
        }
        let twin = self.mirror.borrow().id(drive);
        if let (Ok(()), Some(twin)) = (result, twin) {
            return self.send_write(Asked::Copy(copy), twin, offset_bytes, true, vec![buffer.into_bytes()]);
        }
        self.mirror.borrow_mut().on_copied(copy, Err(CopyError::Own));
        self.follow();
    }
}
