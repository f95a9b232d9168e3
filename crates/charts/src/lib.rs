//! Line charts over a logarithmic scale, with the font and the colors of all plots.

use anyhow::{Context, Result, anyhow};
mod png;

pub use plotters;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use std::path::Path;

/// The font of all texts. It is part of the program, so that it works on systems without fonts.
const FONT: &str = "sans-serif";
const FONT_BYTES: &[u8] = include_bytes!("../font/DejaVuSans.ttf");

pub const COLORS: [RGBColor; 6] = [
    RGBColor(0x2c, 0x8a, 0x4b),
    RGBColor(0x1f, 0x5f, 0xb4),
    RGBColor(0xd9, 0x78, 0x1a),
    RGBColor(0x8e, 0x44, 0xad),
    RGBColor(0xc0, 0x39, 0x2b),
    RGBColor(0x55, 0x55, 0x55),
];

/// Registers the font. Must be called before anything is drawn; may be called again.
pub fn prepare() -> Result<()> {
    register_font(FONT, FontStyle::Normal, FONT_BYTES).map_err(|_| anyhow!("the font of the plots is invalid"))
}

pub struct Line {
    pub name: String,
    pub color: RGBColor,
    pub bold: bool,
    pub points: Vec<(f64, f64)>,
}

pub type Axis<'a> = (std::ops::Range<f64>, &'a dyn Fn(f64) -> String);

/// Draws lines over a logarithmic scale.
pub fn chart<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    title: &str,
    x_axis: Axis<'_>,
    lines: &[Line],
) -> Result<()> {
    let heights =
        || lines.iter().flat_map(|line| line.points.iter().map(|(_, height)| *height)).filter(|height| *height > 0.0);
    let lowest = heights().reduce(f64::min).unwrap_or(1.0);
    let highest = heights().fold(lowest * 10.0, f64::max);
    // Leave room for the legend above the lines.
    let (range, label) = x_axis;
    let mut chart = ChartBuilder::on(area)
        .caption(title, (FONT, 15))
        .margin(12)
        .x_label_area_size(28)
        .y_label_area_size(56)
        .build_cartesian_2d(range, (lowest * 0.8..highest * 8.0).log_scale())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .label_style((FONT, 13))
        .light_line_style(BLACK.mix(0.05))
        .x_labels(6)
        .x_label_formatter(&|x| label(*x))
        .y_label_formatter(&|height| format!("{height}"))
        .draw()
        .map_err(failed)?;
    for line in lines {
        let style = line.color.stroke_width(if line.bold { 2 } else { 1 });
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style))
            .map_err(failed)?
            .label(line.name.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font((FONT, 13))
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .draw()
        .map_err(failed)
}

pub fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("drawing: {error}")
}

/// A drawing area over pixels in memory.
pub type Bitmap<'p> = DrawingArea<BitMapBackend<'p>, Shift>;

/// Draws an image and writes it to `path` as PNG.
pub fn write_png(path: &Path, size: (u32, u32), draw: impl FnOnce(&Bitmap<'_>) -> Result<()>) -> Result<()> {
    let mut pixels = vec![0; size.0 as usize * size.1 as usize * 3];
    let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
    draw(&area)?;
    area.present().map_err(failed)?;
    drop(area);
    std::fs::write(path, png::encode(size, &pixels)?).with_context(|| format!("writing {}", path.display()))
}

/// Returns `name` as lower-case ASCII words joined by hyphens, for file names.
pub fn slug(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let plain: String = plain.collect();
    plain.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}
