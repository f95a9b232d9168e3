//! Translates MongoDB's privileges into grants of MariaDB.
//!
//! A grant of SQL is given only if the privileges allow all that it permits. Statements that change
//! definitions can do what `collMod` does, so their grants require `collMod` as well; dropping
//! includes whole databases. Privileges without a counterpart in SQL are left out: those on the
//! cluster, on one collection of all databases, and on the buckets of all time series.

use crate::catalog::names;
use ::store::Namespace;
use auth::Action::{self, *};
use auth::{ActionSet, Privilege, ResourcePattern};
use mariadb_client::quote;
use std::collections::BTreeMap;
use std::fmt;

/// The privileges of SQL, each with the actions that it requires.
const REQUIRED: [(&str, &[Action]); 8] = [
    ("SELECT", &[Find]),
    ("INSERT", &[Insert]),
    ("UPDATE", &[Update]),
    ("DELETE", &[Remove]),
    ("CREATE", &[CreateCollection, CollMod]),
    ("DROP", &[DropCollection, DropDatabase, CollMod]),
    ("INDEX", &[CreateIndex, DropIndex, CollMod]),
    ("ALTER", &[CreateCollection, CreateIndex, DropIndex, CollMod]),
];

/// Databases that privileges on all databases do not cover.
const NOT_ORDINARY: [&str; 2] = ["config", "local"];

/// The start of the names of collections with the documents of time series.
const BUCKETS: &str = "system.buckets.";

/// Separates the parts of a recorded grant. No name contains it.
const SEPARATOR: u8 = 0;

/// A set of privileges of SQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SqlPrivileges(u8);

impl SqlPrivileges {
    pub const CREATE: SqlPrivileges = SqlPrivileges(1 << 4);

    /// Returns the privileges whose actions are all allowed.
    fn of(actions: &ActionSet) -> SqlPrivileges {
        let allowed = REQUIRED.iter().enumerate().filter(|(_, (_, all))| actions.contains_all(&ActionSet::of(all)));
        SqlPrivileges(allowed.fold(0, |bits, (position, _)| bits | 1 << position))
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, other: SqlPrivileges) -> bool {
        other.0 & !self.0 == 0
    }

    pub fn with(self, other: SqlPrivileges) -> SqlPrivileges {
        SqlPrivileges(self.0 | other.0)
    }

    pub fn without(self, other: SqlPrivileges) -> SqlPrivileges {
        SqlPrivileges(self.0 & !other.0)
    }

    /// Returns the privileges, each as a set of its own.
    pub fn each(self) -> impl Iterator<Item = SqlPrivileges> {
        (0..8).map(|position| SqlPrivileges(1 << position)).filter(move |one| self.contains(*one))
    }

    /// Returns the privileges as a number, for records.
    pub fn bits(self) -> u8 {
        self.0
    }

    pub fn from_bits(bits: u8) -> SqlPrivileges {
        SqlPrivileges(bits)
    }
}

/// Writes the privileges as a statement lists them.
impl fmt::Display for SqlPrivileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = REQUIRED.iter().enumerate().filter(|(position, _)| self.0 & 1 << position != 0);
        f.write_str(&names.map(|(_, (name, _))| *name).collect::<Vec<_>>().join(", "))
    }
}

/// The object of a grant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GrantTarget {
    /// All tables of a schema.
    Schema(String),
    Table(String, String),
}

/// Writes the object as a statement names it. In a grant on a schema, `_`, `%` and `\` are part of
/// a pattern unless they are escaped.
impl fmt::Display for GrantTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrantTarget::Schema(schema) => {
                let mut pattern = String::with_capacity(schema.len());
                for character in schema.chars() {
                    if matches!(character, '_' | '%' | '\\') {
                        pattern.push('\\');
                    }
                    pattern.push(character);
                }
                write!(f, "{}.*", quote(&pattern))
            }
            GrantTarget::Table(schema, table) => write!(f, "{}.{}", quote(schema), quote(table)),
        }
    }
}

/// The grants of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grants {
    /// On each database, those that are created later as well.
    pub any: SqlPrivileges,
    pub own: BTreeMap<GrantTarget, SqlPrivileges>,
}

impl Grants {
    /// Translates privileges. Names that MariaDB cannot hold are no schema's and no table's, so
    /// nothing is granted on them.
    pub fn of(privileges: &[Privilege], ignores_case: bool) -> Grants {
        let mut grants = Grants::default();
        // An action may come from one pattern and another one from a second pattern that covers the
        // first, so each target gets the union of all patterns that cover it.
        let (mut any, mut patterns) = (ActionSet::EMPTY, BTreeMap::<GrantTarget, ActionSet>::new());
        for Privilege { pattern, actions } in privileges {
            match pattern {
                ResourcePattern::AnyResource => {
                    any = any.union(*actions);
                    for database in NOT_ORDINARY {
                        let own = patterns.entry(GrantTarget::Schema(database.to_owned())).or_default();
                        *own = own.union(*actions);
                    }
                }
                ResourcePattern::Collection { db, collection } if db.is_empty() && collection.is_empty() => {
                    any = any.union(*actions);
                }
                ResourcePattern::Collection { db, collection } => {
                    let buckets = format!("{BUCKETS}{collection}");
                    // A time series of this name has its documents in the buckets.
                    let has_buckets = !collection.is_empty() && !collection.starts_with("system.");
                    for name in [Some(&**collection), has_buckets.then_some(buckets.as_str())].into_iter().flatten() {
                        if let Some(target) = target(db, name, ignores_case) {
                            let own = patterns.entry(target).or_default();
                            *own = own.union(*actions);
                        }
                    }
                }
                ResourcePattern::Buckets { db, collection } if !collection.is_empty() => {
                    if let Some(target) = target(db, &format!("{BUCKETS}{collection}"), ignores_case) {
                        let own = patterns.entry(target).or_default();
                        *own = own.union(*actions);
                    }
                }
                ResourcePattern::Buckets { .. } | ResourcePattern::Cluster => {}
            }
        }
        grants.any = SqlPrivileges::of(&any);
        let of_schema = |schema: &str| {
            let own = patterns.get(&GrantTarget::Schema(schema.to_owned())).copied().unwrap_or_default();
            if is_ordinary(schema) { own.union(any) } else { own }
        };
        for (target, actions) in &patterns {
            let granted = match target {
                GrantTarget::Schema(schema) => SqlPrivileges::of(&of_schema(schema)),
                // What the schema's grant includes is not granted again.
                GrantTarget::Table(schema, _) => {
                    let of_schema = of_schema(schema);
                    SqlPrivileges::of(&actions.union(of_schema)).without(SqlPrivileges::of(&of_schema))
                }
            };
            if !granted.is_empty() {
                grants.own.insert(target.clone(), granted);
            }
        }
        grants
    }

    /// Returns the grants to make where these schemas exist.
    pub fn on(&self, schemas: &[String]) -> BTreeMap<GrantTarget, SqlPrivileges> {
        let mut all = self.own.clone();
        if !self.any.is_empty() {
            for schema in schemas.iter().filter(|schema| is_ordinary(schema)) {
                let granted = all.entry(GrantTarget::Schema(schema.clone())).or_default();
                *granted = granted.with(self.any);
            }
        }
        all
    }
}

/// Returns whether privileges on all databases cover a schema.
pub(crate) fn is_ordinary(schema: &str) -> bool {
    !NOT_ORDINARY.contains(&schema) && !names::is_hidden(schema)
}

/// Returns the object that holds a database, or one of its collections; `None` if MariaDB can hold
/// no such object, or if it belongs to Selkie.
fn target(db: &str, collection: &str, ignores_case: bool) -> Option<GrantTarget> {
    let schema = names::schema(db, ignores_case).ok()?.to_owned();
    if collection.is_empty() {
        return Some(GrantTarget::Schema(schema));
    }
    if names::is_own(db, collection) {
        return None;
    }
    let table = names::table(&Namespace::new(db, collection), ignores_case).ok()?;
    Some(GrantTarget::Table(schema, table))
}

/// Encodes grants for a record.
pub(crate) fn encode(grants: &BTreeMap<GrantTarget, SqlPrivileges>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (target, privileges) in grants {
        let (schema, table) = match target {
            GrantTarget::Schema(schema) => (schema, ""),
            GrantTarget::Table(schema, table) => (schema, table.as_str()),
        };
        for part in [&privileges.bits().to_string(), schema.as_str(), table] {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(SEPARATOR);
        }
    }
    bytes
}

/// Decodes what [`encode`] encodes; malformed parts are left out.
pub(crate) fn decode(bytes: &[u8]) -> BTreeMap<GrantTarget, SqlPrivileges> {
    let mut parts = bytes.split(|byte| *byte == SEPARATOR).map(|part| String::from_utf8_lossy(part).into_owned());
    let mut grants = BTreeMap::new();
    while let (Some(bits), Some(schema), Some(table)) = (parts.next(), parts.next(), parts.next()) {
        let Ok(bits) = bits.parse() else { continue };
        let target = if table.is_empty() { GrantTarget::Schema(schema) } else { GrantTarget::Table(schema, table) };
        grants.insert(target, SqlPrivileges::from_bits(bits));
    }
    grants
}

#[cfg(test)]
mod tests {
    use super::*;
    use auth::{RoleName, builtin_roles};

    fn of_role(role: &str, db: &str) -> String {
        let privileges = builtin_roles::privileges(&RoleName::new(role, db)).unwrap();
        text(&Grants::of(&privileges, false))
    }

    fn text(grants: &Grants) -> String {
        let mut lines: Vec<String> =
            grants.own.iter().map(|(target, privileges)| format!("{privileges} ON {target}")).collect();
        if !grants.any.is_empty() {
            lines.push(format!("{} ON any", grants.any));
        }
        lines.join("; ")
    }

    fn of(privileges: &[(ResourcePattern, &[Action])]) -> String {
        let privileges: Vec<_> = privileges
            .iter()
            .map(|(pattern, actions)| Privilege::new(pattern.clone(), ActionSet::of(actions)))
            .collect();
        text(&Grants::of(&privileges, false))
    }

    #[test]
    fn builtin_roles_become_grants() {
        let system_js = "ON `shop`.`system.js`";
        assert_eq!(of_role("read", "shop"), "SELECT ON `shop`.*");
        assert_eq!(of_role("readWrite", "shop"), "SELECT, INSERT, UPDATE, DELETE ON `shop`.*");
        let admin = of_role("dbAdmin", "shop");
        assert!(admin.starts_with("CREATE, DROP, INDEX, ALTER ON `shop`.*"), "{admin}");
        assert!(!admin.contains(system_js) || admin.contains(&format!("SELECT {system_js}")), "{admin}");
        let owner = of_role("dbOwner", "shop");
        assert!(owner.starts_with("SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER ON `shop`.*"), "{owner}");
        assert_eq!(of_role("userAdmin", "shop"), "");
        assert!(of_role("readAnyDatabase", "admin").ends_with("SELECT ON any"));
        assert!(of_role("root", "admin").contains("SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER ON any"));
        // Credentials stay in Selkie's own schema.
        assert!(!of_role("root", "admin").contains("system.users"));
        assert_eq!(of_role("hostManager", "admin"), "");
    }

    #[test]
    fn a_grant_requires_all_actions() {
        let shop = ResourcePattern::database("shop");
        assert_eq!(of(&[(shop.clone(), &[DropCollection, DropDatabase])]), "");
        assert_eq!(of(&[(shop.clone(), &[DropCollection, DropDatabase, CollMod])]), "DROP ON `shop`.*");
        // Actions of patterns that cover the same collections add up.
        let any = ResourcePattern::any_ordinary();
        assert_eq!(of(&[(shop, &[CreateCollection]), (any, &[CollMod])]), "CREATE ON `shop`.*");
    }

    #[test]
    fn collections_become_tables() {
        let orders = ResourcePattern::collection("shop", "orders");
        let tables = "SELECT, INSERT ON `shop`.`orders`; SELECT, INSERT ON `shop`.`system.buckets.orders`";
        assert_eq!(of(&[(orders.clone(), &[Find, Insert])]), tables);
        let shop = ResourcePattern::database("shop");
        assert_eq!(of(&[(orders, &[Find]), (shop, &[Find])]), "SELECT ON `shop`.*");
        assert_eq!(of(&[(ResourcePattern::buckets("shop", "t"), &[Find])]), "SELECT ON `shop`.`system.buckets.t`");
        for without in [
            ResourcePattern::Cluster,
            ResourcePattern::collection("", "orders"),
            ResourcePattern::buckets("", ""),
            ResourcePattern::collection("admin", "system.users"),
            ResourcePattern::database("mysql"),
            ResourcePattern::database("selkie"),
            ResourcePattern::database("a.b"),
            ResourcePattern::database("$external"),
        ] {
            assert_eq!(of(&[(without, &[Find])]), "");
        }
    }

    #[test]
    fn names_are_quoted() {
        let check = |db: &str, collection: &str, expected: &str| {
            let granted = of(&[(ResourcePattern::collection(db, collection), &[Find])]);
            assert!(granted.split("; ").any(|one| one == format!("SELECT ON {expected}")), "{granted}");
        };
        check("a_b%c", "", "`a\\_b\\%c`.*");
        check("a_b%c", "x_y%", "`a_b%c`.`x_y%`");
        check("a`b", "c`d\\'", "`a``b`.`c``d\\'`");
    }

    #[test]
    fn any_database_is_each_ordinary_one() {
        let grants = Grants::of(&builtin_roles::privileges(&RoleName::new("readAnyDatabase", "admin")).unwrap(), false);
        let schemas = ["admin", "config", "local", "mysql", "selkie", "shop", "sys"].map(str::to_owned);
        let on: Vec<String> = grants.on(&schemas).keys().map(GrantTarget::to_string).collect();
        assert!(on.contains(&"`admin`.*".to_owned()) && on.contains(&"`shop`.*".to_owned()), "{on:?}");
        assert!(
            !on.iter().any(|target| ["`local`.*", "`mysql`.*", "`selkie`.*", "`sys`.*"].contains(&target.as_str()))
        );
    }

    #[test]
    fn records_round_trip() {
        let orders = GrantTarget::Table("shop".into(), "or\tders".into());
        let grants =
            BTreeMap::from([(orders, SqlPrivileges(3)), (GrantTarget::Schema("shop".into()), SqlPrivileges::CREATE)]);
        assert_eq!(decode(&encode(&grants)), grants);
        assert!(decode(b"").is_empty() && decode(b"x\0y\0\0").is_empty());
    }
}
