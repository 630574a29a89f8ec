//! A host to which every volume is mapped read-only. It tries to write, to exclude the hosts that write, and to end
//! their commands. All of this must be refused, and must not affect other hosts.

use std::net::SocketAddr;
use std::rc::Rc;

use base::Nanos;
use block::Payload;
use iscsi::initiator::{InitiatorParams, Request};
use task::Io;
use wire::iscsi::TaskManagementFunction;
use wire::scsi::Lun;
use wire::scsi::port_groups::{PortGroupState, emit_set_port_groups};
use wire::scsi::reservation::ReserveOutList;

use super::lun::sense;
use super::session::{Ended, HostSession};
use crate::counts::counted;
use crate::oracle::SECTOR_BYTES;
use crate::workload::{Failure, Shared};

counted! {
    /// What a host was refused that may only read.
    Seen: "onlooker: " {
        Refused = "refused",
        Reset = "reset what it may only read",
    }
}

/// What it tries in one round.
const TIMES: u32 = 40;
const PAUSE_NS_MAX: u64 = 10_000_000;
pub const HOST: &str = "onlooker";
pub const INITIATOR: &str = "iqn.2026-11.test.sim:onlooker";

/// See the module's words.
pub struct Onlooker {
    pub io: Io,
    pub shared: Rc<Shared>,
    pub luns: Vec<u16>,
}

impl Onlooker {
    pub async fn run(self, address: SocketAddr, target: String) {
        let params = InitiatorParams::new(INITIATOR, Some(&target));
        let session = HostSession::new(&self.io, address, params);
        self.io.spawn(session.clone().run());
        for _ in 0..TIMES {
            self.io.sleep(Nanos(self.io.random_u64() % PAUSE_NS_MAX)).await;
            if self.shared.stop.get() || self.shared.has_failed() {
                return;
            }
            let lun = self.luns[(self.io.random_u64() % self.luns.len() as u64) as usize];
            let lun = Lun::new(lun).expect("a small number").emit();
            if self.io.random_u64().is_multiple_of(4) {
                session.manage(TaskManagementFunction::LogicalUnitReset, lun);
                Seen::Reset.seen();
            }
            self.try_something(&session, lun).await;
        }
    }

    async fn try_something(&self, session: &Rc<HostSession>, lun: u64) {
        let (name, cdb, data_out) = self.draw();
        let mut request = Request::new(lun, cdb);
        request.data_out = Payload::from(data_out);
        let Ended::Completed(completion) = session.command(request, None).await else { return };
        match (completion.status, sense(&completion)) {
            (0x02, (0x7, 0x27, 0x00)) => Seen::Refused.seen(),
            // busy, reservation conflict, task set full; unit attention, not ready
            (0x08 | 0x18 | 0x28, _) | (0x02, (0x6 | 0x2, ..)) => {}
            (status, sense) => {
                let what =
                    format!("{name} by a host that may only read: status {status:#04x}, sense {sense:x?}");
                self.shared.fail(Failure::Broken(what));
            }
        }
    }

    fn draw(&self) -> (&'static str, [u8; 16], Vec<u8>) {
        let cdb = |bytes: &[u8]| {
            let mut cdb = [0; 16];
            cdb[..bytes.len()].copy_from_slice(bytes);
            cdb
        };
        // a key of its own, or one of another host's
        let list = |key: u64, service_action_key: u64| {
            let list = ReserveOutList {
                key,
                service_action_key,
                specify_initiator_ports: false,
                all_target_ports: false,
                persist: false,
            };
            list.emit(&[])
        };
        let out = |action: u8| cdb(&[0x5F, action, 3, 0, 0, 0, 0, 0, 24, 0]);
        match self.io.random_u64() % 8 {
            0 => ("RESERVE (6)", cdb(&[0x16, 0, 0, 0, 0, 0]), Vec::new()),
            1 => ("REGISTER", out(0), list(0, 9)),
            2 => ("REGISTER AND IGNORE EXISTING KEY", out(6), list(0, 9)),
            3 => ("RESERVE", out(1), list(9, 0)),
            4 => ("PREEMPT AND ABORT", out(5), list(9, 1)),
            5 => ("CLEAR", out(3), list(1, 0)),
            6 => {
                let list = emit_set_port_groups(&[(1, PortGroupState::Standby)]);
                let length = list.len() as u8;
                ("SET TARGET PORT GROUPS", cdb(&[0xA4, 0x0A, 0, 0, 0, 0, 0, 0, 0, length, 0, 0]), list)
            }
            _ => ("WRITE (10)", cdb(&[0x2A, 0, 0, 0, 0, 0, 0, 0, 1, 0]), vec![0xEE; SECTOR_BYTES]),
        }
    }
}
