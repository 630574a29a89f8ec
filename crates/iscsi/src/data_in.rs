//! Answers to commands: Data-In PDUs, then the status, in the last of them or separately (RFC 7143 §11.4, §11.7).

use block::Payload;
use bytes::Bytes;
use wire::iscsi::{DataIn, DataInStatus, Lengths, RESERVED_TAG, Residual, ScsiResponse, ServiceResponse};

use crate::api::{CommandResponse, TaskTag};
use crate::link::Link;
use crate::session::Session;
use crate::tasks::Work;
use crate::transfer::Transfer;

/// Sense data is at most this long (SPC-4 §4.5).
const SENSE_BYTES_MAX: usize = 252;
const STATUS_GOOD: u8 = 0x00;
const STATUS_CONDITION_MET: u8 = 0x04;

/// The residuals of a command: of its only direction (or its write), and of the read of a bidirectional one.
fn residuals(transfer: &Transfer, data_in: u64, data_out_wanted: Option<u64>) -> (Residual, Residual) {
    let expected_out = u64::from(transfer.expected_out);
    let data_out = data_out_wanted.unwrap_or(expected_out);
    let of_read = Residual::new(u64::from(transfer.expected_in), data_in);
    match (transfer.read, transfer.write) {
        (true, true) => (Residual::new(expected_out, data_out), of_read),
        (true, false) => (of_read, Residual::None),
        (false, true) => (Residual::new(expected_out, data_out), Residual::None),
        // announced none; the CDB may ask for some all the same
        (false, false) => (Residual::new(0, data_in.max(data_out)), Residual::None),
    }
}

/// Cuts data into lengths as asked for, without copying.
struct Cutter {
    pieces: <Payload as IntoIterator>::IntoIter,
    current: Bytes,
}

impl Cutter {
    fn new(pieces: Payload) -> Cutter {
        Cutter { pieces: pieces.into_iter(), current: Bytes::new() }
    }

    /// The next `length` bytes. Panics where there are fewer.
    fn cut(&mut self, length: usize) -> impl Iterator<Item = Bytes> {
        let mut missing = length;
        std::iter::from_fn(move || {
            if missing == 0 {
                return None;
            }
            while self.current.is_empty() {
                self.current = self.pieces.next().expect("the caller cuts no more than the pieces hold");
            }
            let piece = self.current.split_to(missing.min(self.current.len()));
            missing -= piece.len();
            Some(piece)
        })
    }
}

impl Session {
    pub fn respond(&mut self, link: &mut Link, tag: TaskTag, response: CommandResponse) {
        if !matches!(self.tasks.get(tag).map(|task| &task.work), Some(Work::Running(_))) {
            return; // aborted meanwhile
        }
        let Some(task) = self.drop_task(link, tag) else { return };
        let Work::Running(mut transfer) = task.work else { return };
        let presented: usize = response.data_in.len();
        let (residual, read_residual) = residuals(&transfer, presented as u64, response.data_out_wanted);
        let length = presented.min(transfer.expected_in as usize);
        let quiet = matches!(response.status, STATUS_GOOD | STATUS_CONDITION_MET) && response.sense.is_none();
        let collapse = quiet && !transfer.write && length > 0;
        if length > 0 {
            let status = collapse.then_some((response.status, residual));
            self.send_data(link, task.initiator_tag, &mut transfer, response.data_in, length, status);
        }
        if !collapse {
            let header = ScsiResponse {
                response: ServiceResponse::Completed,
                status: response.status,
                task_tag: task.initiator_tag,
                numbers: link.status_numbers(self.window()),
                exp_data_sn: transfer.data_sn,
                residual,
                read_residual,
            };
            send_status(link, &header, response.sense.as_deref());
        }
    }

    /// Splits `length` bytes into PDUs that the initiator accepts, in sequences of MaxBurstLength.
    fn send_data(
        &mut self,
        link: &mut Link,
        initiator_tag: u32,
        transfer: &mut Transfer,
        data: Payload,
        length: usize,
        status: Option<(u8, Residual)>,
    ) {
        let window = self.window();
        let segment = self.parameters.send_segment_bytes as usize;
        let burst = self.parameters.max_burst_bytes as usize;
        let mut data = Cutter::new(data);
        let (mut offset, mut burst_end) = (0, burst.min(length));
        while offset < length {
            let take = segment.min(burst_end - offset);
            let end = offset + take;
            let status = status.filter(|_| end == length).map(|(status, residual)| DataInStatus {
                status,
                stat_sn: link.status_numbers(window).stat_sn,
                residual,
            });
            let header = DataIn {
                is_final: end == burst_end,
                acknowledge: false,
                task_tag: initiator_tag,
                target_tag: RESERVED_TAG,
                lun: 0,
                exp_cmd_sn: window.exp_cmd_sn,
                max_cmd_sn: window.max_cmd_sn,
                data_sn: transfer.data_sn,
                offset_bytes: offset as u32,
                status,
            };
            link.output.push(&header.emit(Lengths::data(take)), data.cut(take));
            transfer.data_sn += 1;
            offset = end;
            if offset == burst_end {
                burst_end = (burst_end + burst).min(length);
            }
        }
    }
}

fn send_status(link: &mut Link, header: &ScsiResponse, sense: Option<&[u8]>) {
    let Some(sense) = sense.filter(|sense| !sense.is_empty()) else {
        return link.output.push_small(&header.emit(Lengths::default()), &[]);
    };
    let sense = &sense[..sense.len().min(SENSE_BYTES_MAX)];
    let mut data = [0; 2 + SENSE_BYTES_MAX];
    data[..2].copy_from_slice(&(sense.len() as u16).to_be_bytes());
    data[2..2 + sense.len()].copy_from_slice(sense);
    let data = &data[..2 + sense.len()];
    link.output.push_small(&header.emit(Lengths::data(data.len())), data);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(expected_in: Option<u32>, expected_out: Option<u32>) -> Transfer {
        Transfer {
            read: expected_in.is_some(),
            write: expected_out.is_some(),
            expected_in: expected_in.unwrap_or(0),
            expected_out: expected_out.unwrap_or(0),
            data_sn: 0,
            reserved_bytes: 0,
        }
    }

    /// RFC 7143 §11.4.5.1, and the short INQUIRY that initiators complain about when it is wrong.
    #[test]
    fn residual_table() {
        use Residual::{None as Exact, Overflow, Underflow};
        let table = [
            (transfer(Some(512), None), 512, None, (Exact, Exact)),
            (transfer(Some(255), None), 96, None, (Underflow(159), Exact)),
            (transfer(Some(200), None), 512, None, (Overflow(312), Exact)),
            (transfer(Some(0), None), 512, None, (Overflow(512), Exact)),
            (transfer(None, Some(512)), 0, None, (Exact, Exact)),
            (transfer(None, Some(512)), 0, Some(512), (Exact, Exact)),
            (transfer(None, Some(10_000)), 0, Some(512), (Underflow(9488), Exact)),
            (transfer(None, Some(200)), 0, Some(512), (Overflow(312), Exact)),
            (transfer(None, None), 0, None, (Exact, Exact)),
            (transfer(None, None), 512, None, (Overflow(512), Exact)),
            (transfer(None, None), 0, Some(512), (Overflow(512), Exact)),
            (transfer(Some(8), Some(8)), 4, Some(16), (Overflow(8), Underflow(4))),
        ];
        for (transfer, data_in, wanted, expected) in table {
            assert_eq!(residuals(&transfer, data_in, wanted), expected, "{transfer:?} {data_in} {wanted:?}");
        }
    }
}
