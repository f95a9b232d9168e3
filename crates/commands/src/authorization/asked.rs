//! A command that a user wants to run, and what the user may do.

use auth::{ActionSet, Privilege, Privileges, Resource, ResourcePattern, RoleName, UserName};
use document::{Doc, Element, Value};
use mongo_wire::Request;
use server::cursor::CursorOwner;

/// The collection of commands that name none, in MongoDB's resources.
pub const NO_COLLECTION: &str = "$cmd.aggregate";

/// A command that a user wants to run.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub database: &'a str,
    /// The element that names the command. A collection that was named by its UUID is resolved.
    pub first: Element<'a>,
    pub body: Doc<'a>,
    /// The request, if the command came with one of its own: it may have document sequences.
    pub request: Option<&'a Request>,
    /// The user that is logged in.
    pub user: Option<&'a UserName>,
    /// The roles that the user has, inherited ones as well.
    pub roles: &'a [RoleName],
    /// The open cursors and operations, for commands that name some.
    pub state: Option<&'a dyn State>,
}

/// The cursors and operations of the server.
pub trait State {
    /// Returns the user and the namespace of a cursor; `None` if it does not exist.
    fn owner_of_cursor(&self, id: i64) -> Option<CursorOwner>;

    /// Returns whether an operation exists, and belongs to a user.
    fn is_operation_of(&self, id: i64, user: &UserName) -> bool;
}

impl<'a> Asked<'a> {
    /// Returns a command that is part of this one.
    pub fn within(&self, first: Element<'a>, body: Doc<'a>) -> Asked<'a> {
        Asked { first, body, request: None, ..*self }
    }

    /// Returns the collection that the first field names.
    pub fn collection(&self) -> Option<&'a str> {
        self.first.value().as_str()
    }

    /// Returns the resource that the first field names: the database if it names no collection.
    pub fn target(&self) -> Resource<'a> {
        match self.collection() {
            Some(collection) => Resource::Collection(self.database, collection),
            None => Resource::Database(self.database),
        }
    }

    /// Returns the values of each field with this name.
    pub fn values(&self, name: &'static str) -> impl Iterator<Item = Value<'a>> {
        values(self.body, name)
    }

    /// Returns whether a field with this name is true.
    pub fn is_set(&self, name: &'static str) -> bool {
        self.values(name).any(|value| value.is_truthy())
    }

    /// Returns whether a field with this name exists, and each one is true.
    pub fn is_always_set(&self, name: &'static str) -> bool {
        let mut values = self.values(name).peekable();
        values.peek().is_some() && values.all(|value| value.is_truthy())
    }

    /// Returns the statements in a field of the body or in a document sequence.
    pub fn statements(&self, name: &'static str) -> impl Iterator<Item = Doc<'a>> {
        let inline = self.values(name).filter_map(Value::as_array).flat_map(Doc::values).filter_map(Value::as_document);
        let sequence = self.request.and_then(|request| request.sequence(name));
        inline.chain(sequence.into_iter().flatten())
    }
}

/// Returns the values of each field with this name.
pub fn values<'a>(document: Doc<'a>, name: &'static str) -> impl Iterator<Item = Value<'a>> {
    document.elements().filter(move |field| field.key() == name).map(|field| field.value())
}

/// What a user may do.
pub trait Grants {
    /// Returns whether all these actions are allowed on a resource.
    fn allow(&mut self, resource: Resource<'_>, actions: &ActionSet) -> bool;

    /// Returns whether any action is allowed on a database or a collection in it.
    fn allow_any_on_database(&mut self, database: &str) -> bool;
}

/// The privileges of a login.
pub struct Granted<'p>(pub &'p Privileges);

impl Grants for Granted<'_> {
    fn allow(&mut self, resource: Resource<'_>, actions: &ActionSet) -> bool {
        self.0.allows_all(resource, actions)
    }

    fn allow_any_on_database(&mut self, database: &str) -> bool {
        self.0.allows_any_on_database(database)
    }
}

/// Records the privileges that a command uses, for a cursor: each `getMore` checks them again.
#[derive(Default)]
pub struct Recorder(pub Vec<Privilege>);

impl Grants for Recorder {
    fn allow(&mut self, resource: Resource<'_>, actions: &ActionSet) -> bool {
        let pattern = match resource {
            Resource::Cluster => ResourcePattern::Cluster,
            Resource::Database(database) => ResourcePattern::database(database),
            Resource::Collection(database, collection) => ResourcePattern::collection(database, collection),
            Resource::AnyOrdinary => ResourcePattern::any_ordinary(),
            Resource::Any => ResourcePattern::AnyResource,
        };
        self.0.push(Privilege::new(pattern, *actions));
        true
    }

    fn allow_any_on_database(&mut self, _database: &str) -> bool {
        true
    }
}
