//! The hot path makes no allocation for a request, and copies its data at most once. The test counts both on a real
//! shard that serves a memory volume and a volume in a pool over iSCSI.
//!
//! Only the shard's thread is counted. A turn may allocate (the list of pieces of its send), and so may a
//! batch of a pool's log; a request may not:
//! 64 requests of one turn cost no more than a few. The counted copies are those of the C library's functions; only the
//! streaming copies of memory volumes do not use them.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the client of a test is the world")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use api::{Command, NewBacking, NewHost, NewPool, NewVolume, Reply};
use bytes::{Bytes, BytesMut};
use engine::{Memory, Saving, Shard, ShardMessage, StartParameters};
use env::Env;
use iscsi::initiator::{Event, Initiator, InitiatorParams, Request};
use uring::{Mailbox, Options, UringEnv, spawn_shards};

const INITIATOR: &str = "iqn.2026-11.org.example:count";
const BLOCK: u32 = 4096;
const BLOCKS: u64 = 4096;
const BATCHES: u64 = 50;
const DRIVE_BYTES: u64 = 1 << 30;
const MEMORY: u16 = 0;
const POOL: u16 = 1;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
thread_local! {
    static COUNTED: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTED.try_with(Cell::get).unwrap_or(false) {
            ALLOCATIONS.fetch_add(1, SeqCst);
        }
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of copies of whole blocks.
static COPIED_BYTES: AtomicU64 = AtomicU64::new(0);

/// `memcpy` and `memmove` of this program: whoever copies calls these, and not the C library's.
#[cfg(target_arch = "x86_64")]
mod copies {
    use std::arch::asm;
    use std::cell::Cell;
    use std::sync::atomic::Ordering::SeqCst;

    use super::{BLOCK, COPIED_BYTES, COUNTED};

    /// What is not whole blocks is no data, but a structure: futures of some KiB, which a build that is not optimised moves.
    fn note(bytes: usize) {
        if bytes > 0 && bytes.is_multiple_of(BLOCK as usize) && COUNTED.try_with(Cell::get).unwrap_or(false) {
            COPIED_BYTES.fetch_add(bytes as u64, SeqCst);
        }
    }

    // SAFETY: it does what the C library's does, under the same promises.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
        note(bytes);
        // SAFETY: both are as long as the caller promises; the direction flag is clear between functions.
        unsafe {
            asm!("rep movsb", inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
        to
    }

    // SAFETY: it does what the C library's does, under the same promises.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
        if (to as usize).wrapping_sub(from as usize) >= bytes {
            // SAFETY: forwards, nothing is overwritten before it is read.
            return unsafe { memcpy(to, from, bytes) };
        }
        note(bytes);
        // SAFETY: both are as long as the caller promises; backwards, nothing is overwritten before it is read.
        unsafe {
            asm!("std", "rep movsb", "cld", inout("rcx") bytes => _, inout("rdi") to.add(bytes - 1) => _,
                inout("rsi") from.add(bytes - 1) => _, options(nostack));
        }
        to
    }
}

fn ask(shard: &Mailbox<ShardMessage>, command: Command) -> Reply {
    let (reply, answer) = channel();
    let reply = Box::new(move |answer| reply.send(answer).expect("we wait"));
    let message = ShardMessage::Control(command, reply, api::patient_caller());
    assert!(shard.try_send(message).is_ok(), "the shard takes commands");
    answer.recv().expect("it answers").expect("it can be done")
}

/// A shard with a memory volume (LUN 0) and one in a pool of three file drives (LUN 1); its portal.
fn serve(directory: &Path) -> (SocketAddr, String) {
    let (started, is_started) = channel();
    let parameters = StartParameters {
        portals: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
        drives: Vec::new(),
        head: base::HeadId(1),
        term: 0,
        array_name: "count".to_owned(),
        pair: None,
        was_paired: false,
        state: None,
        save_state: Box::new(|_| Saving::kept()),
        newest_event: 0,
        started: Box::new(move |result| started.send(result).expect("we wait")),
    };
    let parameters = Arc::new(Mutex::new(Some(parameters)));
    let shards = spawn_shards(&Options::new(1), move |mut env: UringEnv<ShardMessage>| {
        COUNTED.set(true);
        let parameters = parameters.lock().expect("nobody panics with it").take();
        let mut shard = Shard::new(env.shard(), env.shards(), parameters, Memory::default());
        while !shard.is_stopped() {
            shard.turn(&mut env, true);
        }
    });
    let shard = shards.expect("io_uring").mailboxes.remove(0);
    is_started.recv().expect("it starts").expect("it can listen");
    let drive = |n: u32| {
        let path = directory.join(format!("drive-{n}"));
        File::create(&path).and_then(|file| file.set_len(DRIVE_BYTES)).expect("a sparse file");
        path.to_str().expect("a path in UTF-8").to_owned()
    };
    let pool = NewPool::new("p", "parity-1", (0..3).map(drive).collect());
    ask(&shard, Command::PoolCreate { pool, dry_run: false });
    for (name, backing) in [("m", NewBacking::Memory), ("v", NewBacking::Pool("p".to_owned()))] {
        let volume = NewVolume {
            name: name.to_owned(),
            backing,
            size_bytes: Some(BLOCKS * u64::from(BLOCK)),
            block_bytes: BLOCK,
            write_back: false,
        };
        ask(&shard, Command::VolumeCreate { volume, dry_run: false });
    }
    let host = NewHost {
        name: "h".to_owned(),
        initiators: vec![INITIATOR.to_owned()],
        chap: None,
        mutual_chap: None,
    };
    ask(&shard, Command::HostCreate { host, dry_run: false });
    for (volume, lun) in [("m", MEMORY), ("v", POOL)] {
        let (volume, host) = (volume.to_owned(), "h".to_owned());
        ask(&shard, Command::Map { volume, host, lun: Some(lun), read_only: false, dry_run: false });
    }
    let Reply::Status(status) = ask(&shard, Command::Status) else { panic!("a status") };
    (status.portals[0].address.parse().expect("an address"), status.target_name)
}

struct Client {
    socket: TcpStream,
    initiator: Initiator,
    input: BytesMut,
}

impl Client {
    fn new((portal, target): &(SocketAddr, String)) -> Client {
        let socket = TcpStream::connect(portal).expect("it listens");
        socket.set_nodelay(true).expect("a socket");
        let initiator = Initiator::new(InitiatorParams::new(INITIATOR, Some(target)));
        let mut client = Client { socket, initiator, input: BytesMut::new() };
        while !matches!(client.next_event(), Event::LoggedIn { .. }) {}
        client
    }

    fn next_event(&mut self) -> Event {
        loop {
            if let Some(event) = self.initiator.next_event() {
                return event;
            }
            self.socket.write_all(&self.initiator.take_output().concat()).expect("sent");
            let mut room = [0; 64 << 10];
            let received = self.socket.read(&mut room).expect("received");
            assert!(received > 0, "the target closed the connection");
            self.input.extend_from_slice(&room[..received]);
            self.initiator.on_receive(&mut self.input, &mut || 1);
        }
    }

    /// `depth` requests in one piece, and all of their answers; how many were good.
    fn batch(&mut self, lun: u16, write: bool, depth: u64, batch: u64) -> u64 {
        for index in 0..depth {
            let mut cdb = [0; 16];
            cdb[0] = if write { 0x8a } else { 0x88 };
            cdb[2..10].copy_from_slice(&((batch * 7 + index * 61) % BLOCKS).to_be_bytes());
            cdb[13] = 1;
            let mut request = Request::new(u64::from(lun) << 48, cdb);
            match write {
                true => request.data_out = Bytes::from(vec![7; BLOCK as usize]).into(),
                false => request.expected_in = BLOCK,
            }
            self.initiator.command(request).expect("the window is open");
        }
        let (mut good, mut left) = (0, depth);
        while left > 0 {
            if let Event::Completed(_, completion) = self.next_event() {
                good += u64::from(completion.status == 0);
                left -= 1;
            }
        }
        good
    }
}

/// One test, because one count.
#[test]
fn requests_allocate_nothing_and_data_is_copied_once_at_most() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut client = Client::new(&serve(directory.path()));
    // attentions, slabs, buffers that grow once, and every block of the pool written
    for batch in 0..BLOCKS / 16 {
        for lun in [MEMORY, POOL] {
            client.batch(lun, true, 64, batch);
            client.batch(lun, false, 64, batch);
        }
    }
    for (write, depth, per_turn_max) in [(false, 64, 12), (true, 64, 24), (false, 1, 6), (true, 1, 6)] {
        let counted = count(&mut client, MEMORY, write, depth);
        assert!(counted > 0, "a turn's send has a list of pieces: nothing was counted at all");
        assert!(
            counted <= BATCHES * per_turn_max,
            "write {write} at depth {depth}: {counted} for {BATCHES} turns"
        );
    }
    // a turn's writes are a batch or two
    for (write, per_turn_max) in [(false, 20), (true, 60)] {
        let counted = count(&mut client, POOL, write, 64);
        assert!(
            counted <= BATCHES * per_turn_max,
            "write {write} to the pool: {counted} for {BATCHES} turns of 64"
        );
    }
    #[cfg(target_arch = "x86_64")]
    for (lun, write, least, most) in
        [(MEMORY, false, 0, 5), (MEMORY, true, 0, 10), (POOL, false, 0, 5), (POOL, true, 100, 115)]
    {
        let copied = count_copies(&mut client, lun, write);
        let all = BATCHES * 64 * u64::from(BLOCK);
        assert!(
            copied * 100 >= all * least && copied * 100 <= all * most,
            "LUN {lun}, write {write}: {copied} bytes were copied for {all}"
        );
    }
}

/// Bytes copied for [`BATCHES`] turns of 64 requests.
#[cfg(target_arch = "x86_64")]
fn count_copies(client: &mut Client, lun: u16, write: bool) -> u64 {
    let before = COPIED_BYTES.load(SeqCst);
    (0..BATCHES).for_each(|batch| assert_eq!(client.batch(lun, write, 64, batch), 64));
    let counted = COPIED_BYTES.load(SeqCst) - before;
    let what = if write { "writes" } else { "reads" };
    println!("LUN {lun}, {what}: {counted} bytes copied for {} requests", BATCHES * 64);
    counted
}

/// Allocations of [`BATCHES`] turns of as many requests.
fn count(client: &mut Client, lun: u16, write: bool, depth: u64) -> u64 {
    (0..BATCHES).for_each(|batch| assert_eq!(client.batch(lun, write, depth, batch), depth));
    let before = ALLOCATIONS.load(SeqCst);
    (0..BATCHES).for_each(|batch| assert_eq!(client.batch(lun, write, depth, batch), depth));
    let counted = ALLOCATIONS.load(SeqCst) - before;
    let what = if write { "writes" } else { "reads" };
    println!("LUN {lun}, {what} at depth {depth}: {counted} allocations for {} requests", BATCHES * depth);
    counted
}
