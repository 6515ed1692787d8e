//! The page: one file, no network, readable without its script.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use loopbreaker_telemetry::mask;

use super::escape::Escaped;
use super::run;
use crate::number::{counted, dollars, grouped, percent};
use crate::replay::shelf::Shelf;
use crate::replay::totals::Totals;

pub(super) fn write<W: Write>(
    out: &mut W,
    shelf: &Shelf,
    totals: &Totals,
    inputs: &[PathBuf],
) -> io::Result<()> {
    write_head(out)?;
    write_headline(out, totals, inputs)?;
    write_legend(out)?;
    write_filter(out, totals)?;
    if shelf.left_out() > 0 {
        writeln!(
            out,
            r#"<p class="note">Of {} runs, the {} most interesting are shown: loops first, and those that wasted most. <code>--json</code> prints all.</p>"#,
            grouped(totals.runs),
            grouped(shelf.len()),
        )?;
    }
    out.write_all(b"<main>\n")?;
    for (index, shown) in shelf.runs().enumerate() {
        run::write(out, shown, index)?;
    }
    out.write_all(b"<p class=\"none\" hidden>No run fits the filter.</p>\n</main>\n")?;
    write_foot(out)
}

/// Only what carries the page's nonce is obeyed, and nothing may be loaded: even if agent text got past the escaping,
/// it could neither run nor phone home.
fn write_head<W: Write>(out: &mut W) -> io::Result<()> {
    let nonce = nonce();
    write!(
        out,
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Loopbreaker replay</title>
<style nonce="{nonce}">
{STYLE}</style>
<script nonce="{nonce}" type="module">
{SCRIPT}</script>
</head>
<body>
"#
    )
}

fn write_headline<W: Write>(out: &mut W, totals: &Totals, inputs: &[PathBuf]) -> io::Result<()> {
    let title = match totals.loops {
        0 => format!("No loops in {}", counted(totals.runs, "run", "runs")),
        loops => format!("{} of {} looped", grouped(loops), counted(totals.runs, "run", "runs")),
    };
    writeln!(out, "<header class=\"top\"><p class=\"brand\">Loopbreaker replay</p><h1>{title}</h1>")?;
    writeln!(out, "<p class=\"inputs\">{}</p>", Escaped(&mask(&names(inputs))))?;
    out.write_all(b"<dl class=\"numbers\">\n")?;
    let wasted = &totals.wasted;
    number(out, "runs", &grouped(totals.runs), &format!("{} read", counted(totals.steps, "step", "steps")))?;
    number(out, "loops", &grouped(totals.loops), &percent_of_runs(totals.loops, totals))?;
    number(out, "warnings", &grouped(totals.warnings), &percent_of_runs(totals.warnings, totals))?;
    let share = format!("{} of all steps", percent(wasted.steps as u64, totals.steps));
    number(out, "wasted steps", &grouped(wasted.steps as u64), &share)?;
    if wasted.tokens > 0 {
        number(out, "wasted tokens", &grouped(wasted.tokens), "where recorded")?;
    }
    if wasted.cost_usd > 0.0 {
        number(out, "wasted money", &dollars(wasted.cost_usd), "where recorded")?;
    }
    let obeyed = "if the first hint is obeyed";
    number(out, "avoidable steps", &grouped(totals.avoidable_steps), obeyed)?;
    number(out, "would be rejected", &grouped(totals.rejected), "runs that ignore every hint")?;
    out.write_all(b"</dl></header>\n")
}

fn percent_of_runs(runs: u64, totals: &Totals) -> String {
    format!("{} of runs", percent(runs, totals.runs))
}

fn number<W: Write>(out: &mut W, name: &str, value: &str, note: &str) -> io::Result<()> {
    writeln!(out, "<div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>")
}

fn write_legend<W: Write>(out: &mut W) -> io::Result<()> {
    out.write_all(LEGEND.as_bytes())
}

fn write_filter<W: Write>(out: &mut W, totals: &Totals) -> io::Result<()> {
    out.write_all(b"<form class=\"filter\" role=\"search\" hidden><fieldset><legend>Verdict</legend>\n")?;
    let choices =
        [("all", totals.runs), ("loop", totals.loops), ("warning", totals.warnings), ("ok", totals.ok())];
    for (verdict, count) in choices {
        let checked = if verdict == "all" { " checked" } else { "" };
        let count = grouped(count);
        writeln!(
            out,
            r#"<label><input type="radio" name="verdict" value="{verdict}"{checked}><span>{verdict} <small>{count}</small></span></label>"#
        )?;
    }
    out.write_all(FILTER_END.as_bytes())
}

fn write_foot<W: Write>(out: &mut W) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    write!(
        out,
        "<footer>Made by loopbreaker {version}. Every run was judged step by step, as if it were live: only what came \
         before a step was used. Steps are counted from 0.</footer>\n</body>\n</html>\n"
    )
}

fn names(inputs: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        if path == Path::new("-") { "stdin".into() } else { path.display().to_string() }
    };
    let shown: Vec<_> = inputs.iter().take(MAX_INPUTS).map(name).collect();
    match inputs.len().checked_sub(MAX_INPUTS) {
        Some(more @ 1..) => format!("{} and {} more", shown.join(", "), grouped(more as u64)),
        _ => shown.join(", "),
    }
}

/// Nobody who wrote the runs can have known it: the standard library's hash keys come from the system's randomness.
fn nonce() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const LEGEND: &str = include_str!("legend.html");
const FILTER_END: &str = "</fieldset>\n<label class=\"find\"><span>Find</span> <input type=\"search\" name=\"text\" \
    placeholder=\"id, tool, argument, reason\" autocomplete=\"off\"></label>\n\
    <output aria-live=\"polite\"></output></form>\n";
const MAX_INPUTS: usize = 4;
