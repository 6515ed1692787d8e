use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use loopbreaker::Severity;

use super::{Backend, Checker, CheckerError, CheckerOptions};
use crate::{
    Degraded, EmbedError, Embedder, Embedding, How, ModelOptions, Question, Reading, Results, Rule, Skipped,
};

/// Texts with the same first word have the same direction; counts what it embeds.
#[derive(Default)]
struct FirstWord {
    embedded: Arc<AtomicUsize>,
    delay: Duration,
    /// From this text on it is fast.
    recovers: Option<usize>,
}

impl Embedder for FirstWord {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, EmbedError> {
        if self.recovers.is_none_or(|recovers| self.embedded.load(Ordering::SeqCst) < recovers) {
            std::thread::sleep(self.delay);
        }
        self.embedded.fetch_add(texts.len(), Ordering::SeqCst);
        let vector = |text: &&str| {
            let mut vector = vec![0.0; 26];
            vector[usize::from(text.to_lowercase().as_bytes()[0] % 26)] = 1.0;
            vector[25] += 0.01 * text.len() as f32;
            Embedding::new(vector)
        };
        Ok(texts.iter().map(vector).collect())
    }

    fn dimensions(&self) -> usize {
        26
    }
}

struct Scene {
    checker: Checker,
    embedded: Arc<AtomicUsize>,
}

fn scene() -> Scene {
    let embedder = FirstWord::default();
    let embedded = Arc::clone(&embedder.embedded);
    let options = CheckerOptions { timeout: Duration::from_secs(20), ..CheckerOptions::default() };
    Scene { checker: Checker::with_embedder(options, Arc::new(embedder)).unwrap(), embedded }
}

fn question(text: &str) -> Question<'_> {
    Question {
        tenant: "acme",
        session: "one",
        text,
        results: Results::Gave(7),
        threshold: 0.95,
        rule: Rule::Intent,
        trace: None,
    }
}

impl Scene {
    async fn say(&self, text: &str) -> Reading {
        self.checker.check(&question(text)).await
    }

    fn embedded(&self) -> usize {
        self.embedded.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn the_second_paraphrase_is_a_warning_and_the_third_a_loop() {
    let scene = scene();
    let (a, b, c) = ("look at the logs again", "look again at those logs", "look, the logs again");
    assert_eq!(scene.say(a).await.how, How::Prefiltered);
    let second = scene.say(b).await;
    assert_eq!(
        (second.severity, second.how, second.similar_count),
        (Some(Severity::Warning), How::Embedded, 1)
    );
    let third = scene.say(c).await;
    assert_eq!((third.severity, third.similar_count), (Some(Severity::Loop), 2));
    assert!(third.max_similarity > 0.95);
}

#[tokio::test]
async fn nothing_is_embedded_for_equal_texts_and_other_words() {
    let scene = scene();
    for text in ["first look", "all tests pass now", "first look", "shipping version two", "first look"] {
        scene.say(text).await;
    }
    assert_eq!(scene.embedded(), 0);
    assert_eq!(scene.checker.counters().now().of(How::Exact), 2);
    assert_eq!(scene.checker.counters().now().of(How::Prefiltered), 3);
}

#[tokio::test]
async fn three_equal_texts_with_unchanged_results_are_a_loop() {
    let scene = scene();
    scene.say("try again").await;
    assert_eq!(scene.say("try again").await.severity, Some(Severity::Warning));
    let third = scene.say("try again").await;
    assert_eq!((third.severity, third.max_similarity, third.how), (Some(Severity::Loop), 1.0, How::Exact));
}

#[tokio::test]
async fn an_order_for_the_same_is_a_loop_at_the_third_time_whatever_came_of_it() {
    let texts = [
        "Scan the video and note when two birds are in the picture",
        "Scan the whole video, then note when two birds are in its picture",
        "Scan that video again and note when two birds are in one picture",
    ];
    for (rule, expected) in [(Rule::Order, Severity::Loop), (Rule::Intent, Severity::Warning)] {
        let scene = scene();
        let mut severity = None;
        for (text, results) in texts.iter().zip((0..).map(Results::Gave)) {
            severity = scene.checker.check(&Question { results, rule, ..question(text) }).await.severity;
        }
        assert_eq!(severity, Some(expected), "{rule:?}");
    }
}

#[tokio::test]
async fn an_order_that_names_somebody_else_is_another_one() {
    let scene = scene();
    for (text, results) in ["Anna", "Otto", "Ines", "Paul"].iter().zip((0..).map(Results::Gave)) {
        let text = format!("Find out the play count of the songs by {text} for me");
        let asked = Question { results, rule: Rule::Order, ..question(&text) };
        assert_ne!(scene.checker.check(&asked).await.severity, Some(Severity::Loop));
    }
}

#[tokio::test]
async fn changed_results_keep_it_a_warning() {
    let scene = scene();
    for results in (0..5).map(Results::Gave) {
        let reading = scene.checker.check(&Question { results, ..question("try again") }).await;
        assert_ne!(reading.severity, Some(Severity::Loop));
    }
}

#[tokio::test]
async fn a_call_that_names_less_and_fails_as_before_found_out_nothing() {
    let fail = async |texts: &[&str], results: fn(usize) -> Results| {
        let scene = scene();
        let mut severity = None;
        for (at, text) in texts.iter().enumerate() {
            let asked = Question { results: results(at), ..question(text) };
            severity = scene.checker.check(&asked).await.severity;
        }
        severity
    };
    let less =
        ["open page 3 of a/b at line 7", "open page 3 of a/b at a line", "open a page of a/b at a line"];
    let more: Vec<_> = less.iter().rev().copied().collect();
    assert_eq!(fail(&less, |_| Results::Failed(1)).await, Some(Severity::Loop));
    assert_ne!(fail(&more, |_| Results::Failed(1)).await, Some(Severity::Loop), "something new is named");
    assert_ne!(fail(&less, |_| Results::Gave(1)).await, Some(Severity::Loop), "less is another question");
    assert_ne!(fail(&less, |at| Results::Failed(at as u64)).await, Some(Severity::Loop), "another failure");
}

#[tokio::test]
async fn another_page_is_another_thing_unless_the_rule_is_literal() {
    let scene = scene();
    for page in 1..6 {
        assert_eq!(scene.say(&format!("open page {page} of the report")).await.severity, None);
    }
    assert_eq!(scene.embedded(), 0);
    let text = "open page 6 of the report";
    let literal = scene.checker.check(&Question { rule: Rule::Literal, ..question(text) }).await;
    assert_eq!((literal.severity, literal.similar_count), (Some(Severity::Loop), 5));
}

#[tokio::test]
async fn tenants_and_sessions_are_apart() {
    let scene = scene();
    for (tenant, session) in [("a", "b:c"), ("a:b", "c"), ("*", ""), ("a|b", ""), ("x}y", ""), ("a", "")] {
        let reading = scene.checker.check(&Question { tenant, session, ..question("go on") }).await;
        assert_eq!(reading.how, How::Prefiltered, "{tenant} {session}");
    }
}

#[tokio::test]
async fn a_request_without_text_is_not_checked() {
    let scene = scene();
    for text in ["", " \n\t"] {
        assert_eq!(scene.say(text).await.how, How::NoText);
    }
    assert_eq!(scene.checker.sessions(), 0);
}

#[tokio::test]
async fn a_model_that_is_slow_never_makes_a_request_late() {
    let embedder = FirstWord { delay: Duration::from_millis(300), ..FirstWord::default() };
    let options = CheckerOptions { timeout: Duration::from_millis(40), ..CheckerOptions::default() };
    let checker = Checker::with_embedder(options, Arc::new(embedder)).unwrap();
    checker.check(&question("look at the logs again")).await;
    let started = std::time::Instant::now();
    let late = checker.check(&question("look again at those logs")).await;
    assert_eq!((late.how, late.severity), (How::Degraded(Degraded::Timeout), None));
    assert!(started.elapsed() < Duration::from_millis(250), "{:?}", started.elapsed());
    let next = checker.check(&question("look, the logs again")).await;
    assert_eq!(next.how, How::Skipped(Skipped::Busy));
}

#[tokio::test]
async fn what_was_embedded_too_late_for_one_check_is_there_for_the_next() {
    let embedder = FirstWord { delay: Duration::from_millis(500), recovers: Some(2), ..FirstWord::default() };
    let embedded = Arc::clone(&embedder.embedded);
    let options = CheckerOptions { timeout: Duration::from_millis(200), ..CheckerOptions::default() };
    let checker = Checker::with_embedder(options, Arc::new(embedder)).unwrap();
    checker.check(&question("look at the logs again")).await;
    let late = checker.check(&question("look again at those logs")).await;
    assert_eq!(late.how, How::Degraded(Degraded::Timeout));
    while embedded.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    // By the pace of before there is room for nothing but the new text.
    let third = checker.check(&question("look, the logs again")).await;
    assert_eq!((third.how, third.severity), (How::Embedded, Some(Severity::Loop)));
}

#[tokio::test]
async fn when_time_is_short_the_newest_are_compared_first() {
    let scene = scene();
    for page in 1..=3 {
        // Each names another page, so none of them has to be embedded.
        assert_eq!(scene.say(&format!("look at page {page} of the logs")).await.severity, None);
    }
    assert_eq!(scene.embedded(), 0);
    // By the pace that is expected at first there is room for two texts: the new one and one of before.
    let literal = Question { rule: Rule::Literal, ..question("look at page 4 of the logs") };
    let reading = scene.checker.check_within(&literal, Duration::from_millis(59)).await;
    assert_eq!((reading.how, reading.similar_count, scene.embedded()), (How::Embedded, 1, 2));
}

#[tokio::test]
async fn the_most_similar_text_is_found_and_nothing_is_remembered_of_it() {
    let scene = scene();
    let others = ["open the door".into(), "look at the logs".into(), "read the notes".into()];
    let (at, similarity) = scene.checker.most_similar("look at those logs", &others).await.unwrap();
    assert_eq!(at, 1);
    assert!(similarity > 0.95, "{similarity}");
    assert_eq!(scene.checker.sessions(), 0);
    assert_eq!(scene.checker.most_similar("look at those logs", &[]).await, None);
}

#[tokio::test]
async fn a_burst_is_skipped_and_not_late() {
    let embedder = FirstWord { delay: Duration::from_millis(10), ..FirstWord::default() };
    let options = CheckerOptions { timeout: Duration::from_millis(50), ..CheckerOptions::default() };
    let checker = Checker::with_embedder(options, Arc::new(embedder)).unwrap();
    let burst = (0..500_u32).map(|number| {
        let checker = checker.clone();
        tokio::spawn(async move {
            let session = (number % 50).to_string();
            let text = format!("look at the logs again{}", "!".repeat(number as usize / 50));
            checker.check(&Question { session: &session, ..question(&text) }).await
        })
    });
    let mut readings = Vec::new();
    for task in burst.collect::<Vec<_>>() {
        readings.push(task.await.unwrap());
    }
    let skipped = readings.iter().filter(|reading| reading.how == How::Skipped(Skipped::Busy)).count();
    assert!(skipped > 100, "{skipped}");
    assert_eq!(readings.len(), 500);
}

#[tokio::test]
async fn a_model_that_is_not_there_degrades_and_equal_texts_are_still_seen() {
    let model = ModelOptions { path: Some("/nowhere".into()), ..ModelOptions::default() };
    let backend = Backend::InProcess { model, store: "memory".to_owned() };
    let checker = Checker::new(CheckerOptions { backend, ..CheckerOptions::default() }).unwrap();
    checker.check(&question("look at the logs")).await;
    let degraded = loop {
        let reading = checker.check(&question("look at those logs")).await;
        if reading.how == How::Exact {
            break checker.check(&question("look at some logs")).await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    assert!(matches!(degraded.how, How::Degraded(Degraded::Model) | How::Skipped(Skipped::Loading)));
}

#[test]
fn a_sidecar_has_to_be_named() {
    let options = CheckerOptions { backend: Backend::Sidecars(Vec::new()), ..CheckerOptions::default() };
    assert!(matches!(Checker::new(options).map(drop), Err(CheckerError::NoSidecar)));
}

#[test]
fn the_config_file_says_how() {
    let text = "semantic: { backend: sidecar, sidecars: [/run/a.sock], timeout: 30ms, size: 7, ttl: 10m }";
    let config = loopbreaker_config::Config::parse(text).unwrap();
    let options =
        CheckerOptions::from_config(&config.semantic, &config.detectors.semantic, |_| None).unwrap();
    assert!(matches!(&options.backend, Backend::Sidecars(addresses) if addresses.len() == 1));
    assert_eq!((options.timeout, options.size, options.ttl.as_secs()), (Duration::from_millis(30), 7, 600));
}
