//! `\p{…}`: the properties of letters that PCRE 8 knows by name.

use super::Reason;

const MALFORMED: Reason = "malformed \\P or \\p sequence";
const UNKNOWN: Reason = "unknown property name after \\P or \\p";

/// Categories that PCRE2 treats as equal if case is ignored.
const OF_CASE: [&str; 3] = ["Ll", "Lt", "Lu"];

#[rustfmt::skip]
const OTHERS: [&str; 41] = [
    "Any", "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "L&", "Lm", "Lo", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No",
    "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Xan", "Xps", "Xsp", "Xuc", "Xwd",
    "Z", "Zl", "Zp", "Zs",
];

/// The scripts of Unicode 7.
#[rustfmt::skip]
const SCRIPTS: [&str; 125] = [
    "Arabic", "Armenian", "Avestan", "Balinese", "Bamum", "Bassa_Vah", "Batak", "Bengali", "Bopomofo",
    "Brahmi", "Braille", "Buginese", "Buhid", "Canadian_Aboriginal", "Carian", "Caucasian_Albanian",
    "Chakma", "Cham", "Cherokee", "Common", "Coptic", "Cuneiform", "Cypriot", "Cyrillic", "Deseret",
    "Devanagari", "Duployan", "Egyptian_Hieroglyphs", "Elbasan", "Ethiopic", "Georgian", "Glagolitic",
    "Gothic", "Grantha", "Greek", "Gujarati", "Gurmukhi", "Han", "Hangul", "Hanunoo", "Hebrew",
    "Hiragana", "Imperial_Aramaic", "Inherited", "Inscriptional_Pahlavi", "Inscriptional_Parthian",
    "Javanese", "Kaithi", "Kannada", "Katakana", "Kayah_Li", "Kharoshthi", "Khmer", "Khojki",
    "Khudawadi", "Lao", "Latin", "Lepcha", "Limbu", "Linear_A", "Linear_B", "Lisu", "Lycian", "Lydian",
    "Mahajani", "Malayalam", "Mandaic", "Manichaean", "Meetei_Mayek", "Mende_Kikakui",
    "Meroitic_Cursive", "Meroitic_Hieroglyphs", "Miao", "Modi", "Mongolian", "Mro", "Myanmar",
    "Nabataean", "New_Tai_Lue", "Nko", "Ogham", "Ol_Chiki", "Old_Italic", "Old_North_Arabian",
    "Old_Permic", "Old_Persian", "Old_South_Arabian", "Old_Turkic", "Oriya", "Osmanya", "Pahawh_Hmong",
    "Palmyrene", "Pau_Cin_Hau", "Phags_Pa", "Phoenician", "Psalter_Pahlavi", "Rejang", "Runic",
    "Samaritan", "Saurashtra", "Sharada", "Shavian", "Siddham", "Sinhala", "Sora_Sompeng", "Sundanese",
    "Syloti_Nagri", "Syriac", "Tagalog", "Tagbanwa", "Tai_Le", "Tai_Tham", "Tai_Viet", "Takri", "Tamil",
    "Telugu", "Thaana", "Thai", "Tibetan", "Tifinagh", "Tirhuta", "Ugaritic", "Vai", "Warang_Citi",
    "Yi",
];

pub(super) struct Property {
    pub text: String,
    /// Whether PCRE2 gives it another meaning if case is ignored.
    pub ignores_case: bool,
}

/// Parses `\p` or `\P` with the following text, and returns their length in bytes.
pub(super) fn read(text: &str) -> Result<(usize, Property), Reason> {
    let letter = if text.starts_with("\\P") { 'P' } else { 'p' };
    let behind = text.get(2..).unwrap_or_default();
    let (bytes, name) = match behind.strip_prefix('{') {
        Some(inside) => {
            let name = inside.split_once('}').ok_or(MALFORMED)?.0;
            (name.len() + 4, name)
        }
        None => {
            let letter = behind.chars().next().ok_or(MALFORMED)?;
            (2 + letter.len_utf8(), behind.get(..letter.len_utf8()).unwrap_or_default())
        }
    };
    let (name, letter) = match name.strip_prefix('^') {
        Some(name) if bytes > 3 => (name, if letter == 'p' { 'P' } else { 'p' }),
        _ => (name, letter),
    };
    let text = if OTHERS.contains(&name) || OF_CASE.contains(&name) {
        format!("\\{letter}{{{name}}}")
    } else if SCRIPTS.contains(&name) {
        // Without `sc`, PCRE2 includes the letters that are used with a script, too.
        format!("\\{letter}{{sc:{name}}}")
    } else {
        return Err(UNKNOWN);
    };
    Ok((bytes, Property { text, ignores_case: OF_CASE.contains(&name) }))
}
