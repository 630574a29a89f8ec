//! INQUIRY: standard data and vital product data pages (SPC-4 §6.6, §7.8; SBC-3 §6.6).

use base::limits::{
    COMPARE_AND_WRITE_BYTES_MAX, TRANSFER_BYTES_MAX, UNMAP_DESCRIPTORS_MAX, WRITE_SAME_PIECE_BYTES,
};
use wire::scsi::cdb::InquiryCdb;
use wire::scsi::inquiry::{PERIPHERAL_DISK, StandardInquiry};
use wire::scsi::vpd::{self, Association, BlockLimits, Designator};
use zerocopy::FromBytes;

use crate::call::Call;
use crate::commands::copy;
use crate::fault::Fault;
use crate::identity::{PRODUCT, VENDOR};
use crate::response::Step;
use crate::unit::LogicalUnit;

/// The revision where there is no logical unit to have one.
pub(crate) const NO_REVISION: [u8; 4] = *b"    ";

type MakeBody = fn(&Call<'_>) -> Vec<u8>;

/// The pages, ascending, each with what makes its body. One that is not here does not exist.
const PAGES: &[(u8, MakeBody)] = &[
    (vpd::SUPPORTED_PAGES, |_| PAGES.iter().map(|page| page.0).collect()),
    (vpd::UNIT_SERIAL_NUMBER, |call| call.unit.identity.serial.clone().into_bytes()),
    (vpd::DEVICE_IDENTIFICATION, |call| vpd::emit_designators(&designators(call))),
    (vpd::EXTENDED_INQUIRY, |call| vpd::emit_extended_inquiry(call.unit.geometry.write_back)),
    (vpd::MODE_PAGE_POLICY, |_| vpd::emit_mode_page_policy()),
    (vpd::SCSI_PORTS, |call| {
        let ports = call.unit.target.ports.iter();
        vpd::emit_ports(&ports.map(|port| (port.relative_id, port.name.as_str())).collect::<Vec<_>>())
    }),
    (vpd::THIRD_PARTY_COPY, |_| copy::page()),
    (vpd::BLOCK_LIMITS, |call| call.unit.block_limits().emit()),
    (vpd::BLOCK_CHARACTERISTICS, |_| vpd::emit_block_characteristics()),
    (vpd::LOGICAL_BLOCK_PROVISIONING, |call| {
        vpd::emit_provisioning(
            call.unit.geometry.thin.then(|| (call.space)().map_or(0, |_| call.unit.threshold_exponent())),
        )
    }),
];

pub(crate) fn inquiry(call: &mut Call<'_>) -> Result<Step, Fault> {
    const EVPD: u8 = 0x01;
    let view = InquiryCdb::read_from_bytes(call.cdb).expect("the table gives INQUIRY six bytes");
    let allocation_bytes = usize::from(view.allocation_length.get());
    if view.flags & EVPD != 0 {
        let (page, body) = PAGES.iter().find(|(page, _)| *page == view.page).ok_or(Fault::cdb(2))?;
        return call.parameters(vpd::emit_page(*page, &body(call)), allocation_bytes);
    }
    if view.page != 0 {
        return Err(Fault::cdb(2));
    }
    let standard = StandardInquiry {
        peripheral: PERIPHERAL_DISK,
        alua: true,
        third_party_copy: true,
        multiple_ports: call.unit.target.ports.len() > 1,
        vendor: VENDOR,
        product: PRODUCT,
        revision: call.unit.identity.revision,
    };
    call.parameters(standard.emit(), allocation_bytes)
}

/// Names of the logical unit, of the port that the question came through, and of the target device.
fn designators(call: &Call<'_>) -> Vec<Designator> {
    let (identity, target) = (&call.unit.identity, &call.unit.target);
    let hexadecimal: String = identity.naa.iter().map(|byte| format!("{byte:02X}")).collect();
    let mut list = vec![
        Designator::Naa(identity.naa),
        Designator::T10 { vendor: VENDOR, specific: identity.serial.clone() },
        Designator::ScsiName(Association::LogicalUnit, format!("naa.{hexadecimal}")),
    ];
    if let Some(port) = target.ports.iter().find(|port| port.relative_id == call.nexus.port()) {
        list.push(Designator::RelativeTargetPort(port.relative_id));
        list.push(Designator::TargetPortGroup(port.group));
        list.push(Designator::ScsiName(Association::TargetPort, port.name.clone()));
    }
    list.push(Designator::ScsiName(Association::TargetDevice, target.name.clone()));
    list
}

/// Log2 of the bytes of a threshold set.
const THRESHOLD_SET_SHIFT: u32 = 20;

impl LogicalUnit {
    /// Bytes as threshold sets of the logical block provisioning pages, as many as a field holds.
    pub(crate) fn threshold_sets(&self, bytes: u64) -> u32 {
        u32::try_from(bytes >> THRESHOLD_SET_SHIFT).unwrap_or(u32::MAX)
    }

    /// THRESHOLD EXPONENT: log2 of the logical blocks of a threshold set.
    pub(crate) fn threshold_exponent(&self) -> u8 {
        (THRESHOLD_SET_SHIFT - self.geometry.block_bytes.trailing_zeros()) as u8
    }

    /// MAXIMUM COMPARE AND WRITE LENGTH.
    pub(crate) fn compare_and_write_blocks_max(&self) -> u8 {
        (COMPARE_AND_WRITE_BYTES_MAX / self.geometry.block_bytes as usize).min(255) as u8
    }

    pub(crate) fn block_limits(&self) -> BlockLimits {
        let block_bytes = self.geometry.block_bytes as usize;
        let physical = 1 << self.physical_exponent();
        let thin = self.geometry.thin;
        BlockLimits {
            write_same_nonzero: true,
            compare_and_write_max: self.compare_and_write_blocks_max(),
            transfer_granularity: physical,
            transfer_max: (TRANSFER_BYTES_MAX / block_bytes) as u32,
            transfer_optimal: (WRITE_SAME_PIECE_BYTES / block_bytes) as u32,
            prefetch_max: 0,
            unmap_blocks_max: if thin { self.unmap_blocks_max() } else { 0 },
            unmap_granularity: if thin { u32::from(physical) } else { 0 },
            write_same_max: self.write_same_blocks_max(),
            unmap_descriptors_max: if thin { UNMAP_DESCRIPTORS_MAX as u32 } else { 0 },
        }
    }
}
