//! `listDatabases`, `dropDatabase`.

use crate::arguments;
use crate::arguments::{is_absent, unknown_field};
use crate::authorization::check;
use crate::call::{Call, Disposition};
use crate::command::catalog::collections::plan_killed;
use crate::table::fields;
use auth::{Action, Resource};
use document::{Doc, DocBuf, DocWriter};
use error::{Code, Error, Result};
use query::Predicate;
use server::profiling::DatabaseProfiling;
use store::DatabaseInfo;

/// The size that MongoDB reports for the server's own databases while they are new.
const OWN_BYTES: u64 = 8192;

/// The fields of a `listDatabases`.
#[derive(Default)]
struct Listing<'a> {
    filter: Option<Doc<'a>>,
    name_only: bool,
    /// Whether only databases are listed that the user may access.
    authorized: Option<bool>,
}

fn listing<'a>(call: &Call<'a>) -> Result<Listing<'a>> {
    const WITHIN: &str = "listDatabases";
    let mut listing = Listing::default();
    for field in call.fields() {
        match field.key() {
            _ if arguments::is_left_out(field, &["filter", "nameOnly", "authorizedDatabases"]) => {}
            "filter" => listing.filter = Some(arguments::document(WITHIN, field)?),
            "nameOnly" => listing.name_only = arguments::boolean_or_number(WITHIN, field)?,
            "authorizedDatabases" => listing.authorized = Some(arguments::boolean(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    Ok(listing)
}

/// Parses the fields of a `listDatabases`.
pub fn parse_list(call: &Call<'_>) -> Result<()> {
    listing(call).map(drop)
}

pub async fn list_databases(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let Listing { filter, name_only, authorized } = listing(call)?;
    let lists_all = check::has_action(call.worker, call.session, Resource::Cluster, Action::ListDatabases);
    if authorized == Some(false) && !lists_all {
        return Err(Error::new(Code::UNAUTHORIZED, "Insufficient permissions to list all databases"));
    }
    let lists_authorized = call.worker.server.access_control.is_enabled() && authorized.unwrap_or(!lists_all);
    let is_listed = |database: &str| {
        !lists_authorized || call.session.with_privileges(|privileges| privileges.allows_any_on_database(database))
    };
    let predicate = Predicate::parse(filter.unwrap_or(Doc::EMPTY), &call.context())?;
    let mut total_bytes = 0;
    {
        let mut databases = reply.array("databases");
        for database in with_own(call.worker.store.databases().await?).into_iter().filter(|one| is_listed(&one.name)) {
            let entry = DocBuf::build(|writer| {
                writer.append("name", &database.name);
                if !name_only {
                    writer.append("sizeOnDisk", database.size_on_disk_bytes as i64);
                    writer.append("empty", database.empty);
                }
            });
            if predicate.matches(entry.as_doc())? {
                total_bytes += database.size_on_disk_bytes;
                databases.push(&entry);
            }
        }
    }
    if !name_only {
        reply.append("totalSize", total_bytes as i64);
        reply.append("totalSizeMb", (total_bytes / (1024 * 1024)) as i64);
    }
    Ok(Disposition::Reply)
}

/// Adds the databases that every server has.
fn with_own(mut databases: Vec<DatabaseInfo>) -> Vec<DatabaseInfo> {
    for name in ["admin", "config", "local"] {
        if databases.iter().all(|database| database.name != name) {
            databases.push(DatabaseInfo { name: name.to_owned(), size_on_disk_bytes: OWN_BYTES, empty: false });
        }
    }
    databases.sort_by(|a, b| a.name.cmp(&b.name));
    databases
}

/// Parses the fields of a `dropDatabase`.
pub fn parse_drop(call: &Call<'_>) -> Result<()> {
    let within = call.spec.name;
    fields::check(within, fields::NONE, call.fields())?;
    match is_absent(call.first()) {
        true => Err(arguments::missing_field(within, within)),
        false => arguments::integer(within, call.first()).map(drop),
    }
}

pub async fn drop_database(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    parse_drop(call)?;
    if arguments::integer(call.spec.name, call.first())? != 1 {
        return Err(Error::new(error::Code(5255100), "Have to pass 1 as 'drop' parameter"));
    }
    let database = call.database();
    if database == "admin" {
        return Err(Error::new(error::Code::ILLEGAL_OPERATION, "Dropping the 'admin' database is prohibited."));
    }
    call.worker.store.drop_database(database).await?;
    call.worker.server.profiling.set_database(database, DatabaseProfiling::default());
    call.worker.server.forget_usage(|used| *used.database == *database);
    let lost = plan_killed("collection dropped".to_owned());
    call.worker.server.cursors.invalidate_where(|owner| &*owner.namespace.database == database, &lost);
    Ok(Disposition::Reply)
}
