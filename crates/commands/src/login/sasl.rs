//! SASL conversations: the messages by which a client proves that it knows a password, or sends it.
//!
//! Users that do not exist are answered as others, with a salt that is derived from their name, and
//! fail at the same step. Source:
//! <https://github.com/mongodb/specifications/blob/master/source/auth/auth.md>

use super::arguments::{Continue, Payload, Start};
use super::attempt::{Attempt, Refusal, abandon, not_enabled};
use super::{password, plain, users};
use crate::call::Call;
use auth::scram::{ClientFirst, Mechanism, ServerConversation};
use auth::{Credentials, LoginMechanism, UserName, name::EXTERNAL};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use document::{DocWriter, Value};
use error::{Code, Error, Result};
use server::access_control::conversation::{Conversation, Step};

/// The number of the one conversation that a connection can have.
const CONVERSATION_ID: i32 = 1;

/// The server's message to the client.
pub struct Message {
    is_last: bool,
    payload: Payload,
}

impl Message {
    /// Appends the fields of the reply.
    pub fn write(&self, reply: &mut DocWriter<'_>) {
        reply.append("conversationId", CONVERSATION_ID);
        reply.append("done", self.is_last);
        match self.payload.is_text {
            true => reply.append("payload", &*STANDARD.encode(&self.payload.bytes)),
            false => reply.append("payload", Value::Binary { subtype: 0, bytes: &self.payload.bytes }),
        }
    }
}

/// Begins a conversation. `db`: the database of the user. Fails with 334 for a mechanism that is
/// not offered, and 18 if the login fails.
pub async fn start(call: &Call<'_>, start: &Start<'_>, db: &str) -> Result<Message> {
    abandon(call.worker, call.session);
    let mut attempt = Attempt::new(start.mechanism, db).counted(call, start.db.is_some());
    let begun = begin(call, start, &mut attempt).await;
    attempt.end(call, begun)
}

async fn begin(call: &Call<'_>, start: &Start<'_>, attempt: &mut Attempt) -> Result<Message, Refusal> {
    let Payload { bytes, is_text } = &start.payload;
    let answer = |is_last, bytes| Ok(Message { is_last, payload: Payload { bytes, is_text: *is_text } });
    let mechanism = match available(call, start.mechanism, &attempt.user.db)? {
        Sasl::Scram(mechanism) => mechanism,
        Sasl::Plain => {
            plain::log_in(call, bytes, start.db.is_some(), attempt).await?;
            return answer(true, Vec::new());
        }
    };
    let first = ClientFirst::parse(bytes)?;
    attempt.user = UserName::new(&first.user, &attempt.user.db);
    let name = attempt.user.clone();
    let user = users::look_up(call, &name).await;
    let keys = user.as_ref().and_then(|user| user.credentials.scram(mechanism));
    // In a `hello` the client has only guessed the mechanism. If the user has another one, the
    // client must begin again with that.
    if start.db.is_some() && keys.is_none() && user.as_ref().is_some_and(|user| has_keys(&user.credentials)) {
        return Err(Refusal::secret("the user lacks the mechanism that the client has guessed"));
    }
    let decoy = &call.worker.server.access_control.decoy;
    let (scram, message) = ServerConversation::begin(mechanism, first, &name.db, keys, decoy, rand::random());
    call.session.set_conversation(Some(Conversation {
        user: name,
        user_id: user.and_then(|user| user.id),
        mechanism,
        skips_empty_exchange: start.skips_empty_exchange,
        is_speculative: start.db.is_some(),
        step: Step::Proof(Box::new(scram)),
    }));
    answer(false, message)
}

/// Continues the conversation, and logs the user in at its end. Fails with 17 if there is no such
/// conversation, and 18 if the login fails; then the conversation has ended.
pub async fn proceed(call: &Call<'_>, next: &Continue) -> Result<Message> {
    let protocol_error = |message| Error::new(Code::PROTOCOL_ERROR, message);
    let Some(conversation) = call.session.take_conversation() else {
        let missing = Err(protocol_error("No SASL session state found").into());
        return Attempt::new("", call.database()).end(call, missing);
    };
    let attempt = Attempt::of(&conversation);
    let outcome = match next.conversation {
        CONVERSATION_ID => advance(call, next, conversation, &attempt).await,
        _ => Err(protocol_error("sasl: Mismatched conversation id").into()),
    };
    attempt.end(call, outcome)
}

async fn advance(
    call: &Call<'_>,
    next: &Continue,
    mut conversation: Conversation,
    attempt: &Attempt,
) -> Result<Message, Refusal> {
    let (payload, is_last) = match std::mem::replace(&mut conversation.step, Step::Empty) {
        Step::Empty => (Vec::new(), true),
        Step::Proof(scram) => {
            let proof = async { scram.finish(&next.payload.bytes) };
            let signed = password::throttled(call, &attempt.user, proof).await?;
            (signed.server_final, conversation.skips_empty_exchange)
        }
    };
    match is_last {
        true => attempt.log_in(call, conversation.user_id).await?,
        false => call.session.set_conversation(Some(conversation)),
    }
    Ok(Message { is_last, payload: Payload { bytes: payload, is_text: next.payload.is_text } })
}

/// Returns the mechanisms by which a user can log in, for `saslSupportedMechs`. A user that does
/// not exist has those of a user with a password, so that the answer reveals nothing.
pub async fn mechanisms_of(call: &Call<'_>, name: &UserName) -> Result<Vec<&'static str>> {
    let directory = &call.worker.server.access_control.directory;
    let user = directory.user(&*call.worker.store, name).await.unwrap_or_default();
    let has = |mechanism: &Mechanism| match &user {
        Some(user) => user.credentials.scram(*mechanism).is_some(),
        None => &*name.db != EXTERNAL,
    };
    let offered = call.worker.server.settings.login_mechanisms.scram();
    Ok(offered.filter(has).map(Mechanism::name).collect())
}

fn has_keys(credentials: &Credentials) -> bool {
    Mechanism::ALL.iter().any(|mechanism| credentials.scram(*mechanism).is_some())
}

/// A mechanism of `saslStart`.
enum Sasl {
    Scram(Mechanism),
    Plain,
}

/// Returns the mechanism of a name. Fails with 334 if it is not offered, or not for this database.
fn available(call: &Call<'_>, name: &str, db: &str) -> Result<Sasl> {
    let unavailable = |message| Err(Error::new(Code::MECHANISM_UNAVAILABLE, message));
    let unsupported = || unavailable(format!("Unsupported mechanism '{name}' on authentication database '{db}'"));
    let offered = &call.worker.server.settings.login_mechanisms;
    match LoginMechanism::parse(name) {
        Some(LoginMechanism::X509) => unsupported(),
        Some(mechanism) if offered.contains(mechanism) => match mechanism {
            _ if db == EXTERNAL => unsupported(),
            LoginMechanism::Scram(mechanism) => Ok(Sasl::Scram(mechanism)),
            LoginMechanism::Plain => Ok(Sasl::Plain),
            LoginMechanism::X509 => unsupported(),
        },
        _ => unavailable(not_enabled(name)),
    }
}
