//! SASL conversations: the messages by which a client proves that it knows a password.
//!
//! Users that do not exist are answered as others, with a salt that is derived from their name, and
//! fail at the same step. Source:
//! <https://github.com/mongodb/specifications/blob/master/source/auth/auth.md>

use super::arguments::{Continue, Payload, Start};
use super::attempt::{Attempt, Refusal, abandon};
use super::x509;
use crate::call::Call;
use auth::scram::{ClientFirst, Failure, Mechanism, ServerConversation};
use auth::{Credentials, ScramCredentials, User, UserName, name::EXTERNAL};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use document::{DocBuf, DocWriter, Value, doc};
use error::{Code, Error, Result};
use server::access_control::conversation::{Conversation, Step};
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

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
    let mut attempt = Attempt::new(start.mechanism, db);
    let begun = begin(call, start, &mut attempt).await;
    attempt.end(call, begun)
}

async fn begin(call: &Call<'_>, start: &Start<'_>, attempt: &mut Attempt) -> Result<Message, Refusal> {
    let db = attempt.user.db.clone();
    let mechanism = scram_mechanism(start.mechanism, &db)?;
    let first = ClientFirst::parse(&start.payload.bytes).map_err(refusal)?;
    attempt.user = UserName::new(&first.user, &db);
    let name = attempt.user.clone();
    let access_control = &call.worker.server.access_control;
    let user = access_control.directory.user(&*call.worker.store, &name).await;
    let user = user.unwrap_or_else(|error| {
        tracing::warn!(user = name.at_database(), %error, "the stored user cannot log in");
        None
    });
    if user.is_none() {
        // A user that exists takes this time as well.
        drop(black_box(User::from_document(black_box(STAND_IN.as_doc()))));
    }
    let keys = user.as_ref().and_then(|user| of_mechanism(&user.credentials, mechanism));
    // In a `hello` the client has only guessed the mechanism. If the user has another one, the
    // client must begin again with that.
    if start.db.is_some() && keys.is_none() && user.as_ref().is_some_and(|user| has_keys(&user.credentials)) {
        return Err(Refusal::secret("the user lacks the mechanism that the client has guessed"));
    }
    let (scram, message) =
        ServerConversation::begin(mechanism, first, &db, keys, &access_control.decoy, rand::random());
    call.session.set_conversation(Some(Conversation {
        user: name,
        user_id: user.and_then(|user| user.id),
        mechanism,
        skips_empty_exchange: start.skips_empty_exchange,
        step: Step::Proof(Box::new(scram)),
    }));
    Ok(Message { is_last: false, payload: Payload { bytes: message, is_text: start.payload.is_text } })
}

/// Continues the conversation, and logs the user in at its end. Fails with 17 if there is no such
/// conversation, and 18 if the login fails; then the conversation has ended.
pub async fn proceed(call: &Call<'_>, next: &Continue) -> Result<Message> {
    let protocol_error = |message| Error::new(Code::PROTOCOL_ERROR, message);
    let Some(conversation) = call.session.take_conversation() else {
        let missing = Err(protocol_error("No SASL session state found").into());
        return Attempt::new("", call.database()).end(call, missing);
    };
    let attempt = Attempt { user: conversation.user.clone(), mechanism: conversation.mechanism.name().into() };
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
            let proof = check_proof(call, &attempt.user, *scram, &next.payload.bytes).await;
            (proof.map_err(refusal)?, conversation.skips_empty_exchange)
        }
    };
    match is_last {
        true => attempt.log_in(call, conversation.user_id).await?,
        false => call.session.set_conversation(Some(conversation)),
    }
    Ok(Message { is_last, payload: Payload { bytes: payload, is_text: next.payload.is_text } })
}

/// Checks the client's last message, and returns the server's. After many failures the attempt
/// waits for its turn.
async fn check_proof(
    call: &Call<'_>,
    user: &UserName,
    scram: ServerConversation,
    payload: &[u8],
) -> Result<Vec<u8>, Failure> {
    let throttle = &call.worker.server.access_control.throttle;
    let (client, user) = (call.session.addresses().client, user.to_string());
    match throttle.attempt(client, &user, Instant::now()) {
        None => return Err(Failure::Refused("too many logins from this address have failed")),
        Some(Duration::ZERO) => {}
        Some(delay) => tokio::time::sleep(delay).await,
    }
    let outcome = scram.finish(payload).map(|signed| signed.server_final);
    match &outcome {
        Ok(_) => throttle.succeeded(client, &user),
        Err(_) => throttle.failed(client, &user, Instant::now()),
    }
    outcome
}

/// Returns the mechanisms by which a user can log in, for `saslSupportedMechs`. A user that does
/// not exist has those of a user with a password, so that the answer reveals nothing.
pub async fn mechanisms_of(call: &Call<'_>, name: &UserName) -> Result<Vec<&'static str>> {
    let directory = &call.worker.server.access_control.directory;
    let user = directory.user(&*call.worker.store, name).await.unwrap_or_default();
    let has = |mechanism: &Mechanism| match &user {
        Some(user) => of_mechanism(&user.credentials, *mechanism).is_some(),
        None => &*name.db != EXTERNAL,
    };
    Ok(Mechanism::ALL.iter().filter(|mechanism| has(mechanism)).map(|mechanism| mechanism.name()).collect())
}

fn of_mechanism(credentials: &Credentials, mechanism: Mechanism) -> Option<&ScramCredentials> {
    match mechanism {
        Mechanism::Sha1 => credentials.scram_sha_1.as_ref(),
        Mechanism::Sha256 => credentials.scram_sha_256.as_ref(),
    }
}

fn has_keys(credentials: &Credentials) -> bool {
    Mechanism::ALL.iter().any(|mechanism| of_mechanism(credentials, *mechanism).is_some())
}

fn scram_mechanism(name: &str, db: &str) -> Result<Mechanism> {
    let unavailable = |message| Err(Error::new(Code::MECHANISM_UNAVAILABLE, message));
    match Mechanism::parse(name) {
        _ if name == x509::MECHANISM => {
            unavailable(format!("Unsupported mechanism '{name}' on authentication database '{db}'"))
        }
        Some(_) if db == EXTERNAL => {
            unavailable(format!("Unsupported mechanism '{name}' on authentication database '{db}'"))
        }
        Some(mechanism) => Ok(mechanism),
        None => unavailable(format!("Received authentication for mechanism {name} which is not enabled")),
    }
}

fn refusal(failure: Failure) -> Refusal {
    match failure {
        Failure::Refused(reason) => Refusal::secret(reason),
        Failure::InvalidBase64 => Error::new(Code(10270), "invalid base64").into(),
    }
}

/// A user as others are stored.
static STAND_IN: LazyLock<DocBuf> = LazyLock::new(|| {
    let keys =
        |salt: &str, key: &str| doc! { "iterationCount": 15000, "salt": salt, "storedKey": key, "serverKey": key };
    let sha_1 = keys("kn7H17TqP6v2W86Zn8LhzA==", "078oMBJkd+Bqg3/54m8jIVraCO8=");
    let salt = "nmlOLwQxOb+T+ruGRxd74AjksCB+KdCev9bNhA==";
    let sha_256 = keys(salt, "GENN6qzhibe2O36iq4k7oYEUZ3wedUpIo0mEiYrzbzs=");
    let credentials = doc! { "SCRAM-SHA-1": sha_1.as_doc(), "SCRAM-SHA-256": sha_256.as_doc() };
    let id = Value::Binary { subtype: 4, bytes: &[0; 16] };
    doc! { "_id": "admin.user", "userId": id, "user": "user", "db": "admin", "credentials": credentials.as_doc() }
});
