//! MariaDB's definitions, by which the writes of SQL clients are understood.

use sql_classify::{Body, Definition, RoutineKind, SchemaObject, TableDefinition, TableKind};
use std::pin::Pin;
use store::Namespace;
use store_mariadb::{Routine, TableDefinitions};

/// MariaDB's definitions as a source for the sessions of SQL clients.
pub struct MariaDbDefinitions(pub TableDefinitions);

impl sql_session::DefinitionSource for MariaDbDefinitions {
    fn look_up(&self, object: SchemaObject) -> Pin<Box<dyn Future<Output = Option<Definition>> + Send>> {
        match object {
            SchemaObject::Table(database, name) => {
                let found = self.0.look_up(Namespace::new(&database, &name));
                Box::pin(async move { Some(Definition::Table(table_definition(found.await?))) })
            }
            SchemaObject::Routine(kind, database, name) => {
                let is_procedure = kind == RoutineKind::Procedure;
                let found = self.0.look_up_routine(Routine { name: Namespace::new(&database, &name), is_procedure });
                Box::pin(async move { Some(Definition::Routine(found.await?.map(body))) })
            }
        }
    }
}

fn table_definition(found: Option<store_mariadb::TableDefinition>) -> TableDefinition {
    let Some(store_mariadb::TableDefinition { kind, engine, text, triggers }) = found else {
        return TableDefinition { kind: TableKind::Absent, triggers: Vec::new() };
    };
    let kind = match kind.as_str() {
        "SEQUENCE" => TableKind::Sequence,
        "VIEW" => TableKind::View(text),
        _ if engine == "MRG_MyISAM" => TableKind::Merge(text),
        _ => TableKind::Base { engine },
    };
    TableDefinition { kind, triggers: triggers.into_iter().map(body).collect() }
}

fn body(store_mariadb::Body { text, sql_mode }: store_mariadb::Body) -> Body {
    Body { text, sql_mode }
}
