//! The configuration file: strict TOML. An unknown key or value is an error with its line.

use super::object::Object;
use super::parameter::{self, OBJECT_SECTIONS, Parameter, SECTIONS, filters, servers, services};
use super::setting::{ConfigError, Origin};
use super::value::Raw;
use super::written::Written;
use std::path::Path;
use strict_toml::{Key, Source, TomlError, Value, nearest};
use toml::de::DeValue;

/// Reads and parses the file.
pub fn load(path: &Path) -> Result<Written, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError {
        origin: None,
        message: format!("cannot read the configuration file {}: {error}", path.display()),
    })?;
    read(path, &text)
}

/// Parses a file's text. The path is for messages.
pub fn read(path: &Path, text: &str) -> Result<Written, ConfigError> {
    let file = File { path, source: Source::new(text) };
    let table = file.source.parse().map_err(|refusal| file.error(refusal))?;
    let mut written = Written::default();
    for (key, value) in &table {
        match (key.get_ref().as_ref(), value.get_ref()) {
            (section, DeValue::Table(inner)) if is_section(section) => {
                for (key, value) in inner {
                    file.read_parameter(section, key, value, &mut written)?;
                }
            }
            (section, DeValue::Table(inner)) if is_object_section(section) => {
                for (name, value) in inner {
                    file.read_object(section, name, value, &mut written)?;
                }
            }
            (section, _) if is_object_section(section) => {
                return Err(file.refuse(key.span().start, has_names(section)));
            }
            (section, _) if is_section(section) => {
                let message =
                    format!("{section} is a section: write [{section}] on a line of its own and its keys below");
                return Err(file.refuse(key.span().start, message));
            }
            _ => file.read_parameter("", key, value, &mut written)?,
        }
    }
    Ok(written)
}

fn is_section(name: &str) -> bool {
    SECTIONS.iter().any(|&(section, _)| section == name && !section.is_empty())
}

fn is_object_section(name: &str) -> bool {
    OBJECT_SECTIONS.iter().any(|&(section, _)| section == name)
}

fn has_names(section: &str) -> String {
    format!("each {section} has a name: write [{section}.NAME] on a line of its own and its keys below")
}

struct File<'f> {
    path: &'f Path,
    source: Source<'f>,
}

impl File<'_> {
    fn read_parameter(
        &self,
        section: &str,
        key: &Key<'_>,
        value: &Value<'_>,
        written: &mut Written,
    ) -> Result<(), ConfigError> {
        let name = key.get_ref().as_ref();
        let Some(parameter) = parameter::find(section, name) else {
            return Err(self.refuse(key.span().start, unknown(section, name)));
        };
        let at = value.span().start;
        parameter
            .read(written, raw(value.get_ref()), self.origin(at))
            .map_err(|message| self.refuse(at, format!("{name}: {message}")))
    }

    /// Reads an object, such as `[server.db1]`.
    fn read_object(
        &self,
        section: &str,
        name: &Key<'_>,
        value: &Value<'_>,
        written: &mut Written,
    ) -> Result<(), ConfigError> {
        let at = name.span().start;
        let DeValue::Table(keys) = value.get_ref() else { return Err(self.refuse(at, has_names(section))) };
        let name = name.get_ref().as_ref();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            let message = format!("{name:?} is not a name; names consist of letters, digits, - and _");
            return Err(self.refuse(at, message));
        }
        let (keys, object) = (keys.iter(), (section, name, at));
        match section {
            "server" => written.servers.servers.push(self.read_keys(object, keys, servers::SERVER)?),
            "monitor" => written.servers.monitors.push(self.read_keys(object, keys, servers::MONITOR)?),
            "filter" => written.filters.filters.push(self.read_keys(object, keys, filters::FILTER)?),
            "service" => written.services.services.push(self.read_keys(object, keys, services::SERVICE)?),
            _ => written.services.listeners.push(self.read_keys(object, keys, services::LISTENER)?),
        }
        Ok(())
    }

    /// Reads the keys of an object.
    fn read_keys<'k, W: Default>(
        &self,
        (section, name, at): (&str, &str, usize),
        keys: impl Iterator<Item = (&'k Key<'k>, &'k Value<'k>)>,
        parameters: &[Parameter<W>],
    ) -> Result<Object<W>, ConfigError> {
        let mut written = W::default();
        for (key, value) in keys {
            let (name, at) = (key.get_ref().as_ref(), value.span().start);
            let Some(parameter) = parameters.iter().find(|parameter| parameter.name == name) else {
                return Err(self.refuse(key.span().start, unknown_of_object(section, name)));
            };
            parameter
                .read(&mut written, raw(value.get_ref()), self.origin(at))
                .map_err(|message| self.refuse(at, format!("{name}: {message}")))?;
        }
        Ok(Object { name: name.to_owned(), origin: self.origin(at), written })
    }

    fn origin(&self, at: usize) -> Origin {
        Origin::File { path: self.path.to_owned(), line: self.source.line(at) }
    }

    fn refuse(&self, at: usize, message: String) -> ConfigError {
        self.error(self.source.refuse(at, message))
    }

    fn error(&self, refusal: TomlError) -> ConfigError {
        let origin = Origin::File { path: self.path.to_owned(), line: refusal.line };
        ConfigError { origin: Some(origin), message: refusal.message }
    }
}

/// Describes an unknown key: with the nearest name, or the section it belongs to.
fn unknown(section: &str, name: &str) -> String {
    let place =
        |section: &str| if section.is_empty() { "the top of the file".to_owned() } else { format!("[{section}]") };
    let what = format!("there is no parameter {name:?} at {}", place(section)).replace("at [", "in [");
    if let Some(elsewhere) = parameter::all().find(|parameter| parameter.name == name) {
        return format!("{what}; it belongs to {}", place(elsewhere.section));
    }
    let here = parameter::all().filter(|parameter| parameter.section == section).map(|parameter| parameter.name);
    let sections = SECTIONS
        .iter()
        .chain(OBJECT_SECTIONS)
        .map(|&(section, _)| section)
        .filter(|name| section.is_empty() && !name.is_empty());
    let everywhere = parameter::all().map(|parameter| parameter.name);
    match nearest(name, here.clone().chain(sections)).or_else(|| nearest(name, everywhere)) {
        Some(meant) => format!("{what}; did you mean {meant:?}?"),
        None => format!("{what}; its parameters are {}", here.collect::<Vec<_>>().join(", ")),
    }
}

/// Describes an unknown key of an object.
fn unknown_of_object(section: &str, name: &str) -> String {
    let here = parameter::names_in(section);
    let what = format!("there is no parameter {name:?} in [{section}.NAME]");
    match nearest(name, here.iter().copied()) {
        Some(meant) => format!("{what}; did you mean {meant:?}?"),
        None => format!("{what}; its parameters are {}", here.join(", ")),
    }
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.as_ref().to_owned()),
        DeValue::Integer(_) => strict_toml::integer(value).map_or(Raw::Other("number out of range"), Raw::Integer),
        DeValue::Boolean(boolean) => Raw::Boolean(*boolean),
        DeValue::Array(items) => Raw::List(items.iter().map(|item| raw(item.get_ref())).collect()),
        DeValue::Float(_) => Raw::Other("fraction"),
        DeValue::Datetime(_) => Raw::Other("date"),
        DeValue::Table(_) => Raw::Other("table"),
    }
}
