//! Changes of stored users and roles.
//!
//! A change that depends on a stored value has that value in its filter and is tried again, so that
//! concurrent changes, also by other gateways, are not lost.

use crate::call::Call;
use crate::write;
use auth::UserName;
use bytes::Bytes;
use document::{Doc, DocBuf, Value, doc};
use error::{Code, Error, Result};
use query::{Predicate, Sort};
use server::user_store;
use store::{
    DeleteStatement, IndexSpec, Namespace, NewPassword, ReturnImage, StatementOutcome, Statements, UpdateStatement,
    WriteBatch,
};
use update::Update;

/// The version of the format of users and roles.
const FORMAT_VERSION: i32 = 5;

/// The attempts to change something while others change it.
const ATTEMPTS_MAX: u32 = 100;

/// Prepares a change of users or roles: records the version of their format. Fails with 69 if the
/// stored ones have an older format.
pub async fn begin_change(call: &Call<'_>) -> Result<()> {
    let store = &*call.worker.store;
    let versions = user_store::versions();
    let id = doc! { "_id": "authSchema" };
    let found = user_store::find(store, &versions, id.as_doc()).await?;
    let Some(version) = found.first() else {
        let document = doc! { "_id": "authSchema", "currentVersion": FORMAT_VERSION };
        return match insert(call, versions, &document).await {
            // Another gateway was faster.
            Err(error) if error.code() == Code::DUPLICATE_KEY => Ok(()),
            outcome => outcome,
        };
    };
    let version = version.as_doc().get("currentVersion").and_then(|version| version.to_i64()).unwrap_or_default();
    if version >= i64::from(FORMAT_VERSION) {
        return Ok(());
    }
    let message = format!(
        "User and role management commands require auth data to have at least schema version {FORMAT_VERSION} but \
         found {version}"
    );
    Err(Error::new(Code::AUTH_SCHEMA_INCOMPATIBLE, message))
}

/// What a change means for accounts that the store keeps beside users, before it is made.
pub enum AccountStep<'a> {
    Nothing,
    /// A new user without a password must have a name that an account can have.
    CheckName(&'a UserName),
    /// A user gets a password.
    SetPassword {
        user: &'a UserName,
        password: &'a str,
        /// The field `credentials` that is about to be stored.
        credentials: &'a DocBuf,
    },
    /// The accounts of users that are about to be dropped.
    Lock(Vec<String>),
}

/// Inserts a user. Fails with 11000 if it exists.
pub async fn insert_user(call: &Call<'_>, user: &DocBuf, step: AccountStep<'_>) -> Result<()> {
    create_collection(call, user_store::users(), "user").await?;
    let document = Bytes::copy_from_slice(user.as_bytes());
    write(call, user_store::users(), Statements::Insert(vec![document]), step).await.map(drop)
}

/// Inserts a role. Fails with 11000 if it exists.
pub async fn insert_role(call: &Call<'_>, role: &DocBuf) -> Result<()> {
    create_collection(call, user_store::roles(), "role").await?;
    insert(call, user_store::roles(), role).await
}

/// Creates the collection with its unique index, if it does not exist.
async fn create_collection(call: &Call<'_>, namespace: Namespace, name: &str) -> Result<()> {
    let store = &*call.worker.store;
    if store.collection(&namespace).await?.is_some() {
        return Ok(());
    }
    match store.create_collection(&namespace, Doc::EMPTY).await {
        Err(error) if error.code() == Code::NAMESPACE_EXISTS => {}
        outcome => outcome?,
    }
    let index_name = format!("{name}_1_db_1");
    let key = DocBuf::build(|key| {
        key.append(name, 1);
        key.append("db", 1);
    });
    let spec = doc! { "v": 2, "key": key.as_doc(), "name": index_name.as_str(), "unique": true };
    let index = IndexSpec { name: index_name, key, unique: true, sparse: false, spec };
    store.create_indexes(&namespace, vec![index]).await.map(drop)
}

async fn insert(call: &Call<'_>, namespace: Namespace, document: &DocBuf) -> Result<()> {
    let document = Bytes::copy_from_slice(document.as_bytes());
    write(call, namespace, Statements::Insert(vec![document]), AccountStep::Nothing).await.map(drop)
}

/// Updates the matching documents; returns how many matched.
pub async fn update(call: &Call<'_>, namespace: Namespace, filter: Doc<'_>, update: Doc<'_>) -> Result<u64> {
    update_with(call, namespace, filter, update, AccountStep::Nothing).await
}

/// As [`update`], after a step for the store's accounts.
pub async fn update_with(
    call: &Call<'_>,
    namespace: Namespace,
    filter: Doc<'_>,
    update: Doc<'_>,
    step: AccountStep<'_>,
) -> Result<u64> {
    let statement = UpdateStatement {
        predicate: Predicate::parse(filter, &call.context())?,
        sort: None::<Sort>,
        update: Update::parse(Value::Document(update), None, &call.context())?,
        multi: !is_replacement(update),
        upsert: false,
        new_id: call.worker.new_object_id(call.now_ms),
        hint: None,
        image: ReturnImage::None,
    };
    Ok(write(call, namespace, Statements::Update(vec![statement]), step).await?.matched)
}

fn is_replacement(update: Doc<'_>) -> bool {
    update.first().is_none_or(|first| !first.key().starts_with('$'))
}

/// Deletes the matching documents; returns how many there were.
pub async fn delete(call: &Call<'_>, namespace: Namespace, filter: Doc<'_>) -> Result<u64> {
    let statement = DeleteStatement {
        predicate: Predicate::parse(filter, &call.context())?,
        sort: None,
        one: false,
        hint: None,
        image: ReturnImage::None,
    };
    let mut step = AccountStep::Nothing;
    if call.worker.store.keeps_accounts() && namespace == user_store::users() {
        let users = user_store::find(&*call.worker.store, &namespace, filter).await?;
        let name = |user: &DocBuf| UserName::from_document(user.as_doc());
        step = AccountStep::Lock(users.iter().filter_map(name).map(|name| user_store::account_name(&name)).collect());
    }
    Ok(write(call, namespace, Statements::Delete(vec![statement]), step).await?.matched)
}

/// Executes one statement, and waits until it is on disk. The store's accounts, if it keeps any,
/// follow before this returns.
async fn write(
    call: &Call<'_>,
    namespace: Namespace,
    statements: Statements,
    step: AccountStep<'_>,
) -> Result<StatementOutcome> {
    let store = &*call.worker.store;
    let accounts = if user_store::concerns(&namespace) { store.change_accounts().await? } else { None };
    let Some(mut accounts) = accounts else { return write_one(call, namespace, statements).await };
    match step {
        AccountStep::Nothing => {}
        AccountStep::CheckName(user) => accounts.check_name(&user_store::account_name(user))?,
        AccountStep::SetPassword { user, password, credentials } => {
            let (name, credentials) =
                (user_store::account_name(user), user_store::credentials_digest(credentials.as_doc()));
            accounts.prepare(NewPassword { name: &name, password, credentials }).await?;
        }
        AccountStep::Lock(names) => accounts.lock(&names).await?,
    }
    let outcome = write_one(call, namespace, statements).await;
    // Also after an error: a prepared account without a user is dropped.
    let settled = match user_store::account_users(store).await {
        Ok(users) => accounts.settle(&users).await,
        Err(error) => Err(error),
    };
    outcome.and_then(|outcome| settled.map(|()| outcome))
}

async fn write_one(call: &Call<'_>, namespace: Namespace, statements: Statements) -> Result<StatementOutcome> {
    let batch = WriteBatch { journal: true, ..WriteBatch::new(namespace, statements) };
    let outcome = write::write(call, batch).await;
    // Also after an error, which does not say that nothing was written.
    call.worker.server.access_control.directory.announce_change();
    let outcome = outcome?.statements.pop();
    outcome.unwrap_or_else(|| Err(Error::internal("the store has not executed the statement")))
}

/// Sets a field of a document to what `change` makes of the document, until no concurrent change
/// interferes. `read` returns the document, or fails if it does not exist; `change` returns the
/// update.
pub async fn change_field(
    call: &Call<'_>,
    namespace: Namespace,
    field: &str,
    mut read: impl AsyncFnMut() -> Result<DocBuf>,
    mut change: impl AsyncFnMut(Doc<'_>) -> Result<DocBuf>,
) -> Result<()> {
    for _ in 0..ATTEMPTS_MAX {
        let document = read().await?;
        let document = document.as_doc();
        let changes = change(document).await?;
        let filter = DocBuf::build(|filter| {
            if let Some(id) = document.get("_id") {
                filter.append("_id", id);
            }
            match document.get(field) {
                Some(value) => filter.document(field).append("$eq", value),
                None => filter.document(field).append("$exists", false),
            }
        });
        if update(call, namespace.clone(), filter.as_doc(), changes.as_doc()).await? > 0 {
            return Ok(());
        }
    }
    Err(Error::new(Code::WRITE_CONFLICT, format!("{namespace} is being changed by others at the same time")))
}
