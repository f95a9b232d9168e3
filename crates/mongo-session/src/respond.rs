//! One request: carried out, answered, or deliberately not answered.

use crate::connection::{Broken, Conversation};
use bytes::Bytes;
use commands::Disposition;
use document::DocWriter;
use mongo_wire::{Message, Refused, ReplyFormat, ReplyTo, Request, op_compressed};
use std::io::{ErrorKind, IoSlice};

/// What became of a request that was to be answered without waiting.
pub(crate) enum AtOnce {
    Answered,
    /// The socket did not take the whole reply.
    Unsent(Box<Unsent>),
    /// It may have to wait for something.
    Waits(Message),
}

/// A reply in the pieces it is sent in, of which the first bytes are sent.
pub(crate) struct Unsent {
    front: Vec<u8>,
    body: Bytes,
    end: Vec<u8>,
    sent: usize,
}

/// Answers without a future where neither the command nor the socket makes anybody wait. Half of what a small request costs
/// beyond its command is building, moving and polling the future that could have waited for it.
pub(crate) fn respond_at_once(conversation: &Conversation, message: Message) -> Result<AtOnce, Broken> {
    let request = match message {
        Message::Request(request) => request,
        refused => return Ok(AtOnce::Waits(refused)),
    };
    let worker = conversation.worker();
    let reply_to = request.reply_to();
    if reply_to.compressor.is_some() || request.is_silent() {
        return Ok(AtOnce::Waits(Message::Request(request)));
    }
    let mut reply = worker.buffers.take_reply();
    let start = reply_to.begin(&mut reply);
    let (body, end) = match commands::run_at_once(&worker.commands, &conversation.session, &request, &mut reply) {
        commands::AtOnce::No => {
            worker.buffers.give_reply(reply);
            return Ok(AtOnce::Waits(Message::Request(request)));
        }
        commands::AtOnce::Written => {
            reply_to.finish(&mut reply, start, worker.reply_id(), false);
            (Bytes::new(), Vec::new())
        }
        commands::AtOnce::Kept { body, mut end } => {
            let checksum = reply_to.finish_around(&mut reply, start, worker.reply_id(), [&body, &end]);
            end.extend(checksum.into_iter().flatten());
            (body, end)
        }
    };
    let length = reply.len() + body.len() + end.len();
    let tried = if body.is_empty() {
        conversation.stream.try_write(&reply)
    } else {
        conversation.stream.try_write_vectored(&[&reply[..], &body, &end].map(IoSlice::new))
    };
    let sent = match tried {
        Ok(sent) => sent,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error.into()),
    };
    worker.commands.statistics().network_bytes_out.add(sent as u64);
    if sent < length {
        return Ok(AtOnce::Unsent(Box::new(Unsent { front: reply, body, end, sent })));
    }
    worker.buffers.give_reply(reply);
    Ok(AtOnce::Answered)
}

/// Does what [`respond_at_once`] left to do.
pub(crate) async fn respond(conversation: &Conversation, left: AtOnce) -> Result<(), Broken> {
    match left {
        AtOnce::Waits(Message::Request(request)) => carry_out(conversation, request).await,
        AtOnce::Waits(Message::Refused(refused)) => refuse(conversation, refused).await,
        AtOnce::Unsent(unsent) => {
            let Unsent { front, body, end, mut sent } = *unsent;
            for part in [&front[..], &body, &end] {
                write(conversation, part.get(sent..).unwrap_or_default()).await?;
                sent = sent.saturating_sub(part.len());
            }
            conversation.worker().buffers.give_reply(front);
            Ok(())
        }
        AtOnce::Answered => Ok(()),
    }
}

/// Runs the command, and runs it again as long as it asks for that (exhaust cursors, streaming hello).
async fn carry_out(conversation: &Conversation, mut request: Request) -> Result<(), Broken> {
    let worker = conversation.worker().clone();
    let reply_to = request.reply_to();
    let silent = request.is_silent();
    loop {
        let mut reply = worker.buffers.take_reply();
        let start = reply_to.begin(&mut reply);
        let disposition = commands::run(&worker.commands, &conversation.session, &request, &mut reply).await;
        let again = match disposition {
            Disposition::ReplyThenRun(body) if !silent && !conversation.is_draining() => Some(body),
            Disposition::ReplyThenRun(_) | Disposition::Reply => None,
        };
        let mut sent = Ok(());
        if !silent {
            reply_to.finish(&mut reply, start, worker.reply_id(), again.is_some());
            sent = send(conversation, &reply_to, &reply).await;
        }
        worker.buffers.give_reply(reply);
        sent?;
        match again {
            Some(body) => request = request.with_body(body),
            None => return Ok(()),
        }
    }
}

async fn refuse(conversation: &Conversation, refused: Refused) -> Result<(), Broken> {
    if refused.silent {
        return Ok(());
    }
    let worker = conversation.worker().clone();
    let mut reply = worker.buffers.take_reply();
    let start = refused.reply_to.begin(&mut reply);
    match refused.reply_to.format {
        ReplyFormat::QueryFailure => {
            let mut body = DocWriter::begin(&mut reply);
            body.append("$err", refused.error.message());
            body.append("code", refused.error.code().0);
            body.append("ok", 0.0);
        }
        ReplyFormat::Msg { .. } | ReplyFormat::Reply => commands::reply::write_error(&refused.error, &mut reply),
    }
    refused.reply_to.finish(&mut reply, start, worker.reply_id(), false);
    let sent = send(conversation, &refused.reply_to, &reply).await;
    worker.buffers.give_reply(reply);
    sent
}

/// Writes one whole message. A client that reads slowly makes its own request wait here, and nobody else's.
async fn send(conversation: &Conversation, reply_to: &ReplyTo, message: &[u8]) -> Result<(), Broken> {
    let Some(compressor) = reply_to.compressor else { return write(conversation, message).await };
    let worker = conversation.worker().clone();
    let mut packed = worker.buffers.take_reply();
    op_compressed::pack(message, compressor, &mut worker.codecs.borrow_mut(), &mut packed)?;
    let sent = write(conversation, &packed).await;
    worker.buffers.give_reply(packed);
    sent
}

async fn write(conversation: &Conversation, bytes: &[u8]) -> Result<(), Broken> {
    conversation.stream.write_all(bytes).await?;
    conversation.worker().commands.statistics().network_bytes_out.add(bytes.len() as u64);
    Ok(())
}
