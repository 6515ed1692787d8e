//! What one process did, another one knows.

use loopbreaker_fleet::{
    After, Aftermath, AnswerNamed, Ask, AttemptOver, ChargeAsk, ChargeOver, KnownPlace, Place, SharedKey,
    Struck, Told,
};

use super::server::{Cluster, Redis};
use super::{Process, attempt, charge, refused, times, transcript, used};

/// Leaves something behind, and waits until it is written.
async fn leave(process: &Process, aftermath: Aftermath) {
    process.link.leave(aftermath);
    process.link.written().await;
}

#[tokio::test]
async fn the_first_request_waits_for_the_first_connection() {
    let redis = Redis::start();
    let process = Process::join_with(&redis.url(), super::PATIENT);
    assert!(!process.link.is_there(), "nothing has run since it was opened");
    assert!(process.ask(&transcript(1, &[10])).await.is_new);
}

#[tokio::test]
async fn the_first_requests_find_their_scripts_loaded() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    one.ask(&transcript(1, &[10])).await;
    let asked = redis.command(&["INFO", "commandstats"]);
    let counted = asked.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap();
    assert!(counted.contains("calls=1,") && counted.contains("failed_calls=0"), "{counted}");
}

#[tokio::test]
async fn a_transcript_goes_on_forks_and_is_recognised_after_compaction_at_any_process() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    assert_eq!(one.secret, other.secret, "ids are the same everywhere");
    let first = one.ask(&transcript(1, &[10])).await;
    assert!(first.is_new && first.is_first);
    let second = other.ask(&transcript(1, &[10, 11])).await;
    assert_eq!((second.key, second.is_new, second.is_first), (first.key, false, false));
    let third = one.ask(&transcript(1, &[10, 11, 12])).await;
    assert_eq!(third.key, first.key);
    let retried = other.ask(&transcript(1, &[10, 11])).await;
    assert_eq!(retried.key, first.key, "an equal transcript is a retry");
    let fork = other.ask(&transcript(1, &[10, 11, 99])).await;
    assert_eq!((fork.key, fork.account, fork.is_new), (99, first.key, true), "it pays with its parent");

    let with_tails = |links: &[u128], tails: Vec<u128>| {
        let mut ask = transcript(1, links);
        let Place::Transcript { tails: own, .. } = &mut ask.place else { unreachable!() };
        *own = tails;
        ask
    };
    let told = one.ask(&with_tails(&[10, 11, 12, 13], vec![70])).await;
    assert_eq!(told.key, first.key);
    let compacted = other.ask(&with_tails(&[500], vec![71, 70])).await;
    assert_eq!((compacted.key, compacted.is_new), (first.key, false), "its last words are known");
    let elsewhere = other.ask(&transcript(2, &[10, 11])).await;
    assert!(elsewhere.is_new, "another tenant");
}

#[tokio::test]
async fn a_session_that_only_this_process_knows_keeps_its_key() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    let mut ask = transcript(1, &[10, 11]);
    let Place::Transcript { known, .. } = &mut ask.place else { unreachable!() };
    *known = Some(KnownPlace { key: 7, account: 5, name: Some("run-17".to_owned()) });
    let told = one.ask(&ask).await;
    assert_eq!((told.key, told.account, told.name.as_deref()), (7, 5, Some("run-17")));
}

#[tokio::test]
async fn a_session_that_was_named_once_keeps_its_name_and_lends_it_to_its_forks() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let place = Place::Named { key: 7, name: "run-17".to_owned() };
    let named = one.ask(&Ask { place, ..transcript(1, &[10]) }).await;
    assert_eq!((named.key, named.name.as_deref()), (7, Some("run-17")));
    let answered = Some(AnswerNamed { session: 7, thread: 900, window: Vec::new() });
    leave(&one, Aftermath { tenant: 1, answered, ..Aftermath::default() }).await;
    let goes_on = other.ask(&transcript(1, &[900, 901])).await;
    assert_eq!((goes_on.key, goes_on.account, goes_on.name.as_deref()), (7, 7, Some("run-17")));
    let fork = one.ask(&transcript(1, &[10, 902])).await;
    assert_eq!((fork.key, fork.account, fork.name.as_deref()), (902, 7, Some("run-17")));
    assert_eq!(one.ask(&transcript(1, &[20])).await.name, None, "it has no name");
}

#[tokio::test]
async fn a_budget_of_a_session_is_one_whether_it_is_named_or_goes_on() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    let charges = vec![loopbreaker_fleet::ChargeAsk { by_session: true, ..charge(9, 100, 5) }];
    let place = Place::Named { key: 7, name: "run-17".to_owned() };
    assert!(one.ask(&Ask { place, charges: charges.clone(), ..transcript(1, &[10]) }).await.is_reserved);
    let answered = Some(AnswerNamed { session: 7, thread: 900, window: Vec::new() });
    leave(&one, Aftermath { tenant: 1, answered, ..Aftermath::default() }).await;
    let goes_on = one.ask(&Ask { charges, ..transcript(1, &[900, 901]) }).await;
    assert_eq!(goes_on.standings[0].used, 5);
}

#[tokio::test]
async fn an_answer_that_was_named_is_where_its_session_goes_on() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let first = one.ask(&transcript(1, &[10])).await;
    let aftermath =
        Aftermath { tenant: 1, answered: Some(named(first.key, 900, b"")), ..Aftermath::default() };
    leave(&one, aftermath).await;
    let next = other.ask(&transcript(1, &[900, 901])).await;
    assert_eq!((next.key, next.is_new), (first.key, false));
}

/// An answer of a session, and what led to it.
fn named(session: u128, thread: u128, window: &[u8]) -> AnswerNamed {
    AnswerNamed { session, thread, window: window.to_vec() }
}

#[tokio::test]
async fn what_led_to_an_answer_is_told_to_whoever_goes_on_from_it_and_to_nobody_else() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let first = one.ask(&transcript(1, &[10])).await;
    assert_eq!((first.window, first.kept.len()), (None, 0));
    let aftermath = Aftermath {
        tenant: 1,
        strikes: Some(Struck { session: first.key, account: first.key, tip: 1, loops: vec![(77, 3)] }),
        answered: Some(named(first.key, 900, b"a window")),
        ..Aftermath::default()
    };
    leave(&one, aftermath).await;
    let asks_for_it = |tenant| Ask { thread: Some(900), ..transcript(tenant, &[900, 901]) };
    let next = other.ask(&asks_for_it(1)).await;
    assert_eq!((next.window.as_deref(), next.kept), (Some(&b"a window"[..]), vec![(77, 3)]));
    assert_eq!(other.ask(&asks_for_it(2)).await.window, None, "another tenant has no such answer");
    assert_eq!(other.ask(&transcript(1, &[900, 902])).await.window, None, "it was not asked about");
    let lasts: i64 = redis.command(&["EVAL", TTL_OF_WINDOW, "0"]).parse().unwrap();
    assert!(lasts > 0, "it expires");
}

const TTL_OF_WINDOW: &str = "return redis.call('TTL', redis.call('KEYS', 'lb:*:v:*')[1])";

#[tokio::test]
async fn of_each_session_the_windows_of_its_last_answers_are_kept() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    let key = one.ask(&transcript(1, &[10])).await.key;
    let windows = "local all = redis.call('KEYS', 'lb:*:v:*') \
                   for at, key in ipairs(all) do all[at] = redis.call('GET', key) end \
                   table.sort(all) return table.concat(all, ' ')";
    for answer in 1..=7_u8 {
        let window = [b'0' + answer];
        let answered = Some(named(key, 900 + u128::from(answer), &window));
        let aftermath = Aftermath { tenant: 1, answered, ..Aftermath::default() };
        leave(&one, aftermath).await;
    }
    assert_eq!(redis.command(&["EVAL", windows, "0"]), "4 5 6 7");
}

#[tokio::test]
async fn who_goes_on_from_an_answer_waits_a_moment_for_it_and_counts_once() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let first = one.ask(&transcript(1, &[10])).await;
    let goes_on = Ask {
        thread: Some(900),
        awaits_answer: true,
        attempts: vec![attempt(5, 1)],
        ..transcript(1, &[900, 901])
    };
    let asked = std::time::Instant::now();
    let (told, ()) = tokio::join!(other.ask(&goes_on), async {
        tokio::time::sleep(std::time::Duration::from_millis(4)).await;
        let answered = Some(named(first.key, 900, b"calls"));
        one.link.leave(Aftermath { tenant: 1, answered, ..Aftermath::default() });
    });
    let sent = times(&told);
    assert_eq!((told.key, told.window, sent), (first.key, Some(b"calls".to_vec()), vec![1]));
    assert!(asked.elapsed() >= std::time::Duration::from_millis(4));
    // One that nobody gives is not waited for.
    let unknown = Ask { thread: Some(800), attempts: vec![attempt(5, 2)], ..goes_on };
    let told = other.ask(&Ask { place: transcript(1, &[800, 801]).place, ..unknown }).await;
    let sent = times(&told);
    assert_eq!((told.window, sent), (None, vec![2]));
}

#[tokio::test]
async fn a_refusal_is_remembered_for_a_thread_whose_loops_are_not_known_yet() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let goes_on = Ask { thread: Some(900), ..transcript(1, &[10, 11]) };
    assert_eq!(one.ask(&goes_on).await.after, After::Judge);
    let refused = Aftermath { tenant: 1, refused: Some(refused(10, 11, 60_000)), ..Aftermath::default() };
    leave(&one, refused).await;
    assert!(matches!(other.ask(&goes_on).await.after, After::Refuse(_)));
}

#[tokio::test]
async fn strikes_are_kept_the_higher_one_wins_and_a_refusal_clears_them() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let looping =
        |tip: u128, shown| Ask { is_loop: true, strikes: vec![(77, shown)], ..transcript(1, &[10, tip]) };
    assert_eq!(one.ask(&looping(11, 2)).await.strikes, [2]);
    assert_eq!(other.ask(&looping(11, 0)).await.strikes, [2], "a compacted transcript shows fewer");
    let refused = Aftermath { tenant: 1, refused: Some(refused(10, 11, 400)), ..Aftermath::default() };
    leave(&one, refused).await;
    assert!(matches!(other.ask(&looping(11, 0)).await.after, After::Refuse(_)));
    let again = one.ask(&looping(11, 1)).await;
    assert!(matches!(again.after, After::Refuse(left) if left <= 400));
    assert_eq!(again.strikes, [1], "it is judged by what it shows");
    let changed = other.ask(&looping(12, 1)).await;
    assert_eq!(changed.after, After::Judge, "a transcript that has changed is judged");
    tokio::time::sleep(std::time::Duration::from_millis(450)).await;
    let (first, second) = tokio::join!(async { one.ask(&looping(11, 1)).await.after }, async {
        other.ask(&looping(11, 1)).await.after
    },);
    let let_through = [first, second].iter().filter(|after| **after == After::LetThrough).count();
    assert_eq!(let_through, 1, "once, whoever asks at the same time");
}

#[tokio::test]
async fn whoever_goes_round_right_after_the_last_chance_has_used_it_up() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let looping = |links: &[u128]| Ask { is_loop: true, strikes: vec![(77, 1)], ..transcript(1, links) };
    assert_eq!(one.ask(&looping(&[10, 11])).await.strikes, [1]);
    leave(&one, Aftermath { tenant: 1, refused: Some(refused(10, 11, 1)), ..Aftermath::default() }).await;
    // Its time is over as soon as another millisecond is.
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    assert_eq!(other.ask(&looping(&[10, 11])).await.after, After::LetThrough);
    assert_eq!(one.ask(&looping(&[10, 11, 12])).await.strikes, [u32::MAX]);
    assert_eq!(one.ask(&looping(&[10, 11, 12, 13])).await.strikes, [1], "it is over with that");
}

#[tokio::test]
async fn equal_requests_are_counted_over_all_processes_and_leave_with_the_window() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let sent = |id, window_millis| {
        let mut ask = transcript(1, &[10]);
        ask.attempts = vec![loopbreaker_fleet::AttemptAsk { window_millis, ..attempt(5, id) }];
        ask
    };
    for (id, process) in [(1, &one), (2, &other), (3, &one)] {
        assert_eq!(times(&process.ask(&sent(id, 60_000)).await), [id as u32]);
    }
    // The provider failed, so that one was no attempt.
    let over = AttemptOver { window: SharedKey::new(5, None), id: 3, taken_back: true };
    let taken_back = Aftermath { tenant: 1, attempts: vec![over], ..Aftermath::default() };
    leave(&other, taken_back).await;
    assert_eq!(times(&one.ask(&sent(4, 60_000)).await), [3]);
    let started = std::time::Instant::now();
    let mut id = 10;
    loop {
        id += 1;
        let counted = one.ask(&sent(id, 200)).await.attempts[0].times;
        if counted == 1 {
            break;
        }
        assert!(started.elapsed().as_secs() < 30);
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
}

#[tokio::test]
async fn of_equal_requests_no_more_are_kept_than_there_is_use_for() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    for (most, expected) in [(3, "3"), (1_200, "1200")] {
        let key = most.into();
        for id in 0..1_250 {
            let attempts = vec![loopbreaker_fleet::AttemptAsk { most, ..attempt(key, id) }];
            let counted = one.ask(&Ask { attempts, ..transcript(1, &[10]) }).await.attempts[0].times;
            assert!(counted <= most + 1, "{counted}");
        }
        let kept = "local most = 0 for _, key in ipairs(redis.call('KEYS', 'lb:*:w:*')) do \
                    most = math.max(most, redis.call('ZCARD', key)) end return most";
        assert_eq!(redis.command(&["EVAL", kept, "0"]), expected);
    }
}

/// Two attempts overlap and end; then another one is made.
async fn overlapping_attempts_count_once(url: &str) {
    let (one, other) = (Process::join(url).await, Process::join(url).await);
    let sampled = |id| {
        let mut ask = transcript(1, &[10]);
        ask.attempts = vec![loopbreaker_fleet::AttemptAsk { once_in_flight: true, ..attempt(5, id) }];
        ask
    };
    assert_eq!(times(&one.ask(&sampled(1)).await), [1]);
    let beside = other.ask(&sampled(2)).await.attempts[0];
    assert_eq!((beside.times, beside.counts), (1, false), "one is on its way elsewhere");
    let over = |id| AttemptOver { window: SharedKey::new(5, None), id, taken_back: false };
    let both = Aftermath { tenant: 1, attempts: vec![over(1), over(2)], ..Aftermath::default() };
    leave(&one, both).await;
    assert_eq!(times(&other.ask(&sampled(3)).await), [2]);
    let beside = one.ask(&sampled(4)).await.attempts[0];
    assert_eq!((beside.times, beside.counts), (2, false), "it fares as the one that it comes beside");
}

#[tokio::test]
async fn attempts_that_overlap_count_once_where_that_is_asked_for() {
    overlapping_attempts_count_once(&Redis::start().url()).await;
}

#[tokio::test]
async fn attempts_that_overlap_count_once_in_a_cluster_too() {
    overlapping_attempts_count_once(&Cluster::start().url()).await;
}

/// How many of 64 clients' requests fit into a budget of 1,000.
async fn admitted(url: &str) -> usize {
    let mut processes = Vec::new();
    for _ in 0..3 {
        processes.push(std::sync::Arc::new(Process::join(url).await));
    }
    let mut clients = Vec::new();
    for client in 0..64_u128 {
        let process = std::sync::Arc::clone(&processes[client as usize % 3]);
        clients.push(tokio::spawn(async move {
            let mut admitted = 0;
            for turn in 0..20_u128 {
                let mut ask = transcript(3, &[1_000 + client * 100 + turn]);
                ask.charges = vec![charge(9, 1_000, 1), charge(10, 5_000, 1)];
                let told: Told = process.ask(&ask).await;
                admitted += usize::from(told.is_reserved);
            }
            admitted
        }));
    }
    let mut all = 0;
    for client in clients {
        all += client.await.unwrap();
    }
    let mut ask = transcript(3, &[7]);
    ask.charges = vec![charge(10, 5_000, 1)];
    assert_eq!(
        processes[0].ask(&ask).await.standings[0].used,
        1_000,
        "what was refused took nothing elsewhere"
    );
    all
}

#[tokio::test]
async fn a_budget_lets_through_exactly_its_amount() {
    assert_eq!(admitted(&Redis::start().url()).await, 1_000);
}

#[tokio::test]
async fn a_budget_lets_through_exactly_its_amount_in_a_cluster() {
    assert_eq!(admitted(&Cluster::start().url()).await, 1_000);
}

#[tokio::test]
async fn a_reservation_is_settled_refunded_and_warned_of_once() {
    let redis = Redis::start();
    let (one, other) = (Process::join(&redis.url()).await, Process::join(&redis.url()).await);
    let asking = |estimate, window_millis| {
        let mut ask = transcript(1, &[10]);
        ask.charges = vec![loopbreaker_fleet::ChargeAsk {
            stages: vec![50, 80],
            window_millis,
            ..charge(9, 100, estimate)
        }];
        ask
    };
    for window in [Some(60_000), None] {
        let first = one.ask(&asking(60, window)).await;
        assert_eq!((first.is_reserved, first.standings[0].used, first.standings[0].stage), (true, 0, 1));
        let second = other.ask(&asking(60, window)).await;
        assert!(!second.is_reserved);
        assert_eq!(second.standings[0].used, 60);
        let over = |estimate, actual| ChargeOver {
            window_millis: window,
            estimate,
            at: first.at,
            ..used(9, 100, actual)
        };
        let settled = Aftermath { tenant: 1, charges: vec![over(60, 10)], ..Aftermath::default() };
        leave(&one, settled).await;
        let third = other.ask(&asking(60, window)).await;
        assert!(third.is_reserved);
        assert_eq!((third.standings[0].used, third.standings[0].stage), (10, 0), "that stage was told of");
        let refunded = Aftermath {
            tenant: 1,
            charges: vec![ChargeOver { at: third.at, ..over(60, 0) }],
            ..Aftermath::default()
        };
        leave(&other, refunded).await;
        assert_eq!(one.ask(&asking(0, window)).await.standings[0].used, 10);
        redis.command(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn what_was_absurdly_much_is_told_as_a_number_and_taken_back_without_what_others_used() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    for window in [Some(60_000), None] {
        let asking = |estimate| {
            let mut ask = transcript(1, &[10]);
            // A rule that only looks counts what does not fit as well.
            let charge = ChargeAsk { stops: false, window_millis: window, ..charge(9, 1_000, estimate) };
            ask.charges = vec![charge];
            ask
        };
        assert_eq!(one.ask(&asking(70)).await.standings[0].used, 0);
        for absurd in [1 << 50, 1 << 53, u64::MAX] {
            let reserved = one.ask(&asking(absurd)).await;
            assert_eq!(reserved.standings[0].used, 70, "{absurd}");
            assert!(one.ask(&asking(0)).await.standings[0].used >= 1 << 50, "{absurd}");
            let settled = ChargeOver {
                window_millis: window,
                estimate: absurd,
                at: reserved.at,
                limit: None,
                ..used(9, 1_000, 0)
            };
            leave(&one, Aftermath { tenant: 1, charges: vec![settled], ..Aftermath::default() }).await;
            assert_eq!(one.ask(&asking(0)).await.standings[0].used, 70, "{absurd}");
        }
        let lie = ChargeOver {
            window_millis: window,
            at: one.ask(&asking(0)).await.at,
            limit: None,
            ..used(9, 1_000, u64::MAX)
        };
        leave(&one, Aftermath { tenant: 1, charges: vec![lie], ..Aftermath::default() }).await;
        assert_eq!(one.ask(&asking(0)).await.standings[0].used, 1 << 53, "what a provider says is counted");
        redis.command(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn tenants_share_nothing_and_every_key_expires() {
    let redis = Redis::start();
    let one = Process::join(&redis.url()).await;
    for tenant in [1, 2] {
        let mut ask = transcript(tenant, &[10]);
        (ask.attempts, ask.charges) = (vec![attempt(5, 1)], vec![charge(9, 1, 1)]);
        let told = one.ask(&ask).await;
        assert!(told.is_new && told.is_reserved);
        assert_eq!(times(&told), [1]);
    }
    for key in redis.command(&["--scan", "--pattern", "lb:*"]).lines() {
        assert!(key.starts_with("lb:{000000000000000"), "{key} has the tenant's tag");
    }
    let expires = "local n = 0 for _, k in ipairs(redis.call('KEYS', 'lb:*')) do \
                   if redis.call('PTTL', k) < 0 then n = n + 1 end end return n";
    assert_eq!(redis.command(&["EVAL", expires, "0"]), "0");
}
