//! From the `collation` document of a command to a [`Collation`].

use super::{Collation, Collator, locales};
use crate::{Doc, DocBuf, Element, Kind, Value, compare};
use error::{Code, Error, Result};
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;
use std::cmp::Ordering;
use std::sync::Arc;

/// The version of collations: that of the library in a 6.0 server, which drivers and backups
/// compare.
const VERSION: &str = "57.1";

/// The options of a collation, with defaults.
struct Options<'a> {
    locale: &'a str,
    case_level: bool,
    case_first: &'a str,
    strength: i32,
    numeric_ordering: bool,
    /// `None`: the locale's default, which is shifted for Thai.
    alternate: Option<&'a str>,
    max_variable: &'a str,
    normalization: bool,
    backwards: Option<bool>,
    version: Option<&'a str>,
}

impl Collation {
    /// Parses a collation. `parent` is the name that messages show it under: empty, or `create`.
    ///
    /// Fails with 2 for invalid values, 14 for wrong types, 161 for another library's version,
    /// 40414 without `locale`, 40415 for unknown fields, 51024 for a strength out of range.
    pub fn parse(specification: Doc<'_>, parent: &str) -> Result<Collation> {
        let options = Options::read(specification, parent)?;
        if options.locale == "simple" {
            return Ok(Collation::SIMPLE);
        }
        options.check(specification, parent)?;
        Ok(Collation(Some(Arc::new(options.build(specification)?))))
    }
}

impl<'a> Options<'a> {
    fn read(specification: Doc<'a>, parent: &str) -> Result<Options<'a>> {
        let path = if parent.is_empty() { "collation".to_owned() } else { format!("{parent}.collation") };
        let mut locale = None;
        let mut options = Options {
            locale: "",
            case_level: false,
            case_first: "off",
            strength: 3,
            numeric_ordering: false,
            alternate: None,
            max_variable: "punct",
            normalization: false,
            backwards: None,
            version: None,
        };
        for (index, element) in specification.elements().enumerate() {
            let name = element.key();
            if specification.elements().take(index).any(|other| other.key_bytes() == element.key_bytes()) {
                return Err(Error::new(Code(40413), format!("BSON field '{path}.{name}' is a duplicate field")));
            }
            if matches!(element.kind, Kind::Null | Kind::Undefined) && is_option(name) {
                continue;
            }
            let field = Field { path: &path, element };
            match name {
                "locale" => locale = Some(field.string()?),
                "caseLevel" => options.case_level = field.boolean()?,
                "caseFirst" => options.case_first = field.one_of(&["upper", "lower", "off"])?,
                "strength" => options.strength = field.strength()?,
                "numericOrdering" => options.numeric_ordering = field.boolean()?,
                "alternate" => options.alternate = Some(field.one_of(&["non-ignorable", "shifted"])?),
                "maxVariable" => options.max_variable = field.one_of(&["punct", "space"])?,
                "normalization" => options.normalization = field.boolean()?,
                "backwards" => match element.value() {
                    Value::Boolean(flag) => options.backwards = Some(flag),
                    other => {
                        let found = other.kind().alias();
                        return Err(Error::type_mismatch(format!(
                            "Field 'backwards' should be a boolean value, but found: {found}"
                        )));
                    }
                },
                "version" => options.version = Some(field.string()?),
                _ => return Err(Error::new(Code(40415), format!("BSON field '{path}.{name}' is an unknown field."))),
            }
        }
        options.locale = locale.ok_or_else(|| {
            Error::new(Code(40414), format!("BSON field '{path}.locale' is missing but a required field"))
        })?;
        Ok(options)
    }

    fn check(&self, specification: Doc<'_>, parent: &str) -> Result<()> {
        let refuse = |complaint: &str| {
            let shown = self.shown(specification, parent);
            Err(Error::bad_value(format!("{complaint} in: {shown}")))
        };
        if self.locale.contains('\0') {
            let shown = self.shown(specification, parent);
            return Err(Error::bad_value(format!("Field 'locale' cannot contain null byte. Collation spec: {shown}")));
        }
        if self.locale.is_empty() {
            return refuse("Field 'locale' cannot be the empty string");
        }
        if locales::lacks_rules(self.locale) {
            return refuse("Field 'locale' names an order that is not supported: its rules are not at hand");
        }
        if locales::bcp47(self.locale).is_none() {
            let shown = self.shown(specification, parent);
            let hint =
                locales::suggestion(self.locale).map_or_else(String::new, |it| format!(". Did you mean '{it}'?"));
            return Err(Error::bad_value(format!("Field 'locale' is invalid in: {shown}{hint}")));
        }
        if let Some(version) = self.version.filter(|version| *version != VERSION) {
            let shown = self.shown(specification, parent);
            return Err(Error::new(
                Code::INCOMPATIBLE_COLLATION_VERSION,
                format!(
                    "Requested collation version {version} but the only available collator version was {VERSION}. \
                     Requested collation spec: {shown}"
                ),
            ));
        }
        if self.backwards == Some(true) && self.strength == 1 {
            return refuse("'backwards' is invalid with 'strength' of 1");
        }
        if self.case_first != "off" && !self.case_level && self.strength < 3 {
            return refuse("'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2");
        }
        Ok(())
    }

    fn build(&self, specification: Doc<'_>) -> Result<Collator> {
        let backwards = self.backwards.unwrap_or(self.locale == "fr_CA");
        let unsupported = || {
            let shown = self.shown(specification, "");
            Error::bad_value(format!("Field 'backwards' is not supported with this locale in: {shown}"))
        };
        let locale = locales::with_accents(self.locale, backwards).ok_or_else(unsupported)?;
        let tag = locales::bcp47(locale).ok_or_else(unsupported)?;
        let locale: Locale = tag.parse().map_err(|_| Error::internal(format!("locale {tag} is not understood")))?;
        let mut preferences = CollatorPreferences::from(&locale);
        preferences.case_first = match self.case_first {
            "upper" => Some(CollationCaseFirst::Upper),
            "lower" => Some(CollationCaseFirst::Lower),
            // The locale's default: Danish sorts upper case first all the same.
            _ => None,
        };
        preferences.numeric_ordering = Some(match self.numeric_ordering {
            true => CollationNumericOrdering::True,
            false => CollationNumericOrdering::False,
        });
        let mut options = CollatorOptions::default();
        options.strength = Some(match self.strength {
            1 => Strength::Primary,
            2 => Strength::Secondary,
            3 => Strength::Tertiary,
            4 => Strength::Quaternary,
            _ => Strength::Identical,
        });
        options.case_level = Some(if self.case_level { CaseLevel::On } else { CaseLevel::Off });
        let is_thai = self.locale == "th" || self.locale.starts_with("th@");
        let shifted = self.alternate.map_or(is_thai, |alternate| alternate == "shifted");
        options.alternate_handling =
            Some(if shifted { AlternateHandling::Shifted } else { AlternateHandling::NonIgnorable });
        options.max_variable = Some(match self.max_variable {
            "space" => MaxVariable::Space,
            _ => MaxVariable::Punctuation,
        });
        let rules = CollatorBorrowed::try_new(preferences, options)
            .map_err(|error| Error::internal(format!("no collation data for {tag}: {error}")))?;
        let differs_from_specification = shifted && self.alternate.is_none();
        let distinguishes_quotes = !shifted || self.max_variable == "space";
        Ok(Collator {
            rules,
            distinguishes_quotes,
            differs_from_specification,
            specification: self.document(Some(backwards), Some(VERSION), |_| true),
        })
    }

    /// Returns the options as messages show them: those that were given, or all of them if MongoDB
    /// has added the defaults by then.
    fn shown(&self, specification: Doc<'_>, parent: &str) -> String {
        let filled = self.document(self.backwards, self.version, |_| true);
        let shown = if parent.is_empty() { specification } else { filled.as_doc() };
        let fields = shown.iter().map(|(name, value)| match value {
            Value::String(text) => format!("{name}: \"{}\"", text.chars().take(150).collect::<String>()),
            Value::Boolean(flag) => format!("{name}: {flag}"),
            _ => format!("{name}: {}", self.strength),
        });
        format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
    }

    fn document(&self, backwards: Option<bool>, version: Option<&str>, shown: impl Fn(&str) -> bool) -> DocBuf {
        let mut document = DocBuf::new();
        let mut append = |name: &str, value: Option<Value<'_>>| {
            if let Some(value) = value.filter(|_| shown(name)) {
                document.append(name, value);
            }
        };
        append("locale", Some(self.locale.into()));
        append("caseLevel", Some(self.case_level.into()));
        append("caseFirst", Some(self.case_first.into()));
        append("strength", Some(self.strength.into()));
        append("numericOrdering", Some(self.numeric_ordering.into()));
        append("alternate", Some(self.alternate.unwrap_or("non-ignorable").into()));
        append("maxVariable", Some(self.max_variable.into()));
        append("normalization", Some(self.normalization.into()));
        append("backwards", backwards.map(Value::Boolean));
        append("version", version.map(Value::String));
        document
    }
}

fn is_option(name: &str) -> bool {
    matches!(
        name,
        "locale"
            | "caseLevel"
            | "caseFirst"
            | "strength"
            | "numericOrdering"
            | "alternate"
            | "maxVariable"
            | "normalization"
            | "backwards"
            | "version"
    )
}

/// One option as sent.
struct Field<'p, 'a> {
    path: &'p str,
    element: Element<'a>,
}

impl<'a> Field<'_, 'a> {
    fn wrong_type(&self, expected: &str) -> Error {
        let (path, name, found) = (self.path, self.element.key(), self.element.kind.alias());
        Error::type_mismatch(format!("BSON field '{path}.{name}' is the wrong type '{found}', expected {expected}"))
    }

    fn string(&self) -> Result<&'a str> {
        match self.element.value() {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong_type("type 'string'")),
        }
    }

    fn boolean(&self) -> Result<bool> {
        match self.element.value() {
            Value::Boolean(flag) => Ok(flag),
            _ => Err(self.wrong_type("type 'bool'")),
        }
    }

    fn one_of(&self, values: &[&str]) -> Result<&'a str> {
        let value = self.string()?;
        if values.contains(&value) {
            return Ok(value);
        }
        let (path, name) = (self.path, self.element.key());
        Err(Error::bad_value(format!("Enumeration value '{value}' for field '{path}.{name}' is not a valid value.")))
    }

    /// Reads a number from 1 to 5, without its fraction.
    fn strength(&self) -> Result<i32> {
        let value = self.element.value();
        let number = match value {
            Value::Int32(number) => number,
            Value::Int64(number) => number.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
            Value::Double(number) => number as i32,
            Value::Decimal128(_) => whole_part(value),
            _ => return Err(self.wrong_type("types '[long, int, decimal, double']")),
        };
        let out_of_range = |bound: &str| {
            Err(Error::new(
                Code(51024),
                format!("BSON field 'strength' value must be {bound}, actual value '{number}'"),
            ))
        };
        match number {
            6.. => out_of_range("<= 5"),
            ..0 => out_of_range(">= 0"),
            0 => Err(Error::bad_value("Enumeration value '0' for field 'collation.strength' is not a valid value.")),
            strength => Ok(strength),
        }
    }
}

/// Returns the integer part of a decimal, as far as it matters for a strength.
fn whole_part(value: Value<'_>) -> i32 {
    let at_least = |number: i32| compare(value, Value::Int32(number)) != Ordering::Less;
    match (at_least(0), at_least(6)) {
        (_, true) => i32::MAX,
        (true, false) => (0..6).rev().find(|number| at_least(*number)).unwrap_or(0),
        (false, _) if compare(value, Value::Int32(-1)) == Ordering::Greater => 0,
        _ => -1,
    }
}
