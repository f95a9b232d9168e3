//! `shardCollection`: distributes a collection over the shards by a key.
//!
//! Source: <https://www.mongodb.com/docs/v6.0/reference/command/shardCollection/>

use super::shard_key::ShardKey;
use super::sharding;
use crate::arguments;
use crate::call::{Call, Disposition};
use crate::command::catalog::collections::{full_name, plan_killed};
use document::{DocWriter, Value};
use error::{Code, Error, Result};
use store::Namespace;

const WITHIN: &str = "shardCollection";

struct Arguments<'a> {
    namespace: Namespace,
    key: ShardKey<'a>,
}

impl<'a> Arguments<'a> {
    fn read(call: &Call<'a>) -> Result<Arguments<'a>> {
        let name = arguments::string(WITHIN, call.first())?;
        let invalid = || Error::new(Code::INVALID_NAMESPACE, format!("Invalid namespace specified '{name}'"));
        let namespace = full_name(name).ok_or_else(invalid)?;
        let (mut key, mut unique, mut refused) = (None, false, None);
        for field in call.fields().filter(|field| !arguments::is_absent(*field)) {
            match field.key() {
                "key" => key = Some(arguments::document(WITHIN, field)?),
                "unique" => unique = arguments::boolean(WITHIN, field)?,
                // There are no chunks.
                "numInitialChunks" => {
                    arguments::integer(WITHIN, field)?;
                }
                "presplitHashedZones" | "implicitlyCreateIndex" | "enforceUniquenessCheck" => {
                    arguments::boolean(WITHIN, field)?;
                }
                "collation" => {
                    let collation = arguments::document(WITHIN, field)?;
                    let is_simple = collation.get("locale") == Some(Value::String("simple"));
                    refused = refused.or((!is_simple).then_some("a collation other than simple"));
                }
                "timeseries" => refused = refused.or(Some("a time-series collection")),
                unknown => return Err(arguments::unknown_field(WITHIN, unknown)),
            }
        }
        let key = key.ok_or_else(|| arguments::missing_field(WITHIN, "key"))?;
        let key = ShardKey::parse(key)?;
        if let Some(refused) = refused {
            let message = format!("can't shard {namespace}: {refused} is not supported for a sharded collection");
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        if matches!(&*namespace.database, "admin" | "config" | "local") {
            let message = format!("can't shard collections of the database {}", namespace.database);
            return Err(Error::new(Code::ILLEGAL_OPERATION, message));
        }
        if namespace.collection.starts_with("system.") {
            return Err(Error::new(Code::ILLEGAL_OPERATION, "can't shard system namespaces"));
        }
        if unique && key.is_hashed() {
            let message = "Hashed shard keys cannot be declared unique. It's possible to ensure uniqueness on the hashed field by \
                           declaring an additional (non-hashed) unique index on the field.";
            return Err(Error::new(Code::INVALID_OPTIONS, message));
        }
        Ok(Arguments { namespace, key })
    }
}

/// Parses the fields.
pub fn parse(call: &Call<'_>) -> Result<()> {
    Arguments::read(call).map(drop)
}

pub async fn shard_collection(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    sharding(call)?;
    let Arguments { namespace, key } = Arguments::read(call)?;
    let sharding = sharding(call)?;
    let was_sharded = sharding.sharded(&namespace).await?.is_some();
    sharding.shard_collection(&namespace, key.as_doc()).await?;
    if !was_sharded {
        let moved = plan_killed(format!("collection {namespace} was sharded"));
        call.worker.server.cursors.invalidate_where(|owner| owner.namespace == namespace, &moved);
    }
    reply.append("collectionsharded", namespace.to_string().as_str());
    Ok(Disposition::Reply)
}
