use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Desk, Refusal};
use crate::{EmbedError, Embedder, Embedding, ModelOptions};

const PLENTY: Duration = Duration::from_secs(60);

/// An embedder that waits for a word before each batch.
struct Gated {
    go: Mutex<Receiver<()>>,
    batches: Arc<Mutex<Vec<usize>>>,
    running: Arc<AtomicUsize>,
}

impl Embedder for Gated {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Embedding>, EmbedError> {
        self.running.fetch_add(1, Ordering::SeqCst);
        self.go.lock().unwrap().recv().unwrap();
        self.batches.lock().unwrap().push(texts.len());
        match texts[0] {
            "fail" => Err(EmbedError::Inference("on purpose".to_owned())),
            "panic" => panic!("on purpose"),
            _ => Ok(texts.iter().map(|text| Embedding::new(vec![text.len() as f32, 1.0])).collect()),
        }
    }

    fn dimensions(&self) -> usize {
        2
    }
}

struct Scene {
    desk: Arc<Desk>,
    go: Sender<()>,
    batches: Arc<Mutex<Vec<usize>>>,
    running: Arc<AtomicUsize>,
}

fn scene() -> Scene {
    let (go, wait) = channel();
    let (batches, running) = (Arc::default(), Arc::default());
    let gated = Gated { go: Mutex::new(wait), batches: Arc::clone(&batches), running: Arc::clone(&running) };
    Scene { desk: Arc::new(Desk::with(Arc::new(gated)).unwrap()), go, batches, running }
}

impl Scene {
    fn ask(&self, text: &str, within: Duration) -> tokio::task::JoinHandle<Result<usize, Refusal>> {
        let (desk, texts) = (Arc::clone(&self.desk), [Arc::from(text)]);
        tokio::spawn(async move { desk.vectors(&texts, within).await.map(|vectors| vectors.len()) })
    }

    async fn until(&self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn until_running(&self, batches: usize) {
        self.until(|scene| scene.running.load(Ordering::SeqCst) == batches).await;
    }
}

#[tokio::test]
async fn texts_that_arrive_together_are_embedded_together() {
    let scene = scene();
    let first = scene.ask("first", PLENTY);
    scene.until_running(1).await;
    let others = ["a", "b", "c", "a"].map(|text| scene.ask(text, PLENTY));
    scene.until(|scene| scene.desk.waiting() == 5).await;
    (0..2).for_each(|_| scene.go.send(()).unwrap());
    assert_eq!(first.await.unwrap(), Ok(1));
    for other in others {
        assert_eq!(other.await.unwrap(), Ok(1));
    }
    assert_eq!(*scene.batches.lock().unwrap(), [1, 3]);
}

#[tokio::test]
async fn an_identical_text_is_not_embedded_again() {
    let scene = scene();
    scene.go.send(()).unwrap();
    assert_eq!(scene.ask("same", PLENTY).await.unwrap(), Ok(1));
    assert_eq!(scene.ask("same", PLENTY).await.unwrap(), Ok(1));
    assert_eq!(scene.desk.embedded(), 1);
}

#[tokio::test]
async fn who_would_come_too_late_is_turned_away_at_once() {
    let scene = scene();
    let first = scene.ask("first", PLENTY);
    scene.until_running(1).await;
    assert_eq!(scene.ask("second", Duration::from_millis(1)).await.unwrap(), Err(Refusal::Busy));
    scene.go.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Ok(1));
}

#[tokio::test]
async fn who_waited_too_long_behind_a_slow_text_is_told_instead_of_being_embedded() {
    let scene = scene();
    let first = scene.ask("first", PLENTY);
    scene.until_running(1).await;
    let within = Duration::from_millis(200);
    let second = scene.ask("second", within);
    scene.until(|scene| scene.desk.waiting() == 2).await;
    tokio::time::sleep(within).await;
    scene.go.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Ok(1));
    assert_eq!(second.await.unwrap(), Err(Refusal::Busy));
    assert_eq!(*scene.batches.lock().unwrap(), [1]);
}

#[tokio::test]
async fn who_went_away_is_not_embedded() {
    let scene = scene();
    let first = scene.ask("first", PLENTY);
    scene.until_running(1).await;
    let second = scene.ask("second", PLENTY);
    scene.until(|scene| scene.desk.waiting() == 2).await;
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    scene.go.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Ok(1));
    scene.until(|scene| scene.desk.waiting() == 0).await;
    assert_eq!(*scene.batches.lock().unwrap(), [1]);
}

#[tokio::test]
async fn who_gave_up_turns_nobody_away() {
    let scene = scene();
    let first = scene.ask("first", PLENTY);
    scene.until_running(1).await;
    let given_up = ["a", "b", "c"].map(|text| scene.ask(text, PLENTY));
    scene.until(|scene| scene.desk.waiting() == 4).await;
    for asker in given_up {
        asker.abort();
        drop(asker.await);
    }
    assert_eq!(scene.desk.waiting(), 1, "what is being embedded still takes its time");
    first.abort();
    drop(first.await);
    assert_eq!(scene.desk.waiting(), 1, "whoever waits for it");
    scene.go.send(()).unwrap();
    scene.until(|scene| scene.desk.waiting() == 0).await;
    assert_eq!(*scene.batches.lock().unwrap(), [1]);
}

#[tokio::test]
async fn a_text_whose_vector_is_there_takes_no_room() {
    let scene = scene();
    scene.go.send(()).unwrap();
    assert_eq!(scene.ask("known", PLENTY).await.unwrap(), Ok(1));
    let first = scene.ask("first", PLENTY);
    scene.until_running(2).await;
    let (desk, texts) = (Arc::clone(&scene.desk), [Arc::from("known"), Arc::from("new")]);
    let both = tokio::spawn(async move { desk.vectors(&texts, PLENTY).await.map(|vectors| vectors.len()) });
    scene.until(|scene| scene.desk.waiting() == 2).await;
    (0..2).for_each(|_| scene.go.send(()).unwrap());
    assert_eq!((first.await.unwrap(), both.await.unwrap()), (Ok(1), Ok(2)));
}

#[tokio::test]
async fn a_failure_or_a_panic_is_told_and_the_next_text_is_embedded() {
    let scene = scene();
    (0..3).for_each(|_| scene.go.send(()).unwrap());
    for (text, told) in [("fail", "on purpose"), ("panic", "panicked")] {
        match scene.ask(text, PLENTY).await.unwrap() {
            Err(Refusal::Failed(reason)) => assert!(reason.contains(told), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(scene.ask("fine", PLENTY).await.unwrap(), Ok(1));
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_fails_every_text() {
    let desk = Desk::lazy(ModelOptions { path: Some("/nowhere".into()), ..ModelOptions::default() });
    let texts = [Arc::from("text")];
    let refusal = loop {
        match desk.vectors(&texts, PLENTY).await {
            Err(Refusal::Loading) => tokio::time::sleep(Duration::from_millis(1)).await,
            other => break other,
        }
    };
    assert!(matches!(refusal, Err(Refusal::Failed(reason)) if reason.contains("/nowhere")));
}
