//! A server without sockets: decodes requests, runs commands on a store in memory, and encodes
//! replies, with buffers that are used again as by the real one.

use crate::messages;
use bytes::BytesMut;
use commands::ImmediateOutcome;
use document::DocWriter;
use frame_mutator::compare::Target;
use frame_mutator::memory;
use mongo_wire::{Codecs, Compressor, DecodeError, Message, Refused, ReplyFormat, Request, op_compressed};
use server::{ClientSession, Server, Settings, Worker};
use std::rc::Rc;
use std::sync::Arc;
use store_testing::MemoryEngine;

pub struct Decoding {
    letter: u8,
    worker: Rc<Worker>,
    session: ClientSession,
    runtime: tokio::runtime::Runtime,
    codecs: Codecs,
    /// Used again for each message, and for each reply.
    received: BytesMut,
    reply: Vec<u8>,
    /// The memory of the trusting decompressor; `None`: the right decompressor.
    trusting: Option<Vec<u8>>,
}

impl Decoding {
    pub fn new(letter: u8) -> Decoding {
        let server =
            Server::new(Settings::default(), Arc::new(MemoryEngine), Default::default(), commands::table::COUNT);
        let session = ClientSession::new(&server, 1, None, 0);
        Decoding {
            letter,
            worker: Worker::open(server).unwrap(),
            session,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            codecs: Codecs::default(),
            received: BytesMut::new(),
            reply: Vec::new(),
            trusting: None,
        }
    }

    /// Plants an error: decompressed bytes are read up to the size that the message claims.
    pub fn with_trusting_decompressor(self) -> Decoding {
        Decoding { trusting: Some(vec![0; 1 << 17]), ..self }
    }

    fn answer(&mut self, message: Message, out: &mut Vec<u8>) {
        let (reply_to, silent) = match &message {
            Message::Request(request) => (request.reply_to(), request.is_silent()),
            Message::Refused(refused) => (refused.reply_to, refused.silent),
        };
        let mut reply = std::mem::take(&mut self.reply);
        let start = reply_to.begin(&mut reply);
        match message {
            Message::Request(request) => self.run(&request, &mut reply),
            Message::Refused(refused) => refuse(&refused, &mut reply),
        }
        reply_to.finish(&mut reply, start, 1, false);
        match reply_to.compressor {
            _ if silent => {}
            None => out.extend_from_slice(&reply),
            Some(compressor) => op_compressed::pack(&reply, compressor, &mut self.codecs, out).unwrap(),
        }
        reply.clear();
        self.reply = reply;
    }

    fn run(&self, request: &Request, reply: &mut Vec<u8>) {
        match commands::run_immediately(&self.worker, &self.session, request, reply) {
            ImmediateOutcome::Written => {}
            ImmediateOutcome::Cached { body, end } => {
                reply.extend_from_slice(&body);
                reply.extend_from_slice(&end);
            }
            ImmediateOutcome::MayWait => {
                self.runtime.block_on(commands::run(&self.worker, &self.session, request, reply));
            }
        }
    }

    fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        memory::fill_with(self.letter);
        let bytes = match &mut self.trusting {
            None => bytes.to_vec(),
            Some(memory) => match decompress_trusting(memory, bytes) {
                Some(message) => message,
                None => bytes.to_vec(),
            },
        };
        let mut received = std::mem::take(&mut self.received);
        received.clear();
        received.extend_from_slice(&bytes);
        let mut out = Vec::new();
        loop {
            match mongo_wire::decode(&mut received, &mut self.codecs) {
                Ok(Some(message)) => self.answer(message, &mut out),
                Ok(None) => break,
                Err(error) => {
                    // What the log says must not depend on others either.
                    out.extend(format!("closed: {error}").bytes());
                    break;
                }
            }
        }
        let _ = received.try_reclaim(16 * 1024);
        self.received = received;
        memory::fill_with(0);
        out
    }
}

impl Target for Decoding {
    fn disturb(&mut self) {
        for message in messages::of_others(self.letter) {
            self.receive(&message);
        }
    }

    fn exchange(&mut self, frame: &[u8]) -> Vec<u8> {
        self.receive(frame)
    }
}

fn refuse(refused: &Refused, reply: &mut Vec<u8>) {
    match refused.reply_to.format {
        ReplyFormat::QueryFailure => {
            let mut body = DocWriter::begin(reply);
            body.append("$err", refused.error.message());
            body.append("code", refused.error.code().0);
            body.append("ok", 0.0);
        }
        ReplyFormat::Msg { .. } | ReplyFormat::Reply => commands::reply::write_error(&refused.error, reply),
    }
}

/// Unpacks a compressed message into memory that is used again, and returns as many bytes of it as
/// the message claims to have, whether or not they were written. Returns `None` for a message that
/// is not compressed, or damaged.
fn decompress_trusting(memory: &mut [u8], message: &[u8]) -> Option<Vec<u8>> {
    let word = |at: usize| Some(i32::from_le_bytes(*message.get(at..)?.first_chunk()?));
    if word(12)? != 2012 || usize::try_from(word(0)?).ok()? != message.len() {
        return None;
    }
    let claimed = usize::try_from(word(20)?).ok().filter(|claimed| *claimed <= memory.len() - 16)?;
    let compressor = Compressor::from_id(*message.get(24)?)?;
    let content = unpack(compressor, message.get(25..)?).ok()?;
    let length = content.len().min(memory.len() - 16);
    memory[16..16 + length].copy_from_slice(&content[..length]);
    memory[..4].copy_from_slice(&(claimed as i32 + 16).to_le_bytes());
    memory[4..12].copy_from_slice(&message[4..12]);
    memory[12..16].copy_from_slice(&message[16..20]);
    Some(memory[..16 + claimed].to_vec())
}

fn unpack(compressor: Compressor, packed: &[u8]) -> Result<Vec<u8>, DecodeError> {
    const BROKEN: DecodeError = DecodeError::Compression("broken");
    let mut content = Vec::with_capacity(1 << 16);
    match compressor {
        Compressor::Snappy => snap::raw::Decoder::new().decompress_vec(packed).map_err(|_| BROKEN),
        Compressor::Zlib => {
            let mut state = flate2::Decompress::new(true);
            state.decompress_vec(packed, &mut content, flate2::FlushDecompress::Finish).map_err(|_| BROKEN)?;
            Ok(content)
        }
        Compressor::Zstd => zstd::bulk::decompress(packed, 1 << 16).map_err(|_| BROKEN),
    }
}
