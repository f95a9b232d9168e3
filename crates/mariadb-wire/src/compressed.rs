//! The compressed protocol: the bytes of packets travel in frames, and most frames are compressed.
//! Packets need not begin or end with a frame.
//!
//! Source: <https://mariadb.com/kb/en/0-packet/#compressed-packet>

use crate::Malformed;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Lengths of the body and of its bytes before compression, with the sequence number in between.
const HEADER_BYTES: usize = 7;

/// Shorter bodies are not compressed, as in MariaDB.
const COMPRESSED_BYTES_MIN: usize = 50;

/// The most bytes of one frame.
const BODY_BYTES_MAX: usize = 64 << 10;

const DAMAGED: Malformed = Malformed("compressed packet");

/// Decodes frames as they arrive. Holds no more than it was fed and has not decoded.
#[derive(Debug, Default)]
pub struct Unpacker {
    input: Vec<u8>,
    /// Bytes of `input` that are decoded.
    start: usize,
    frame: Option<Frame>,
    /// The sequence number of the next frame in either direction.
    next_number: u8,
    /// Frames that have begun.
    frames: u64,
}

/// A frame that has begun.
#[derive(Debug)]
struct Frame {
    /// Bytes of its body that are not decoded.
    left: usize,
    /// Bytes that are still to come out of it.
    unpacked_left: usize,
    /// `None`: it is not compressed.
    inflate: Option<Decompress>,
}

impl Unpacker {
    /// Returns the buffer to whose end bytes from the socket are added.
    pub fn input(&mut self) -> &mut Vec<u8> {
        self.input.drain(..self.start);
        self.start = 0;
        &mut self.input
    }

    /// Returns the sequence number of the frame that answers the last one.
    pub fn next_number(&self) -> u8 {
        self.next_number
    }

    /// Returns how many frames have begun to arrive.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Appends decoded bytes, at most `room`; none if more input is needed.
    pub fn unpack(&mut self, out: &mut Vec<u8>, room: usize) -> Result<(), Malformed> {
        let end = out.len() + room;
        while out.len() < end {
            let Some(frame) = &mut self.frame else {
                let Some(header) = self.input.get(self.start..).and_then(<[u8]>::first_chunk) else { break };
                self.next_number = header[3].wrapping_add(1);
                self.frames += 1;
                self.frame = Some(Frame::begin(header)?);
                self.start += HEADER_BYTES;
                continue;
            };
            let input = self.input.get(self.start..).unwrap_or_default();
            let input = input.get(..frame.left.min(input.len())).unwrap_or_default();
            let before = out.len();
            let taken = frame.unpack(input, out, end - before)?;
            self.start += taken;
            if frame.left == 0 && frame.unpacked_left == 0 {
                self.frame = None;
            } else if taken == 0 && out.len() == before {
                break;
            }
        }
        Ok(())
    }
}

impl Frame {
    fn begin(header: &[u8; HEADER_BYTES]) -> Result<Frame, Malformed> {
        let [a, b, c, _, d, e, f] = *header;
        let [length, unpacked] = [[a, b, c], [d, e, f]].map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]) as usize);
        Ok(match unpacked {
            0 => Frame { left: length, unpacked_left: length, inflate: None },
            _ if length == 0 => return Err(DAMAGED),
            _ => Frame { left: length, unpacked_left: unpacked, inflate: Some(Decompress::new(true)) },
        })
    }

    /// Decodes some of `input`, which is the frame's, to at most `room` bytes. Returns how much was
    /// taken.
    fn unpack(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<usize, Malformed> {
        let room = room.min(self.unpacked_left);
        let Some(inflate) = &mut self.inflate else {
            let taken = room.min(input.len());
            out.extend_from_slice(input.get(..taken).unwrap_or_default());
            self.left -= taken;
            self.unpacked_left -= taken;
            return Ok(taken);
        };
        let (before, consumed, produced) = (out.len(), inflate.total_in(), inflate.total_out());
        out.resize(before + room, 0);
        let space = out.get_mut(before..).unwrap_or_default();
        let status = inflate.decompress(input, space, FlushDecompress::None).map_err(|_| DAMAGED)?;
        let (taken, given) = ((inflate.total_in() - consumed) as usize, (inflate.total_out() - produced) as usize);
        out.truncate(before + given);
        self.left = self.left.checked_sub(taken).ok_or(DAMAGED)?;
        self.unpacked_left = self.unpacked_left.checked_sub(given).ok_or(DAMAGED)?;
        let is_over = self.left == 0 && self.unpacked_left == 0;
        let is_stuck = taken == 0 && given == 0 && self.left == input.len();
        match status {
            Status::StreamEnd if !is_over => Err(DAMAGED),
            Status::Ok | Status::BufError if is_over || is_stuck => Err(DAMAGED),
            _ => Ok(taken),
        }
    }
}

/// Encodes frames. Its working memory serves any number of connections, one after the other.
#[derive(Debug)]
pub struct Packer(Compress);

impl Default for Packer {
    fn default() -> Packer {
        Packer(Compress::new(Compression::fast(), true))
    }
}

impl Packer {
    /// Appends the frames of some bytes. Returns the sequence number after them.
    pub fn pack(&mut self, bytes: &[u8], mut number: u8, out: &mut Vec<u8>) -> u8 {
        for body in bytes.chunks(BODY_BYTES_MAX) {
            self.frame(body, number, out);
            number = number.wrapping_add(1);
        }
        number
    }

    fn frame(&mut self, body: &[u8], number: u8, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        let is_smaller = body.len() >= COMPRESSED_BYTES_MIN && self.compress(body, out);
        if !is_smaller {
            out.truncate(start + HEADER_BYTES);
            out.extend_from_slice(body);
        }
        let [a, b, c, _] = ((out.len() - start - HEADER_BYTES) as u32).to_le_bytes();
        let [d, e, f, _] = (if is_smaller { body.len() as u32 } else { 0 }).to_le_bytes();
        if let Some(header) = out.get_mut(start..start + HEADER_BYTES) {
            header.copy_from_slice(&[a, b, c, number, d, e, f]);
        }
    }

    /// Appends the compressed body. Returns false if it is not smaller.
    fn compress(&mut self, body: &[u8], out: &mut Vec<u8>) -> bool {
        self.0.reset();
        let start = out.len();
        out.resize(start + body.len() - 1, 0);
        let space = out.get_mut(start..).unwrap_or_default();
        let done = self.0.compress(body, space, FlushCompress::Finish);
        out.truncate(start + self.0.total_out() as usize);
        matches!(done, Ok(Status::StreamEnd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes frames that arrive in pieces of `step` bytes, to at most `room` bytes at a time.
    fn unpacked(frames: &[u8], step: usize, room: usize) -> Result<(Vec<u8>, Unpacker), Malformed> {
        let (mut unpacker, mut out) = (Unpacker::default(), Vec::new());
        for piece in frames.chunks(step) {
            unpacker.input().extend_from_slice(piece);
            loop {
                let before = out.len();
                unpacker.unpack(&mut out, room)?;
                assert!(out.len() - before <= room);
                if out.len() == before {
                    break;
                }
            }
        }
        Ok((out, unpacker))
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn bytes_are_decoded_as_they_were_encoded() {
        let mut packer = Packer::default();
        let samples = [Vec::new(), b"x".to_vec(), b"long ".repeat(40_000), noise(1_000), noise(70_000)];
        for bytes in samples {
            let mut frames = Vec::new();
            let number = packer.pack(&bytes, 254, &mut frames);
            assert!(frames.len() <= bytes.len() + 2 * HEADER_BYTES);
            for (step, room) in [(1, 3), (7, 100_000), (frames.len().max(1), 1_000)] {
                let (out, unpacker) = unpacked(&frames, step, room).unwrap();
                assert!(out == bytes);
                assert!(bytes.is_empty() || unpacker.next_number() == number);
            }
        }
        let mut frames = Vec::new();
        packer.pack(&b"long ".repeat(1_000), 0, &mut frames);
        assert!(frames.len() < 200);
    }

    #[test]
    fn a_large_frame_of_another_sender_is_decoded_in_parts() {
        let bytes = b"long ".repeat(3_000_000);
        let mut body = vec![0; 1 << 20];
        let mut deflate = Compress::new(Compression::default(), true);
        deflate.compress(&bytes, &mut body, FlushCompress::Finish).unwrap();
        body.truncate(deflate.total_out() as usize);
        let ([a, b, c, _], [d, e, f, _]) = ((body.len() as u32).to_le_bytes(), (bytes.len() as u32).to_le_bytes());
        let frame = [&[a, b, c, 0, d, e, f], &body[..]].concat();
        assert!(unpacked(&frame, 1_000, 64 << 10).unwrap().0 == bytes);
    }

    #[test]
    fn damaged_frames_are_errors() {
        let mut frame = Vec::new();
        Packer::default().pack(&b"long ".repeat(1_000), 0, &mut frame);
        for at in 0..frame.len() {
            for bits in [1, 0x80] {
                let mut damaged = frame.clone();
                damaged[at] ^= bits;
                let _ = unpacked(&damaged, 5, 64);
            }
            let _ = unpacked(&frame[..at], 5, 64);
        }
        // It has more, or less, than its header says.
        for length in [4_999, 5_001_u32] {
            frame[4..7].copy_from_slice(&length.to_le_bytes()[..3]);
            assert!(unpacked(&[&frame[..], b"\x01\0\0\x01\0\0\0x"].concat(), 1_000, 64).is_err(), "{length}");
        }
        assert!(unpacked(&[0, 0, 0, 0, 1, 0, 0], 7, 64).is_err());
    }
}
