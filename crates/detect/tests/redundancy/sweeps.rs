//! Paging that wraps round, and what only looks like it.

use loopbreaker::{Kind, Severity};

use crate::script::{Line, call, edit, loops, verdict};

fn page(number: usize) -> Line {
    call("list_items", &format!("{{\"page\":{number}}}"), &format!("items of page {number}"))
}

#[test]
fn pages_read_again_backwards_are_a_sweep() {
    let run: Vec<_> = (1..=5).rev().chain((3..=5).rev()).map(page).collect();
    assert_eq!(loops(&run), [Kind::Sweep]);
}

#[test]
fn the_page_may_be_any_of_the_numbers() {
    let part = |n: usize| {
        let args = format!("{{\"limit\":200,\"path\":\"big.log\",\"start\":{}}}", n * 200);
        call("read_file", &args, &format!("part {n} of it"))
    };
    let run: Vec<_> = (0..5).chain(0..3).map(part).collect();
    assert_eq!(loops(&run), [Kind::Sweep]);
}

#[test]
fn pages_of_another_list_in_between_do_not_hide_a_sweep() {
    let other = |number: usize| {
        call("list_items", &format!("{{\"list\":\"b\",\"page\":{number}}}"), &format!("b, page {number}"))
    };
    let run: Vec<_> = (1..=5).map(page).chain((1..=2).map(other)).chain((1..=3).map(page)).collect();
    assert_eq!(loops(&run), [Kind::Sweep]);
}

#[test]
fn two_pages_read_again_are_no_sweep() {
    let run: Vec<_> = (1..=5).chain(1..=2).map(page).collect();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn pages_that_were_read_in_no_order_are_no_sweep() {
    let run: Vec<_> = [1, 2, 3, 9, 4, 1, 2, 3].map(page).into();
    assert_ne!(verdict(&run), Some(Severity::Loop));
}

#[test]
fn pages_read_again_after_a_write_are_no_sweep() {
    let mut run: Vec<_> = (1..=5).map(page).collect();
    run.push(edit("items.json", "old", "new"));
    run.extend((1..=3).map(page));
    assert_eq!(verdict(&run), None);
}

#[test]
fn jobs_asked_after_in_turns_are_no_sweep() {
    let job = |id: usize| call("get_job_status", &format!("{{\"id\":{id}}}"), &format!("job {id}: queued"));
    let run: Vec<_> = (1..=5).chain(1..=5).map(job).collect();
    assert_eq!(verdict(&run), None);
}
