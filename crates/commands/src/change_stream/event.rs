//! Events: an entry of the log as a change stream shows it.

use super::images::Images;
use super::token::{ResumeToken, TokenKind};
use document::{Doc, DocBuf, DocWriter, Value};
use store::change_feed::LoggedTransaction;
use store::{FeedEntry, LoggedChange, Namespace, Operation};

/// What an entry means to a stream.
#[derive(Debug)]
pub struct Event<'a> {
    pub kind: EventKind<'a>,
    pub namespace: Namespace,
    /// The collection, if there is one that is not the definitions of views.
    pub collection_uuid: Option<[u8; 16]>,
    pub token: ResumeToken,
    pub wall_ms: i64,
    pub transaction: Option<LoggedTransaction<'a>>,
}

#[derive(Clone, Debug)]
pub enum EventKind<'a> {
    Insert(Doc<'a>),
    Update { id: Value<'a>, difference: Doc<'a> },
    Replace { id: Value<'a>, document: Doc<'a> },
    Delete(Value<'a>),
    Drop,
    Rename { to: Namespace, drop_target: Option<Value<'a>> },
    DropDatabase,
    Create(Doc<'a>),
    CreateIndexes(Vec<Doc<'a>>),
    DropIndexes(Doc<'a>),
    Modify { command: Doc<'a>, details: Doc<'a> },
    Invalidate,
}

impl<'a> Event<'a> {
    /// Returns the event of an entry; `None` if it has none.
    pub fn of(change: &LoggedChange<'a>, entry: &FeedEntry) -> Option<Event<'a>> {
        let (operation, collection_uuid) = (entry.operation, change.collection_uuid);
        let kind = TokenKind::Event { operation, collection_uuid, invalidates: false };
        let token = ResumeToken { position: entry.position, kind };
        let mut event = Event {
            kind: EventKind::Drop,
            namespace: change.namespace.clone(),
            collection_uuid: change.collection_uuid,
            token,
            wall_ms: change.wall_ms,
            transaction: change.transaction,
        };
        if &*change.namespace.collection == "system.views" {
            return event.of_view(change.operation);
        }
        event.kind = match change.operation {
            Operation::Insert { document } => EventKind::Insert(document),
            Operation::Update { id, difference } => EventKind::Update { id, difference },
            Operation::Replace { id, document } => EventKind::Replace { id, document },
            Operation::Delete { id } => EventKind::Delete(id),
            Operation::Command { command, details } => return event.of_command(command, details.unwrap_or(Doc::EMPTY)),
            Operation::Note { .. } => return None,
        };
        Some(event)
    }

    /// A change of the definition of a view. Its namespace is the view.
    fn of_view(mut self, operation: Operation<'a>) -> Option<Event<'a>> {
        let (id, kind) = match operation {
            Operation::Insert { document } => (document.get("_id")?, EventKind::Create(document)),
            Operation::Delete { id } => (id, EventKind::Drop),
            Operation::Update { id, .. } => (id, EventKind::Modify { command: Doc::EMPTY, details: Doc::EMPTY }),
            Operation::Replace { id, document } => (id, EventKind::Modify { command: document, details: Doc::EMPTY }),
            Operation::Command { .. } | Operation::Note { .. } => return None,
        };
        let (database, view) = id.as_str()?.split_once('.')?;
        self.namespace = Namespace::new(database, view);
        self.collection_uuid = None;
        self.kind = kind;
        Some(self)
    }

    fn of_command(mut self, command: Doc<'a>, details: Doc<'a>) -> Option<Event<'a>> {
        let first = command.first()?;
        let name = first.value().as_str();
        self.namespace = Namespace::new(&self.namespace.database, name.unwrap_or_default());
        self.kind = match first.key() {
            "drop" => EventKind::Drop,
            "dropDatabase" => EventKind::DropDatabase,
            "create" => EventKind::Create(command),
            "createIndexes" => EventKind::CreateIndexes(vec![command]),
            "commitIndexBuild" => {
                let indexes = command.get("indexes")?.as_array()?;
                EventKind::CreateIndexes(indexes.values().filter_map(Value::as_document).collect())
            }
            "dropIndexes" => EventKind::DropIndexes(details),
            "collMod" => EventKind::Modify { command, details },
            "renameCollection" => {
                let (database, collection) = name?.split_once('.')?;
                self.namespace = Namespace::new(database, collection);
                let (database, to) = command.get("to")?.as_str()?.split_once('.')?;
                EventKind::Rename { to: Namespace::new(database, to), drop_target: command.get("dropTarget") }
            }
            _ => return None,
        };
        Some(self)
    }

    /// Returns the `invalidate` behind this event.
    pub fn invalidate(&self) -> Event<'static> {
        let kind = match self.token.kind {
            TokenKind::Event { operation, collection_uuid, .. } => {
                TokenKind::Event { operation, collection_uuid, invalidates: true }
            }
            kind => kind,
        };
        Event {
            kind: EventKind::Invalidate,
            namespace: self.namespace.clone(),
            collection_uuid: None,
            token: ResumeToken { kind, ..self.token },
            wall_ms: self.wall_ms,
            transaction: None,
        }
    }

    /// Returns whether only streams with `showExpandedEvents` show the event.
    pub fn is_expanded(&self) -> bool {
        match self.kind {
            EventKind::Create(_)
            | EventKind::CreateIndexes(_)
            | EventKind::DropIndexes(_)
            | EventKind::Modify { .. } => true,
            // A view.
            EventKind::Drop => self.collection_uuid.is_none(),
            _ => false,
        }
    }

    pub fn operation_type(&self) -> &'static str {
        match self.kind {
            EventKind::Insert(_) => "insert",
            EventKind::Update { .. } => "update",
            EventKind::Replace { .. } => "replace",
            EventKind::Delete(_) => "delete",
            EventKind::Drop => "drop",
            EventKind::Rename { .. } => "rename",
            EventKind::DropDatabase => "dropDatabase",
            EventKind::Create(_) => "create",
            EventKind::CreateIndexes(_) => "createIndexes",
            EventKind::DropIndexes(_) => "dropIndexes",
            EventKind::Modify { .. } => "modify",
            EventKind::Invalidate => "invalidate",
        }
    }

    /// Returns the event as a document.
    pub fn to_document(&self, images: &Images, shows_expanded: bool) -> DocBuf {
        DocBuf::build(|writer| {
            if let Some(LoggedTransaction { session, number }) = self.transaction {
                writer.append("txnNumber", number);
                writer.append("lsid", session);
            }
            if let EventKind::Rename { to, .. } = &self.kind {
                append_namespace("to", to, writer);
            }
            self.token.append("_id", writer);
            writer.append("operationType", self.operation_type());
            writer.append("clusterTime", self.token.position.as_value());
            if let Some(uuid) = self.collection_uuid.as_ref().filter(|_| shows_expanded) {
                writer.append("collectionUUID", Value::Binary { subtype: 4, bytes: uuid });
            }
            writer.append("wallTime", Value::DateTime(self.wall_ms));
            match &self.kind {
                EventKind::Insert(document) | EventKind::Replace { document, .. } => {
                    writer.append("fullDocument", *document);
                }
                _ => append_image("fullDocument", images.after.as_ref(), writer),
            }
            match self.kind {
                EventKind::Invalidate => {}
                EventKind::DropDatabase => writer.document("ns").append("db", &*self.namespace.database),
                _ => append_namespace("ns", &self.namespace, writer),
            }
            self.append_key(writer);
            append_image("fullDocumentBeforeChange", images.before.as_ref(), writer);
            if shows_expanded {
                self.append_operation(writer);
            }
        })
    }

    fn append_key(&self, writer: &mut DocWriter<'_>) {
        let id = match self.kind {
            EventKind::Insert(document) => document.get("_id").unwrap_or(Value::Null),
            EventKind::Update { id, .. } | EventKind::Replace { id, .. } | EventKind::Delete(id) => id,
            _ => return,
        };
        writer.document("documentKey").append("_id", id);
        if let EventKind::Update { difference, .. } = self.kind {
            update::diff::describe(difference, &mut writer.document("updateDescription"));
        }
    }

    /// Appends what `showExpandedEvents` adds about a change of the catalog.
    fn append_operation(&self, writer: &mut DocWriter<'_>) {
        match &self.kind {
            EventKind::Create(command) | EventKind::Modify { command, .. } => {
                let mut description = writer.document("operationDescription");
                command.elements().skip(1).for_each(|option| description.append_element(option));
            }
            EventKind::CreateIndexes(indexes) => {
                let mut description = writer.document("operationDescription");
                let mut array = description.array("indexes");
                for index in indexes {
                    let mut shown = array.document();
                    let options = index.elements().filter(|option| option.key() != "createIndexes");
                    options.for_each(|option| shown.append_element(option));
                }
            }
            EventKind::DropIndexes(index) => {
                writer.document("operationDescription").array("indexes").push(*index);
            }
            EventKind::Rename { to, drop_target } => {
                let mut description = writer.document("operationDescription");
                append_namespace("to", to, &mut description);
                if let Some(target) = drop_target {
                    description.append("dropTarget", *target);
                }
            }
            _ => {}
        }
        if let EventKind::Modify { details, .. } = &self.kind
            && !details.is_empty()
        {
            let mut state = writer.document("stateBeforeChange");
            for (name, shown) in [("collectionOptions_old", "collectionOptions"), ("indexOptions_old", "indexOptions")]
            {
                if let Some(options) = details.get(name) {
                    state.append(shown, options);
                }
            }
        }
    }
}

fn append_namespace(name: &str, namespace: &Namespace, writer: &mut DocWriter<'_>) {
    let mut writer = writer.document(name);
    writer.append("db", &*namespace.database);
    writer.append("coll", &*namespace.collection);
}

/// Appends an image that the stream asks for: `null` if there is none.
fn append_image(name: &str, image: Option<&Option<DocBuf>>, writer: &mut DocWriter<'_>) {
    match image {
        Some(Some(document)) => writer.append(name, document),
        Some(None) => writer.append(name, Value::Null),
        None => {}
    }
}
