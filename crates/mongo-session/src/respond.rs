//! One request: carried out, answered, or deliberately not answered.

use crate::connection::{Broken, Conversation};
use bytes::Bytes;
use commands::answers::Body;
use commands::{Disposition, shortage};
use document::DocWriter;
use mongo_wire::{Message, Refused, ReplyFormat, ReplyTo, Request, op_compressed};
use selkie_runtime::splice::Spliced;
use std::io::{self, ErrorKind, IoSlice};

/// What became of a request that was to be answered without waiting.
pub(crate) enum AtOnce {
    Answered,
    /// The socket did not take the whole reply.
    Unsent(Box<Unsent>),
    /// It may have to wait for something.
    Waits(Message),
}

/// A reply that is to be sent, of which the first bytes may be sent.
pub(crate) enum Unsent {
    Copied { front: Vec<u8>, body: Bytes, end: Vec<u8>, sent: usize },
    Spliced(Spliced),
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
    if reply_to.compressor.is_some() || request.is_silent() || shortage::delays(&request) {
        return Ok(AtOnce::Waits(Message::Request(request)));
    }
    let mut reply = worker.buffers.take_reply();
    let start = reply_to.begin(&mut reply);
    let mut unsent = match commands::run_at_once(&worker.commands, &conversation.session, &request, &mut reply) {
        commands::AtOnce::No => {
            worker.buffers.give_reply(reply);
            return Ok(AtOnce::Waits(Message::Request(request)));
        }
        commands::AtOnce::Written => {
            reply_to.finish(&mut reply, start, worker.reply_id(), false);
            Unsent::Copied { front: reply, body: Bytes::new(), end: Vec::new(), sent: 0 }
        }
        commands::AtOnce::Cached { body, mut end } => {
            let checksum = reply_to.finish_around(&mut reply, start, worker.reply_id(), [&body, &end]);
            end.extend(checksum.into_iter().flatten());
            Unsent::kept(conversation, reply, body, end)
        }
    };
    if !unsent.try_send(conversation)? {
        return Ok(AtOnce::Unsent(Box::new(unsent)));
    }
    worker.buffers.give_reply(unsent.into_front());
    Ok(AtOnce::Answered)
}

impl Unsent {
    fn kept(conversation: &Conversation, front: Vec<u8>, body: Body, end: Vec<u8>) -> Unsent {
        let begun = match &body {
            Body::Paged(pages) => conversation.worker().pipes.begin(&conversation.stream, front, pages, end),
            Body::Bytes(_) => Err((front, end)),
        };
        match begun {
            Ok(spliced) => Unsent::Spliced(spliced),
            Err((front, end)) => Unsent::Copied { front, body: body.into_bytes(), end, sent: 0 },
        }
    }

    /// Sends what the socket takes at once; gives whether that was all.
    fn try_send(&mut self, conversation: &Conversation) -> Result<bool, Broken> {
        match self {
            Unsent::Copied { front, body, end, sent } => {
                let tried = if body.is_empty() {
                    conversation.stream.try_write(front)
                } else {
                    conversation.stream.try_write_vectored(&[&front[..], body, end].map(IoSlice::new))
                };
                *sent = match tried {
                    Ok(sent) => sent,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                    Err(error) => return Err(error.into()),
                };
                count_sent(conversation, *sent);
                Ok(*sent == front.len() + body.len() + end.len())
            }
            Unsent::Spliced(spliced) => {
                let is_sent = spliced.try_send(&conversation.stream)?;
                if is_sent {
                    count_sent(conversation, spliced.length());
                }
                Ok(is_sent)
            }
        }
    }

    /// Sends what [`Unsent::try_send`] left.
    async fn send_rest(&mut self, conversation: &Conversation) -> Result<(), Broken> {
        match self {
            Unsent::Copied { front, body, end, sent } => {
                for part in [&front[..], body, end] {
                    write(conversation, part.get(*sent..).unwrap_or_default()).await?;
                    *sent = sent.saturating_sub(part.len());
                }
            }
            Unsent::Spliced(spliced) => {
                while !spliced.try_send(&conversation.stream)? {
                    conversation.writable().await?;
                }
                count_sent(conversation, spliced.length());
            }
        }
        Ok(())
    }

    /// The front's memory, which is the worker's.
    fn into_front(self) -> Vec<u8> {
        match self {
            Unsent::Copied { front, .. } => front,
            Unsent::Spliced(spliced) => spliced.into_front(),
        }
    }
}

/// Does what [`respond_at_once`] left to do.
pub(crate) async fn respond(conversation: &Conversation, left: AtOnce) -> Result<(), Broken> {
    match left {
        AtOnce::Waits(Message::Request(request)) => carry_out(conversation, request).await,
        AtOnce::Waits(Message::Refused(refused)) => refuse(conversation, refused).await,
        AtOnce::Unsent(mut unsent) => {
            unsent.send_rest(conversation).await?;
            conversation.worker().buffers.give_reply(unsent.into_front());
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
        let disposition = match if_there_is_memory(&request).await {
            Ok(()) => commands::run(&worker.commands, &conversation.session, &request, &mut reply).await,
            Err(error) => {
                commands::reply::write_error(&error, &mut reply);
                Disposition::Reply
            }
        };
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
        if let (Err(_), Some(body)) = (&sent, &again) {
            worker.commands.give_up(body.as_doc());
        }
        sent?;
        match again {
            Some(body) => request = request.with_body(body),
            None => return Ok(()),
        }
    }
}

/// Has a request wait while memory is short. Fails where that takes too long.
async fn if_there_is_memory(request: &Request) -> Result<(), error::Error> {
    if shortage::delays(request) { Box::pin(shortage::wait()).await } else { Ok(()) }
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
    let mut rest = bytes;
    while !rest.is_empty() {
        match conversation.stream.try_write(rest) {
            Ok(0) => return Err(io::Error::from(ErrorKind::WriteZero).into()),
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => conversation.writable().await?,
            Err(error) => return Err(error.into()),
        }
    }
    count_sent(conversation, bytes.len());
    Ok(())
}

fn count_sent(conversation: &Conversation, bytes: usize) {
    conversation.worker().commands.statistics().network_bytes_out.add(bytes as u64);
}
