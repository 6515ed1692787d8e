//! Far more checks than can be done, in this process.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use loopbreaker_embed::{Checker, CheckerOptions, Question, Results, Rule};

use crate::table::{Report, Times};
use crate::texts::text;

const PER_SECOND: u32 = 500;
const SECONDS: u32 = 4;

pub(crate) fn measure(report: &mut Report) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let checker = Checker::new(CheckerOptions::default())?;
    let (outcomes, times) = runtime.block_on(async {
        warm(&checker).await;
        let mut every = tokio::time::interval(Duration::from_secs(1) / PER_SECOND);
        let mut tasks = Vec::new();
        for number in 0..(PER_SECOND * SECONDS) as usize {
            every.tick().await;
            let checker = checker.clone();
            tasks.push(tokio::spawn(async move {
                let (text, session) = (text(64, number), (number % 100).to_string());
                let started = Instant::now();
                let reading = checker.check(&question(&session, &text)).await;
                (reading.how.name(), started.elapsed())
            }));
        }
        let (mut outcomes, mut times) = (BTreeMap::new(), Vec::new());
        for task in tasks {
            let (how, took) = task.await?;
            *outcomes.entry(how).or_insert(0_u32) += 1;
            times.push(took);
        }
        Ok::<_, tokio::task::JoinError>((outcomes, Times::new(times)))
    })?;
    // Equal and unlike texts are seen before and after a burst in less than a tenth of a millisecond.
    report.table("A burst of 500 checks per second, each to be embedded, 50 ms each", &["how", "checks"])?;
    for (how, count) in &outcomes {
        report.row(&[(*how).to_owned(), count.to_string()])?;
    }
    report.row(&["longest, ms".to_owned(), format!("{:.1}", times.quantile(1.0))])?;
    let longest = times.quantile(1.0);
    report.floor(format!("burst: the longest check takes {longest:.1} ms, at most 60"), longest <= 60.0);
    let count = |how| outcomes.get(how).copied().unwrap_or_default();
    let skipped = count("skipped");
    report.floor(format!("burst: {skipped} checks are skipped, at least one"), skipped > 0);
    let (embedded, degraded) = (count("embedded"), count("degraded"));
    report.floor(
        format!("burst: {embedded} checks are done, at least 10 per second"),
        embedded >= 10 * SECONDS,
    );
    report.floor(
        format!("burst: {degraded} checks run out of time, at most 1 in 100"),
        degraded * 100 <= PER_SECOND * SECONDS,
    );
    seen_before(&checker, &runtime, report)
}

fn seen_before(
    checker: &Checker,
    runtime: &tokio::runtime::Runtime,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    let text = text(64, usize::MAX);
    let times = runtime.block_on(async {
        let mut times = Vec::new();
        for _ in 0..2_000 {
            let started = Instant::now();
            checker.check(&question("equal", &text)).await;
            times.push(started.elapsed());
        }
        Times::new(times)
    });
    let p50 = times.quantile(0.5);
    report.table("A text that was there before", &["p50, ms", "p99, ms"])?;
    report.row(&[format!("{p50:.4}"), format!("{:.4}", times.quantile(0.99))])?;
    report.floor(format!("a text that was there before: p50 {p50:.4} ms < 0.1 ms"), p50 < 0.1);
    Ok(())
}

/// Until the model is loaded.
async fn warm(checker: &Checker) {
    for number in 0.. {
        let reading =
            checker.check_within(&question("warm", &text(16, number)), Duration::from_secs(5)).await;
        if reading.how.name() == "embedded" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn question<'a>(session: &'a str, text: &'a str) -> Question<'a> {
    Question {
        tenant: "acme",
        session,
        text,
        results: Results::None,
        threshold: 0.95,
        rule: Rule::Literal,
        trace: None,
    }
}
