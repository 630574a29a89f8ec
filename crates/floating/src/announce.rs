//! The frames that tell a network where an address is now. Hosts and switches that had learnt it elsewhere learn it anew.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smoltcp::phy::{ChecksumCapabilities, Device, Medium, RawSocket, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr,
    Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr,
};

use crate::FloatingAddress;

/// All nodes of the link: an address of IPv6, and the one of Ethernet that belongs to it.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_HARDWARE: EthernetAddress = EthernetAddress([0x33, 0x33, 0, 0, 0, 1]);
/// Neighbours take no advertisement that a router may have passed on (RFC 4861, 7.1.2).
const HOP_LIMIT: u8 = 255;

/// Sends the frames of one announcement. Blocks, but for no longer than a driver takes for a frame.
pub(crate) fn announce(address: &FloatingAddress, hardware: [u8; 6]) -> io::Result<()> {
    let mut socket = RawSocket::new(&address.interface, Medium::Ethernet)?;
    for frame in frames(address.address, EthernetAddress(hardware)) {
        let token = socket.transmit(Instant::ZERO).expect("a raw socket always takes a frame");
        token.consume(frame.len(), |buffer| buffer.copy_from_slice(&frame));
    }
    Ok(())
}

/// Some hosts learn from requests alone, some from answers alone: ARP is announced as both.
fn frames(address: IpAddr, hardware: EthernetAddress) -> Vec<Vec<u8>> {
    match address {
        IpAddr::V4(address) => {
            [ArpOperation::Request, ArpOperation::Reply].map(|how| arp(how, address, hardware)).to_vec()
        }
        IpAddr::V6(address) => vec![advertisement(address, hardware)],
    }
}

fn ethernet(
    from: EthernetAddress,
    to: EthernetAddress,
    protocol: EthernetProtocol,
    payload_bytes: usize,
    emit: impl FnOnce(&mut [u8]),
) -> Vec<u8> {
    let repr = EthernetRepr { src_addr: from, dst_addr: to, ethertype: protocol };
    let mut bytes = vec![0; repr.buffer_len() + payload_bytes];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    repr.emit(&mut frame);
    emit(frame.payload_mut());
    bytes
}

fn arp(operation: ArpOperation, address: Ipv4Addr, hardware: EthernetAddress) -> Vec<u8> {
    let target = match operation {
        ArpOperation::Reply => EthernetAddress::BROADCAST,
        _ => EthernetAddress([0; 6]),
    };
    let repr = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: hardware,
        source_protocol_addr: address,
        target_hardware_addr: target,
        target_protocol_addr: address,
    };
    let emit = |payload: &mut [u8]| repr.emit(&mut ArpPacket::new_unchecked(payload));
    ethernet(hardware, EthernetAddress::BROADCAST, EthernetProtocol::Arp, repr.buffer_len(), emit)
}

fn advertisement(address: Ipv6Addr, hardware: EthernetAddress) -> Vec<u8> {
    let advertised = Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
        flags: NdiscNeighborFlags::OVERRIDE,
        target_addr: address,
        lladdr: Some(hardware.into()),
    });
    let header = Ipv6Repr {
        src_addr: address,
        dst_addr: ALL_NODES,
        next_header: IpProtocol::Icmpv6,
        payload_len: advertised.buffer_len(),
        hop_limit: HOP_LIMIT,
    };
    let emit = |payload: &mut [u8]| {
        let mut packet = Ipv6Packet::new_unchecked(payload);
        header.emit(&mut packet);
        let mut inner = Icmpv6Packet::new_unchecked(packet.payload_mut());
        advertised.emit(&address, &ALL_NODES, &mut inner, &ChecksumCapabilities::default());
    };
    let bytes = header.buffer_len() + advertised.buffer_len();
    ethernet(hardware, ALL_NODES_HARDWARE, EthernetProtocol::Ipv6, bytes, emit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 7];

    #[test]
    fn an_address_of_ipv4_is_announced_by_a_request_and_an_answer() {
        let frames = frames("10.1.2.3".parse().unwrap(), EthernetAddress(HARDWARE));
        let [request, answer] = &frames[..] else { panic!("{frames:?}") };
        for (frame, operation, target) in [(request, 1, [0; 6]), (answer, 2, [0xff; 6])] {
            let expected: Vec<u8> = [
                &[0xff; 6][..],
                &HARDWARE,
                &[8, 6, 0, 1, 8, 0, 6, 4, 0, operation],
                &HARDWARE,
                &[10, 1, 2, 3],
                &target,
                &[10, 1, 2, 3],
            ]
            .concat();
            assert_eq!(frame, &expected);
        }
    }

    #[test]
    fn an_address_of_ipv6_is_advertised_to_all_nodes() {
        let frames = frames("fd00::9".parse().unwrap(), EthernetAddress(HARDWARE));
        let [frame] = &frames[..] else { panic!("{frames:?}") };
        let packet = Ipv6Packet::new_checked(&frame[14..]).unwrap();
        assert_eq!((packet.hop_limit(), packet.dst_addr()), (255, ALL_NODES));
        let inner = Icmpv6Packet::new_checked(packet.payload()).unwrap();
        let parsed = Icmpv6Repr::parse(
            &packet.src_addr(),
            &packet.dst_addr(),
            &inner,
            &ChecksumCapabilities::default(),
        );
        let Ok(Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert { flags, target_addr, lladdr })) = parsed else {
            panic!("{parsed:?}");
        };
        assert_eq!(flags, NdiscNeighborFlags::OVERRIDE);
        assert_eq!(target_addr, "fd00::9".parse::<Ipv6Addr>().unwrap());
        assert_eq!(lladdr, Some(EthernetAddress(HARDWARE).into()));
    }
}
