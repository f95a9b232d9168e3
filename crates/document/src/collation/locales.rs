//! The locales that a 6.0 server accepts, by their ICU names, with their BCP 47 names.

/// Locales by name; each may be followed by `@collation=` and one of [`ROOT_KINDS`].
const LOCALES: &str = "af sq am ar hy as az bn be bs bs_Cyrl bg my ca chr zh zh_Hant hr cs da nl dz en en_US en_US_POSIX eo et ee fo \
    fil fi fr fr_CA gl ka de de_AT el gu ha haw he hi hu is ig smn id ga it ja kl kn kk km kok ko ky lkt lo lv ln lt dsb lb mk ms ml \
    mt mr mn ne se nb nn or om ps fa fa_AF pl pt pa ro ru sr sr_Latn si sk sl es sw sv ta te th bo to tr uk hsb ur ug vi wae cy yi \
    yo zu";

/// Kinds of order that every locale has.
const ROOT_KINDS: [&str; 2] = ["eor", "emoji"];

/// Kinds of order of single locales, with their names in BCP 47.
const KINDS: [(&str, &str, &str); 20] = [
    ("ar", "compat", "compat"),
    ("bn", "traditional", "trad"),
    ("zh", "standard", "standard"),
    ("zh", "stroke", "stroke"),
    ("zh", "zhuyin", "zhuyin"),
    ("zh", "unihan", "unihan"),
    ("zh_Hant", "standard", "standard"),
    ("zh_Hant", "pinyin", "pinyin"),
    ("zh_Hant", "zhuyin", "zhuyin"),
    ("zh_Hant", "unihan", "unihan"),
    ("fi", "traditional", "trad"),
    ("de", "phonebook", "phonebk"),
    ("de_AT", "phonebook", "phonebk"),
    ("ja", "unihan", "unihan"),
    ("ko", "unihan", "unihan"),
    ("kn", "traditional", "trad"),
    ("si", "dictionary", "dict"),
    ("sv", "standard", "trad"),
    ("es", "traditional", "trad"),
    ("vi", "traditional", "trad"),
];

/// Kinds of order that a server has but whose rules are not available here, with their locales;
/// `search` is one of every locale's.
const WITHOUT_RULES: [(&str, &str); 6] = [
    ("zh", "big5han"),
    ("zh", "gb2312han"),
    ("zh_Hant", "big5han"),
    ("zh_Hant", "gb2312han"),
    ("ko", "searchjl"),
    ("ln", "phonetic"),
];

/// Locales with the order of the root, so that rules for another of these locales can replace
/// theirs.
const UNTAILORED: &str = "en en_US ca nl fr fr_CA de de_AT id ga it lb ms pt sw zu";

/// Returns the BCP 47 name of a locale; `None` if a server does not know it.
pub(super) fn bcp47(name: &str) -> Option<String> {
    let (locale, kind) = match name.split_once("@collation=") {
        Some((locale, kind)) => (locale, Some(kind)),
        None => (name, None),
    };
    if !is_known(locale) {
        return None;
    }
    let tag = match locale {
        "en_US_POSIX" => "en-US-u-va-posix".to_owned(),
        locale => locale.replace('_', "-"),
    };
    let Some(kind) = kind else { return Some(tag) };
    let separator = if tag.contains("-u-") { "-" } else { "-u-" };
    let of_locale = KINDS.iter().find(|(of, name, _)| *of == locale && *name == kind).map(|(_, _, kind)| *kind);
    let kind = of_locale.or_else(|| ROOT_KINDS.iter().find(|name| **name == kind).copied())?;
    Some(format!("{tag}{separator}co-{kind}"))
}

/// Returns whether a server knows the locale, but its order is not available here.
pub(super) fn lacks_rules(name: &str) -> bool {
    let Some((locale, kind)) = name.split_once("@collation=") else { return false };
    is_known(locale) && (kind == "search" || WITHOUT_RULES.contains(&(locale, kind)))
}

fn is_known(locale: &str) -> bool {
    LOCALES.split_ascii_whitespace().any(|name| name == locale)
}

/// Returns the locale with the same order except that accents compare from the end (or from the
/// front), if there is one.
pub(super) fn with_accents(name: &str, backwards: bool) -> Option<&str> {
    match (name, backwards) {
        ("fr_CA", true) => Some(name),
        ("fr_CA", false) => Some("fr"),
        (name, false) => Some(name),
        (name, true) => UNTAILORED.split_ascii_whitespace().any(|other| other == name).then_some("fr_CA"),
    }
}

/// Returns a known locale that a misspelled one may mean: `en_us`, `EN-US`.
pub(super) fn suggestion(name: &str) -> Option<String> {
    let parts = name.split(['_', '-']).enumerate().map(|(index, part)| match (index, part.len()) {
        (0, _) => part.to_ascii_lowercase(),
        (_, 4) => part[..1].to_ascii_uppercase() + &part[1..].to_ascii_lowercase(),
        _ => part.to_ascii_uppercase(),
    });
    let mut canonical = name.is_ascii().then(|| parts.collect::<Vec<_>>().join("_"))?;
    while !is_known(&canonical) {
        canonical.truncate(canonical.rfind('_')?);
    }
    (canonical != name).then_some(canonical)
}
