//! Users, as a login looks them up: the time does not reveal whether there is one.

use crate::call::Call;
use auth::{User, UserName};
use document::{DocBuf, Value, doc};
use std::hint::black_box;
use std::sync::LazyLock;

/// Returns a user. One whose document is malformed cannot log in, and the log says so.
pub async fn look_up(call: &Call<'_>, name: &UserName) -> Option<User> {
    let user = call.worker.server.access_control.directory.user(&*call.worker.store, name).await;
    let user = user.unwrap_or_else(|error| {
        tracing::warn!(user = name.at_database(), %error, "the stored user cannot log in");
        None
    });
    if user.is_none() {
        // A user that exists takes this time as well.
        drop(black_box(User::from_document(black_box(STAND_IN.as_doc()))));
    }
    user
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
