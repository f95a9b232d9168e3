//! One request: runs its command and sends the reply, if it wants one.

use crate::conversation::{Broken, Conversation};
use bytes::Bytes;
use commands::{Disposition, ImmediateOutcome};
use document::DocWriter;
use mongo_wire::{Message, Refused, ReplyFormat, ReplyTo, Request, op_compressed};
use selkie_runtime::zero_copy::splice::SplicedMessage;
use server::document_cache::ReplyBody;
use server::memory_pressure;
use std::io::{self, ErrorKind, IoSlice};
use std::time::Instant;

/// The outcome of answering a request without waiting.
pub(crate) enum AtOnce {
    Answered,
    /// The socket did not accept the whole reply.
    Unsent(Box<Unsent>),
    /// The request may have to wait.
    MayWait(Message),
}

/// A reply of which a part may have been sent.
pub(crate) enum Unsent {
    Copied { header: Vec<u8>, body: Bytes, trailer: Vec<u8>, sent: usize },
    Spliced(SplicedMessage),
}

/// Answers without a future if neither the command nor the socket has to wait. Half of what a small
/// request costs beyond its command is building, moving and polling a future.
pub(crate) fn respond_at_once(conversation: &Conversation, message: Message) -> Result<AtOnce, Broken> {
    let request = match message {
        Message::Request(request) => request,
        refused => return Ok(AtOnce::MayWait(refused)),
    };
    let worker = conversation.worker();
    let reply_to = request.reply_to();
    if let Some(rate) = &worker.request_rate
        && commands::may_be_shed(&request)
        && !rate.take(Instant::now())
    {
        worker.commands.statistics().requests_rejected.add(1);
        let (silent, error) = (request.is_silent(), server::overload::rate_exceeded());
        return Ok(AtOnce::MayWait(Message::Refused(Refused { reply_to, silent, error })));
    }
    if reply_to.compressor.is_some() || request.is_silent() || commands::must_wait_for_memory(&request) {
        return Ok(AtOnce::MayWait(Message::Request(request)));
    }
    let mut reply = worker.buffers.take_reply();
    let start = reply_to.begin(&mut reply);
    let mut unsent = match commands::run_immediately(&worker.commands, &conversation.session, &request, &mut reply) {
        ImmediateOutcome::MayWait => {
            worker.buffers.give_reply(reply);
            return Ok(AtOnce::MayWait(Message::Request(request)));
        }
        ImmediateOutcome::Written => {
            reply_to.finish(&mut reply, start, worker.reply_id(), false);
            Unsent::Copied { header: reply, body: Bytes::new(), trailer: Vec::new(), sent: 0 }
        }
        ImmediateOutcome::Cached { body, end: mut trailer } => {
            let checksum = reply_to.finish_around(&mut reply, start, worker.reply_id(), [&body, &trailer]);
            trailer.extend(checksum.into_iter().flatten());
            Unsent::cached(conversation, reply, body, trailer)
        }
    };
    if !unsent.try_send(conversation)? {
        return Ok(AtOnce::Unsent(Box::new(unsent)));
    }
    worker.buffers.give_reply(unsent.into_header());
    Ok(AtOnce::Answered)
}

impl Unsent {
    fn cached(conversation: &Conversation, header: Vec<u8>, body: ReplyBody, trailer: Vec<u8>) -> Unsent {
        let begun = match &body {
            ReplyBody::Paged(pages) => conversation.worker().pipes.begin(&conversation.stream, header, pages, trailer),
            ReplyBody::Bytes(_) => Err((header, trailer)),
        };
        match begun {
            Ok(spliced) => Unsent::Spliced(spliced),
            Err((header, trailer)) => Unsent::Copied { header, body: body.into_bytes(), trailer, sent: 0 },
        }
    }

    /// Sends as much as the socket accepts. Returns whether that was everything.
    fn try_send(&mut self, conversation: &Conversation) -> Result<bool, Broken> {
        match self {
            Unsent::Copied { header, body, trailer, sent } => {
                let tried = if body.is_empty() {
                    conversation.stream.try_write(header)
                } else {
                    conversation.stream.try_write_vectored(&[&header[..], body, trailer].map(IoSlice::new))
                };
                *sent = match tried {
                    Ok(sent) => sent,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                    Err(error) => return Err(error.into()),
                };
                count_sent(conversation, *sent);
                Ok(*sent == header.len() + body.len() + trailer.len())
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
            Unsent::Copied { header, body, trailer, sent } => {
                for part in [&header[..], body, trailer] {
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

    /// Returns the header's buffer, which belongs to the worker.
    fn into_header(self) -> Vec<u8> {
        match self {
            Unsent::Copied { header, .. } => header,
            Unsent::Spliced(spliced) => spliced.into_header(),
        }
    }
}

/// Completes what [`respond_at_once`] left.
pub(crate) async fn respond(conversation: &Conversation, left: AtOnce) -> Result<(), Broken> {
    match left {
        AtOnce::MayWait(Message::Request(request)) => run(conversation, request).await,
        AtOnce::MayWait(Message::Refused(refused)) => refuse(conversation, refused).await,
        AtOnce::Unsent(mut unsent) => {
            unsent.send_rest(conversation).await?;
            conversation.worker().buffers.give_reply(unsent.into_header());
            Ok(())
        }
        AtOnce::Answered => Ok(()),
    }
}

/// Runs the command, and again as long as it asks for that (exhaust cursors, streaming hello).
async fn run(conversation: &Conversation, mut request: Request) -> Result<(), Broken> {
    let worker = conversation.worker().clone();
    let reply_to = request.reply_to();
    let silent = request.is_silent();
    loop {
        let mut reply = worker.buffers.take_reply();
        let start = reply_to.begin(&mut reply);
        let disposition = match wait_for_memory(&request).await {
            Ok(()) => commands::run(&worker.commands, &conversation.session, &request, &mut reply).await,
            Err(error) => {
                worker.commands.statistics().requests_rejected.add(1);
                commands::reply::write_error(&error, &mut reply);
                Disposition::Reply
            }
        };
        let again = match disposition {
            Disposition::ReplyThenRun(body) if !silent && !conversation.is_draining() => Some(body),
            Disposition::ReplyThenRun(_) | Disposition::Reply => None,
            Disposition::Close => {
                worker.buffers.give_reply(reply);
                return Err(Broken::FailPoint);
            }
        };
        let mut sent = Ok(());
        if !silent {
            reply_to.finish(&mut reply, start, worker.reply_id(), again.is_some());
            sent = send(conversation, &reply_to, &reply).await;
        }
        worker.buffers.give_reply(reply);
        if let (Err(_), Some(body)) = (&sent, &again) {
            worker.commands.close_exhaust_cursor(body.as_doc());
        }
        sent?;
        match again {
            Some(body) => request = request.with_body(body),
            None => return Ok(()),
        }
    }
}

/// Delays a request while memory is short. Fails if that takes too long.
async fn wait_for_memory(request: &Request) -> Result<(), error::Error> {
    if commands::must_wait_for_memory(request) { Box::pin(memory_pressure::wait()).await } else { Ok(()) }
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

/// Sends one whole message. A client that reads slowly delays only its own request.
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
