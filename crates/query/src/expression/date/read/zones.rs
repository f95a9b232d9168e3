//! Time zones with alphabetic names.

/// Seconds east of UTC, in the order of the names.
#[rustfmt::skip]
const NAMED: [(&str, i32); 129] = [
    ("acdt", 37_800), ("acst", 34_200), ("addt", -7200), ("adt", -10_800), ("aedt", 39_600),
    ("aest", 36_000), ("ago", 0), ("ahdt", -32_400), ("ahst", -36_000), ("akdt", -28_800),
    ("akst", -32_400), ("amt", -13_840), ("apt", -10_800), ("ast", -14_400), ("awdt", 32_400),
    ("awst", 28_800), ("awt", -10_800), ("bdst", 7200), ("bdt", -36_000), ("bmt", -14_309),
    ("bst", 3600), ("cast", 34_200), ("cat", 7200), ("cddt", -14_400), ("cdt", -18_000),
    ("cemt", 10_800), ("cest", 7200), ("cet", 3600), ("chst", 36_000), ("cmt", -15_408),
    ("cpt", -18_000), ("cst", -21_600), ("cwt", -18_000), ("dmt", -1521), ("eat", 10_800),
    ("eddt", -10_800), ("edt", -14_400), ("eest", 10_800), ("eet", 7200), ("emt", -26_248),
    ("ept", -14_400), ("est", -18_000), ("ewt", -14_400), ("ffmt", -14_660), ("fmt", -4056),
    ("fri", -172_800), ("gdt", 39_600), ("gmt", 0), ("gst", 36_000), ("hdt", -34_200),
    ("hkst", 32_400), ("hkt", 28_800), ("hmt", -19_776), ("hpt", -34_200), ("hst", -36_000),
    ("hwt", -34_200), ("iddt", 14_400), ("idt", 10_800), ("imt", 25_025), ("ist", 7200),
    ("jdt", 36_000), ("jmt", 8440), ("jst", 32_400), ("kdt", 36_000), ("kmt", 5736),
    ("kst", 30_600), ("lst", 9394), ("mddt", -18_000), ("mdst", 16_279), ("mdt", -21_600),
    ("mest", 7200), ("met", 3600), ("mmt", 9017), ("mon", -432_000), ("mpt", -21_600),
    ("msd", 14_400), ("msk", 10_800), ("mst", -25_200), ("mwt", -21_600), ("nddt", -5400),
    ("ndt", -9052), ("noon", -43_200), ("now", 0), ("npt", -9000), ("nst", -12_600), ("nwt", -9000),
    ("nzdt", 46_800), ("nzmt", 41_400), ("nzst", 43_200), ("pddt", -21_600), ("pdt", -25_200),
    ("pkst", 21_600), ("pkt", 18_000), ("plmt", 25_590), ("pmt", -13_236), ("ppmt", -17_340),
    ("ppt", -25_200), ("pst", -28_800), ("pwt", -25_200), ("qmt", -18_840), ("rmt", 5794),
    ("sast", 7200), ("sat", -259_200), ("sdmt", -16_800), ("sjmt", -20_173), ("smt", -13_884),
    ("sst", -39_600), ("sun", -345_600), ("tbmt", 10_751), ("thu", -86_400), ("tmt", 12_344),
    ("tue", -518_400), ("uct", 0), ("utc", 0), ("wast", 7200), ("wat", 3600), ("wed", 0),
    ("wemt", 7200), ("west", 3600), ("wet", 0), ("wib", 25_200), ("wit", 32_400),
    ("wita", 28_800), ("wmt", 5040), ("yddt", -25_200), ("ydt", -28_800), ("ypt", -28_800),
    ("yst", -32_400), ("ywt", -28_800),
];

/// Returns the seconds east of UTC of a name in any case: an abbreviation, or a letter of the
/// military zones.
pub(super) fn seconds(name: &str) -> Option<i64> {
    let name = name.to_ascii_lowercase();
    let named = NAMED.binary_search_by(|(known, _)| known.cmp(&&*name)).ok().map(|at| i64::from(NAMED[at].1));
    named.or_else(|| military(&name).map(|hours| hours * 3600))
}

/// Returns the hours east of UTC: A to M without J eastwards, N to Y westwards, Z for none.
fn military(name: &str) -> Option<i64> {
    let [letter @ b'a'..=b'z'] = name.as_bytes() else { return None };
    match letter {
        b'z' => Some(0),
        b'a'..=b'i' => Some(i64::from(letter - b'a') + 1),
        b'k'..=b'm' => Some(i64::from(letter - b'k') + 10),
        b'n'..=b'y' => Some(-(i64::from(letter - b'n') + 1)),
        _ => None,
    }
}
