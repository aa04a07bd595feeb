//! Chunks of texts that look random: split, joined and spoilt.

#![allow(clippy::unwrap_used)]

use super::*;

/// A sequence that looks random and is always the same.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b'!' + u8::try_from(state % 90).unwrap()
    };
    (0..length).map(|_| next()).collect()
}

fn line(seed: u64, length: usize) -> Vec<u8> {
    let mut line = noise(seed, length);
    line.push(b'\n');
    line
}

fn split(lines: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::default();
    let mut chunks: Vec<_> = lines.iter().flat_map(|line| splitter.push(line)).collect();
    chunks.extend(splitter.rest());
    chunks
}

fn stored(packed: &Packed) -> StateChunk {
    StateChunk {
        name: "web.state-1-0".into(),
        size: i64::try_from(packed.size).unwrap(),
        sha256: packed.sha256.clone(),
    }
}

#[test]
fn any_lines_come_back_and_no_chunk_is_too_large() {
    for seed in 0..24_u64 {
        let lengths = noise(seed + 100, 12);
        let lines: Vec<_> = lengths
            .iter()
            .map(|byte| usize::from(*byte) * usize::from(*byte) * 150 % 1_700_000)
            .enumerate()
            .map(|(at, length)| line(seed * 100 + at as u64, length))
            .collect();
        let chunks = split(&lines);
        assert!(
            chunks
                .iter()
                .all(|chunk| !chunk.is_empty() && chunk.len() <= MOST_TEXT)
        );
        assert_eq!(chunks.concat(), lines.concat());
    }
}

/// The object stays below 1 MiB in base64, also with incompressible text.
#[test]
fn what_is_stored_is_below_a_mebibyte() {
    let mut worst = noise(7, MOST_TEXT);
    for (at, byte) in worst.iter_mut().enumerate() {
        *byte = byte
            .wrapping_mul(3)
            .wrapping_add(u8::try_from(at / 7 % 256).unwrap());
    }
    let packed = pack(&worst).unwrap();
    assert!(
        packed.bytes.len().div_ceil(3) * 4 + 4096 < 1024 * 1024,
        "{}",
        packed.bytes.len()
    );
    assert_eq!(unpack(&stored(&packed), &packed.bytes).unwrap(), worst);
}

#[test]
fn a_change_of_one_line_leaves_the_chunks_of_others() {
    let mut lines: Vec<_> = (0..20).map(|seed| line(seed, 500_000)).collect();
    let before = split(&lines);
    lines[10] = line(99, 510_000);
    let after = split(&lines);
    let new = after.iter().filter(|chunk| !before.contains(chunk)).count();
    assert_eq!((before.len(), after.len(), new), (20, 20, 1));
}

#[test]
fn every_flipped_byte_and_every_cut_is_noticed() {
    let text = line(3, 2_000);
    let packed = pack(&text).unwrap();
    let chunk = stored(&packed);
    for at in 0..packed.bytes.len() {
        let mut bytes = packed.bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(unpack(&chunk, &bytes).is_err(), "byte {at}");
        assert!(unpack(&chunk, &packed.bytes[..at]).is_err(), "cut at {at}");
    }
    // A forger may also have adjusted the hash.
    let other = pack(&line(4, 3_000)).unwrap();
    let mut forged = stored(&other);
    forged.size = chunk.size;
    assert!(unpack(&forged, &other.bytes).is_err(), "a longer text");
    forged.size = i64::MAX;
    assert!(
        unpack(&forged, &other.bytes).is_err(),
        "a size that nobody writes"
    );
    forged.size = -1;
    assert!(unpack(&forged, &other.bytes).is_err(), "no size");
}

#[test]
fn the_whole_is_the_same_however_it_is_cut() {
    let text = line(5, 10_000);
    let mut at_once = Whole::default();
    at_once.add(&text);
    let mut in_pieces = Whole::default();
    text.chunks(7).for_each(|piece| in_pieces.add(piece));
    assert_eq!(
        (at_once.sha256(), at_once.size()),
        (in_pieces.sha256(), in_pieces.size())
    );
}
