//! Clients that do not keep to the rules of HTTP/2.

use super::fixture::{PUT, World, in_time, read};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// Seeds of generated connections.
const SEEDS: u64 = 300;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Type and payload of each whole frame.
fn frames(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let Some((payload, next)) = rest.split_at_checked(length) else {
            break;
        };
        frames.push((head[3], payload));
        bytes = next;
    }
    frames
}

/// A request in HPACK, without compression.
pub(super) fn head(path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "etcd"),
        (":path", path),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.as_bytes());
        }
    }
    block
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn byte(&mut self) -> u8 {
        self.below(256).to_le_bytes()[0]
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.byte()).collect()
    }

    /// A frame that may be valid, have odd flags, a wrong stream, a wrong length, or be of an unknown kind.
    fn frame(&mut self) -> Vec<u8> {
        let stream = u32::try_from(self.below(12)).unwrap();
        match self.below(8) {
            0 => frame(
                HEADERS,
                END_HEADERS | (self.byte() & END_STREAM),
                stream,
                &head(PUT),
            ),
            1 => frame(HEADERS, self.byte(), stream, &self.bytes(60)),
            2 => frame(DATA, self.byte(), stream, &self.bytes(2000)),
            3 => frame(RST_STREAM, 0, stream, &[0, 0, 0, self.byte()]),
            4 => frame(WINDOW_UPDATE, 0, stream, &[self.byte(), 0, 0, self.byte()]),
            5 => frame(SETTINGS, self.byte() & 1, 0, &self.bytes(30)),
            6 => frame(self.byte(), self.byte(), stream, &self.bytes(40)),
            _ => self.bytes(30),
        }
    }
}

/// Whatever a client sends, the gate serves the others. Each message that etcd gets is one that a client sent
/// as a whole request, or has the end that the client gave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_frames_harm_no_other_client() {
    let mut world = World::begin().await;
    let good = world.client().await;
    for seed in 1..=SEEDS {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut client = TcpStream::connect(world.address).await.unwrap();
        let mut bytes = Vec::new();
        if random.below(10) > 0 {
            bytes.extend(PREFACE);
            bytes.extend(frame(SETTINGS, 0, 0, &[]));
        }
        for _ in 0..random.below(20) {
            bytes.extend(random.frame());
        }
        // The gate may end the connection at any byte.
        let _ = client.write_all(&bytes).await;
        if random.below(2) == 0 {
            let _ = client.shutdown().await;
        }
        let mut answer = [0; 4096];
        let _ = in_time(client.read(&mut answer)).await;
        if seed % 20 == 0 {
            drop(client);
            while world.etcd.has_arrived() {
                drop(world.etcd.next().await);
            }
            let asked = good.call("/etcdserverpb.KV/Good").await;
            loop {
                let arrived = world.etcd.next().await;
                if arrived.request.uri().path().ends_with("Good") {
                    arrived.answer(b"answer");
                    break;
                }
            }
            let answer = read(in_time(asked.response).await.unwrap()).await;
            assert_eq!(answer.0, b"answer", "after seed {seed}");
        }
    }
    while world.etcd.has_arrived() {
        drop(world.etcd.next().await);
    }
    world.shows("etcdbr_gate_open_connections 1").await;
}

/// A flood of opened and reset streams ends the connection of that client.
#[tokio::test]
async fn a_flood_of_reset_streams_ends_its_connection_only() {
    let mut world = World::begin().await;
    let good = world.client().await;
    let mut client = TcpStream::connect(world.address).await.unwrap();
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    // `:method POST`, `:scheme http`, `:path /` and the authority. The gate reads more of these short streams
    // at once than may be reset.
    let short_head = b"\x83\x86\x84\x01\x04etcd";
    for stream in 0..50_000 {
        let stream = 2 * stream + 1;
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, short_head));
        bytes.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
    }
    let flood = async {
        let _ = client.write_all(&bytes).await;
        // The gate ends the connection, and may reset the connection after the last frame.
        let (mut answer, mut chunk) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = client.read(&mut chunk).await {
            answer.extend_from_slice(&chunk[..read]);
        }
        answer
    };
    let other = async {
        let asked = good.call("/etcdserverpb.KV/Good").await;
        loop {
            let arrived = world.etcd.next().await;
            if arrived.request.uri().path().ends_with("Good") {
                arrived.answer(b"answer");
                break;
            }
        }
        read(in_time(asked.response).await.unwrap()).await
    };
    let (flooded, (answer, _)) = Box::pin(in_time(async { tokio::join!(flood, other) })).await;
    assert_eq!(answer, b"answer");
    // The last stream, and the reason ENHANCE_YOUR_CALM.
    let is_calmed =
        |(kind, payload): &(u8, &[u8])| *kind == GOAWAY && matches!(payload, [_, _, _, _, 0, 0, 0, 11, ..]);
    let frames = frames(&flooded);
    assert!(frames.iter().any(is_calmed), "{frames:?}");
}
