//! Series of preferred numbers to which `$bucketAuto` rounds its boundaries.
//!
//! Sources: Renard series (ISO 3), E series (IEC 60063), 1-2-5 and the powers of two.

use document::Value;
use error::{Code, Error, Result};

/// A series: its numbers between one power of ten and the next; none for the powers of two.
#[derive(Clone, Debug)]
pub(super) struct Granularity {
    numbers: Vec<f64>,
}

const R5: &[u16] = &[10, 16, 25, 40, 63];
const R10: &[u16] = &[100, 125, 160, 200, 250, 315, 400, 500, 630, 800];
const R20: &[u16] =
    &[100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800, 900];
const R40: &[u16] = &[
    100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300, 315, 335, 355,
    375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950,
];
/// The server's R80 contains only the numbers between those of R40.
const R80: &[u16] = &[
    103, 109, 115, 122, 128, 136, 145, 155, 165, 175, 185, 195, 206, 218, 230, 243, 258, 272, 290, 307, 325, 345, 365,
    387, 412, 437, 462, 487, 515, 545, 580, 615, 650, 690, 730, 775, 825, 875, 925, 975,
];
const E6: &[u16] = &[10, 15, 22, 33, 47, 68];
const E12: &[u16] = &[10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82];
const E24: &[u16] = &[10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91];
const ONE_TWO_FIVE: &[u16] = &[10, 20, 50];

impl Granularity {
    pub fn parse(value: Value<'_>) -> Result<Granularity> {
        let Value::String(name) = value else {
            let kind = value.kind().alias();
            let message = format!("The $bucketAuto 'granularity' field must be a string, but found type: {kind}");
            return Err(Error::new(Code(40261), message));
        };
        let listed = |numbers: &[u16]| numbers.iter().map(|&number| f64::from(number)).collect();
        let numbers = match name {
            "R5" => listed(R5),
            "R10" => listed(R10),
            "R20" => listed(R20),
            "R40" => listed(R40),
            "R80" => listed(R80),
            "1-2-5" => listed(ONE_TWO_FIVE),
            "E6" => listed(E6),
            "E12" => listed(E12),
            "E24" => listed(E24),
            "E48" => e_series_of_three_digits(48),
            "E96" => e_series_of_three_digits(96),
            "E192" => e_series_of_three_digits(192),
            "POWERSOF2" => Vec::new(),
            _ => return Err(Error::new(Code(40257), format!("Unknown rounding granularity '{name}'"))),
        };
        Ok(Granularity { numbers })
    }

    /// Returns the next larger number of the series, never the number itself.
    pub fn round_up(&self, number: f64) -> f64 {
        let (Some(&first), Some(&last)) = (self.numbers.first(), self.numbers.last()) else {
            return if number == 0.0 { 0.0 } else { (number.log2().floor() + 1.0).exp2() };
        };
        if number == 0.0 || !number.is_finite() {
            return number;
        }
        let mut scale = 1.0;
        while number >= last * scale {
            scale *= 10.0;
            if number < first * scale {
                return first * scale;
            }
        }
        while number < first * scale {
            let smallest = first * scale;
            scale /= 10.0;
            if number >= last * scale {
                return smallest;
            }
        }
        self.numbers.iter().map(|candidate| candidate * scale).find(|&candidate| number < candidate).unwrap_or(number)
    }

    /// Returns the next smaller number of the series, never the number itself.
    pub fn round_down(&self, number: f64) -> f64 {
        let (Some(&first), Some(&last)) = (self.numbers.first(), self.numbers.last()) else {
            return if number == 0.0 { 0.0 } else { (number.log2().ceil() - 1.0).exp2() };
        };
        if number == 0.0 || !number.is_finite() {
            return number;
        }
        let mut scale = 1.0;
        while number <= first * scale {
            scale /= 10.0;
            if number > last * scale {
                return last * scale;
            }
        }
        while number > last * scale {
            let largest = last * scale;
            scale *= 10.0;
            if number <= first * scale {
                return largest;
            }
        }
        let mut descending = self.numbers.iter().rev().map(|candidate| candidate * scale);
        descending.find(|&candidate| candidate < number).unwrap_or(number)
    }

    pub fn is_powers_of_two(&self) -> bool {
        self.numbers.is_empty()
    }
}

/// Returns an E series of three digits, which follows its formula but for one number.
fn e_series_of_three_digits(steps: u32) -> Vec<f64> {
    let number = |step: u32| (10f64.powf(f64::from(step) / f64::from(steps)) * 100.0).round();
    (0..steps).map(|step| if steps == 192 && number(step) == 919.0 { 920.0 } else { number(step) }).collect()
}
