//! A gateway with a planted error: it forwards as many bytes of its buffer as a packet claims to
//! have, whether or not they have arrived.

use crate::FrameTarget;
use crate::backend;
use crate::messages::{self, Sender};
use crate::packets::put;
use frame_mutator::compare::Target;

/// The length of the buffer, which is used for all clients.
const BUFFER_BYTES: usize = 1 << 17;

pub struct Trusting {
    letter: u8,
    sender: Sender,
    buffer: Vec<u8>,
}

impl Trusting {
    pub fn new(letter: u8) -> Trusting {
        Trusting { letter, sender: Sender::Client, buffer: vec![0; BUFFER_BYTES] }
    }

    /// Receives bytes into the buffer.
    fn receive(&mut self, bytes: &[u8]) {
        let length = bytes.len().min(BUFFER_BYTES);
        self.buffer[..length].copy_from_slice(&bytes[..length]);
    }

    /// Returns the payload of the packet at the buffer's begin.
    fn packet(&self) -> &[u8] {
        let [a, b, c, _] = *self.buffer.first_chunk().unwrap();
        let claimed = u32::from_le_bytes([a, b, c, 0]) as usize;
        &self.buffer[4..(4 + claimed).min(BUFFER_BYTES)]
    }
}

impl FrameTarget for Trusting {
    fn set_sender(&mut self, sender: Sender) {
        self.sender = sender;
    }
}

impl Target for Trusting {
    fn disturb(&mut self) {
        self.receive(&messages::of_others(self.letter));
    }

    fn exchange(&mut self, frame: &[u8]) -> Vec<u8> {
        self.receive(frame);
        let mut out = Vec::new();
        match self.sender {
            Sender::Client | Sender::ClientAtChange => {
                for payload in backend::reply(self.packet(), true) {
                    put(&mut out, 1, &payload.bytes);
                }
            }
            // The client gets the packet.
            Sender::ClientAtLogin | Sender::Server(_) => put(&mut out, 1, self.packet()),
        }
        out
    }
}
