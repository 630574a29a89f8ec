//! All limits of the program in one place. Compile-time assertions relate them to each other.
//!
//! A full queue applies back-pressure. Nothing grows with the load.

/// Shards of one process, and lanes of one pool.
pub const SHARDS_MAX: usize = 16;
/// Drives of one pool.
pub const DRIVES_MAX: usize = 64;
/// Hot spares of one pool, and the length of the path of one.
pub const SPARES_MAX: usize = 16;
pub const SPARE_PATH_BYTES_MAX: usize = 1024;
/// Columns of one segment.
pub const WIDTH_MAX: usize = 16;
/// Volumes of one array.
pub const VOLUMES_MAX: usize = 4096;
/// Snapshots of one array.
pub const SNAPSHOTS_MAX: usize = 8192;
/// Snapshots that are taken at one moment.
pub const SNAPSHOTS_AT_ONCE_MAX: usize = 64;
/// Schedules of one array.
pub const SCHEDULES_MAX: usize = 256;
/// Snapshots that a schedule keeps of each kind.
pub const SCHEDULE_KEEPS_MAX: u32 = 1000;
/// Hosts of one array.
pub const HOSTS_MAX: usize = 1024;
/// Mappings of one array.
pub const MAPPINGS_MAX: usize = 16384;
/// LUN numbers that were freed last and are remembered, of all hosts.
pub const FREED_LUNS_MAX: usize = 1024;
/// LUNs of one host: single-level (peripheral and flat) addressing, SAM-5 §4.7.
pub const LUN_MAX: u16 = 16383;
/// Namespace identifiers of one host: as many as LUNs.
pub const NAMESPACE_MAX: u32 = 16384;
/// Heads of one array.
pub const HEADS_MAX: usize = 2;
/// Pools of one array.
pub const POOLS_MAX: usize = 16;
/// Deleted pools that are remembered, so that a drive which was away does not bring one back.
pub const DELETED_POOLS_MAX: usize = 64;
/// Drives that pools have lost and that are remembered.
pub const FAILED_DRIVES_MAX: usize = 64;
/// Letters of a volume's, host's, pool's or array's name.
pub const NAME_BYTES_MAX: usize = 63;
/// An iSCSI name, RFC 7143 §4.2.7.1.
pub const ISCSI_NAME_BYTES_MAX: usize = 223;
/// A name of NVM Express (NVM Express Base 2.0 §4.5).
pub const NVME_NAME_BYTES_MAX: usize = 223;
/// Initiators of one host.
pub const INITIATORS_PER_HOST_MAX: usize = 16;
/// A CHAP secret: 96 bits at least, RFC 7143 §9.2.1.
pub const CHAP_SECRET_BYTES_MIN: usize = 12;
pub const CHAP_SECRET_BYTES_MAX: usize = 255;
pub const CHAP_USER_BYTES_MAX: usize = 255;
/// A stored catalog, in bytes.
pub const CATALOG_BYTES_MAX: usize = 32 << 20;
/// A volume's largest size.
pub const VOLUME_BYTES_MAX: u64 = 1 << 50;
/// How many times its first size a volume in a pool can have; its layer is made with room for it.
pub const VOLUME_GROWTH_MAX: u64 = 256;
/// A drive's smallest size.
pub const DRIVE_BYTES_MIN: u64 = 1 << 30;

/// Addresses that the array listens on for one transport.
pub const PORTALS_MAX: usize = 32;
/// Portal groups that the configuration of a head may have, and their tags from 1.
pub const PORTAL_GROUPS_OF_A_HEAD_MAX: u16 = 32;
/// Portal groups of an array: those of the second head of a pair are behind those of the first one.
pub const PORTAL_GROUPS_MAX: u16 = 2 * PORTAL_GROUPS_OF_A_HEAD_MAX;
/// Drives that one head looks at, whether or not they belong to a pool.
pub const CONFIGURED_DRIVES_MAX: usize = 256;
/// Problems that one source of a head may have. A drive has a handful of them at most.
pub const HEAD_PROBLEMS_MAX: usize = 512;
/// Clients of the API that are connected at once, and requests that are at work at once, of each of its two sockets.
pub const API_CONNECTIONS_MAX: usize = 64;
pub const API_REQUESTS_MAX: usize = 32;
/// The body of one API request.
pub const API_BODY_BYTES_MAX: usize = 1 << 20;

/// Connections one shard serves.
pub const CONNECTIONS_PER_SHARD_MAX: usize = 1024;
/// iSCSI commands outstanding in one session: MaxCmdSN - ExpCmdSN + 1.
pub const COMMANDS_PER_SESSION_MAX: u32 = 128;
/// Largest transfer of one SCSI command, in bytes (block limits VPD page).
pub const TRANSFER_BYTES_MAX: usize = 4 << 20;
/// Largest COMPARE AND WRITE, in bytes compared.
pub const COMPARE_AND_WRITE_BYTES_MAX: usize = 128 << 10;
/// What one UNMAP may free, in bytes, and in how many descriptors.
pub const UNMAP_BYTES_MAX: usize = 512 << 20;
pub const UNMAP_DESCRIPTORS_MAX: usize = 256;
/// Largest WRITE SAME, in bytes written; carried out in pieces of [`WRITE_SAME_PIECE_BYTES`].
pub const WRITE_SAME_BYTES_MAX: usize = 16 << 20;
pub const WRITE_SAME_PIECE_BYTES: usize = 1 << 20;
/// Registered I_T nexuses of one volume, and the parameter list that may name them.
pub const REGISTRATIONS_PER_VOLUME_MAX: usize = 1024;
pub const RESERVE_OUT_BYTES_MAX: usize = 64 << 10;
/// Registrations of one array that survive a restart (APTPL).
pub const REGISTRATIONS_KEPT_MAX: usize = 16384;
/// EXTENDED COPY: descriptors of one command, bytes of one segment, and the pieces that it is copied in.
pub const COPY_TARGETS_MAX: usize = 16;
pub const COPY_SEGMENTS_MAX: usize = 64;
pub const COPY_DESCRIPTORS_BYTES_MAX: usize = 4096;
pub const COPY_SEGMENT_BYTES_MAX: usize = 64 << 20;
pub const COPY_PIECE_BYTES: usize = 1 << 20;
/// Minimum length, in bytes, of a range that is copied by reference inside a pool.
pub const COPY_BY_REFERENCE_BYTES_MIN: u64 = 64 << 10;
/// Layers that only copies keep, of the array and of one volume.
pub const COPIED_FROM_MAX: usize = 1024;
pub const COPIED_FROM_PER_VOLUME_MAX: usize = 64;
/// Copies of one nexus whose results are kept.
pub const COPIES_REMEMBERED_MAX: usize = 16;
/// LBA status descriptors of one GET LBA STATUS.
pub const LBA_STATUS_DESCRIPTORS_MAX: usize = 64;
/// How often one GET LBA STATUS asks the volume.
pub const LBA_STATUS_REQUESTS_MAX: usize = 64;
/// MaxRecvDataSegmentLength that we declare.
pub const RECEIVE_SEGMENT_BYTES_MAX: usize = 256 << 10;
/// Text that a login may gather over several PDUs.
pub const LOGIN_TEXT_BYTES_MAX: usize = 64 << 10;
/// Connections in login, and discovery sessions, at once on one shard; a further one replaces one of
/// them. A login that takes longer than [`LOGIN_NS_MAX`] is dropped.
pub const LOGINS_PER_SHARD_MAX: usize = 128;
/// Sessions of one host, and from one address, on all shards. A host without a session is always admitted.
pub const SESSIONS_PER_HOST_MAX: usize = 512;
pub const SESSIONS_PER_ADDRESS_MAX: usize = 768;
/// Sessions on one shard. Beyond this number, only hosts without a session are admitted.
pub const SESSIONS_PER_SHARD_MAX: usize = CONNECTIONS_PER_SHARD_MAX - LOGINS_PER_SHARD_MAX;
/// Addresses with wrong CHAP secrets that a shard remembers.
pub const FAILED_SOURCES_MAX: usize = 1024;
pub const LOGIN_NS_MAX: u64 = 15_000_000_000;
/// Idle time after which an initiator is probed with NOP-In, and after which it is given up.
pub const NOP_IDLE_NS: u64 = 15_000_000_000;
pub const NOP_ANSWER_NS_MAX: u64 = 15_000_000_000;

/// How full a pool must be before its hosts are warned. It is checked every [`SPACE_WATCH_NS`].
pub const SPACE_THRESHOLD_PERCENT: u64 = 90;

/// From this percentage on, `status` warns that a pool is becoming full.
pub const SPACE_WARNING_PERCENT: u64 = 80;
const _: () = assert!(SPACE_WARNING_PERCENT < SPACE_THRESHOLD_PERCENT);

/// Volumes and hosts with recently refused writes that each shard remembers.
pub const SPACE_REFUSALS_MAX: usize = 64;
pub const SPACE_WATCH_NS: u64 = 10_000_000_000;

/// Commands waiting from the control plane to one shard.
pub const CONTROL_QUEUE_MAX: usize = 256;
/// Events that shard 0 holds for the control plane, and those of one answer.
pub const EVENTS_HELD_MAX: usize = 4096;
pub const EVENTS_AT_ONCE_MAX: usize = 512;
/// Readers of events that shard 0 lets wait for the next one.
pub const EVENT_READERS_MAX: usize = 8;
/// Kinds of repeated events that a shard tells apart.
pub const EVENTS_LIMITED_MAX: usize = 256;
/// Events that the control plane holds for its clients, and the bytes of one file of the journal; there are two files.
pub const EVENTS_KEPT_MAX: usize = 16_384;
pub const JOURNAL_FILE_BYTES_MAX: u64 = 4 << 20;
/// Numbers of events that a start skips if the run before may have used some that the journal does not have. A run that
/// cannot write its journal would use them up in 49 days at 1,000 events a second; 2^21 starts fit into the numbers
/// that JSON can hold exactly.
pub const EVENT_NUMBERS_SKIPPED: u64 = 1 << 32;

/// Transfers of volumes by the control plane, at once.
pub const TRANSFERS_MAX: usize = 16;
/// One request of a transfer, and what one transfer holds of a shard's data budget.
pub const BULK_BYTES_MAX: usize = 1 << 20;
pub const TRANSFER_BYTES_MAX_HELD: usize = 4 << 20;
/// Requests of all transfers at one shard.
pub const BULK_REQUESTS_MAX: usize = 64;
/// Ranges in one answer of which ranges hold data.
pub const BULK_EXTENTS_MAX: usize = 128;
const _: () = assert!(BULK_BYTES_MAX <= TRANSFER_BYTES_MAX_HELD && BULK_BYTES_MAX <= TRANSFER_BYTES_MAX);
const _: () = assert!(BULK_REQUESTS_MAX <= CONTROL_QUEUE_MAX);

/// Messages waiting from one shard to another.
pub const SHARD_QUEUE_MAX: usize = 4096;

const _: () = assert!(RECEIVE_SEGMENT_BYTES_MAX <= TRANSFER_BYTES_MAX);
const _: () = assert!(TRANSFER_BYTES_MAX.is_multiple_of(crate::units::BLOCK_BYTES));
const _: () = assert!(MAPPINGS_MAX >= VOLUMES_MAX);
const _: () = assert!(SESSIONS_PER_HOST_MAX <= SESSIONS_PER_ADDRESS_MAX);
const _: () = assert!(SESSIONS_PER_ADDRESS_MAX < SESSIONS_PER_SHARD_MAX);
const _: () = assert!(CONFIGURED_DRIVES_MAX >= DRIVES_MAX);
const _: () = assert!(2 * API_REQUESTS_MAX + EVENT_READERS_MAX <= CONTROL_QUEUE_MAX);
const _: () = assert!(EVENTS_AT_ONCE_MAX <= EVENTS_HELD_MAX && EVENTS_HELD_MAX <= EVENTS_KEPT_MAX);
const _: () = assert!(SHARD_QUEUE_MAX >= COMMANDS_PER_SESSION_MAX as usize * SHARDS_MAX);
const _: () = assert!(2 * COMPARE_AND_WRITE_BYTES_MAX <= TRANSFER_BYTES_MAX);
const _: () = assert!(COPY_TARGETS_MAX * 32 + COPY_SEGMENTS_MAX * 28 <= COPY_DESCRIPTORS_BYTES_MAX);
const _: () = assert!(COPY_PIECE_BYTES <= TRANSFER_BYTES_MAX);
const _: () = assert!(WRITE_SAME_PIECE_BYTES <= TRANSFER_BYTES_MAX);

/// MaxBurstLength that we agree to: the largest piece of a write that one R2T asks for.
pub const BURST_BYTES_MAX: usize = 1 << 20;
/// FirstBurstLength that we agree to: the unsolicited data of a write command. open-iscsi offers the same. Unsolicited data
/// saves a round trip, and counts in a shard's budget for commands from the arrival of the command.
pub const FIRST_BURST_BYTES_MAX: usize = 256 << 10;
/// MaxOutstandingR2T that we agree to.
pub const OUTSTANDING_R2TS_MAX: u32 = 8;
/// Immediate commands (those outside the CmdSN window) outstanding in one session.
pub const IMMEDIATE_COMMANDS_MAX: u32 = 32;
/// Write data of one session that R2Ts have requested and that has not been answered yet. Further R2Ts wait for room here.
pub const WRITE_BYTES_PER_SESSION_MAX: usize = 8 << 20;
/// Data of one session's reads, from before they are executed until the data has been sent.
pub const READ_BYTES_PER_SESSION_MAX: usize = 8 << 20;
/// Output queued for one connection beyond which nothing more is received from it.
pub const OUTPUT_BYTES_PER_CONNECTION_MAX: usize = 8 << 20;
/// Bytes that a command uses in a shard's budget for commands, besides its data.
pub const COMMAND_BYTES: usize = 2 << 10;
/// Keys of one login or text negotiation.
pub const TEXT_KEYS_MAX: usize = 256;
/// CHAP challenges, ours and theirs (RFC 7143 §12.1.3).
pub const CHAP_CHALLENGE_BYTES_MAX: usize = 1024;

const _: () = assert!(WRITE_BYTES_PER_SESSION_MAX >= TRANSFER_BYTES_MAX);
const _: () = assert!(FIRST_BURST_BYTES_MAX <= RECEIVE_SEGMENT_BYTES_MAX);
const _: () = assert!(FIRST_BURST_BYTES_MAX <= BURST_BYTES_MAX && BURST_BYTES_MAX <= TRANSFER_BYTES_MAX);
const _: () = assert!(READ_BYTES_PER_SESSION_MAX >= TRANSFER_BYTES_MAX);
