//! Collects what is wrong while a config is read, so that every mistake is told at once.

use std::cell::RefCell;

use crate::problem::Problem;
use crate::tree::Spot;

/// Everything that was found so far. Readers share it, and go on after a mistake.
#[derive(Debug, Default)]
pub(crate) struct Report {
    problems: RefCell<Vec<Problem>>,
    notices: RefCell<Vec<Problem>>,
    /// Those of other files, in the order of the files and of their texts.
    adopted: RefCell<Adopted>,
}

#[derive(Debug, Default)]
struct Adopted {
    problems: Vec<Problem>,
    notices: Vec<Problem>,
}

impl Report {
    /// More problems than this help nobody; a file of nothing but mistakes must not fill the memory with them.
    pub(crate) const MAX: usize = 1_000;

    /// Whether further problems are dropped, so that nobody needs to word them.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.borrow().len() > Self::MAX
    }

    pub(crate) fn problem(&self, problem: Problem) {
        push_bounded(&mut self.problems.borrow_mut(), problem);
    }

    pub(crate) fn notice(&self, notice: Problem) {
        push_bounded(&mut self.notices.borrow_mut(), notice);
    }

    /// Takes over what was found in another file.
    pub(crate) fn adopt(&self, file: &str, other: Self) {
        let adopted = &mut *self.adopted.borrow_mut();
        let (list, found) = match other.verdict() {
            Ok(notices) => (&mut adopted.notices, notices),
            Err(problems) => (&mut adopted.problems, problems),
        };
        for problem in found {
            push_bounded(list, Problem { file: Some(file.to_owned()), ..problem });
        }
    }

    /// The notices when all is well, else the problems: those of the text in its order, then those of other files.
    pub(crate) fn verdict(self) -> Result<Vec<Problem>, Vec<Problem>> {
        let Adopted { problems, notices } = self.adopted.into_inner();
        let together = |own: RefCell<Vec<Problem>>, adopted| {
            let mut all = in_text_order(own.into_inner());
            all.extend(adopted);
            all
        };
        let problems = together(self.problems, problems);
        if problems.is_empty() { Ok(together(self.notices, notices)) } else { Err(problems) }
    }
}

fn push_bounded(list: &mut Vec<Problem>, problem: Problem) {
    match list.len() {
        0..Report::MAX => list.push(problem),
        Report::MAX => {
            let message = format!("more than {} problems, the rest is not listed", Report::MAX);
            let hint = Some("fix these first, then check again".to_owned());
            // The last line of all, so that sorting keeps it at the end.
            list.push(Problem { hint, ..Problem::at(Spot { line: u64::MAX, column: 1 }, message) });
        }
        _ => {}
    }
}

fn in_text_order(mut list: Vec<Problem>) -> Vec<Problem> {
    list.sort_by_key(|problem| (problem.line, problem.column));
    if let [.., before, last] = list.as_mut_slice()
        && last.line == u64::MAX
    {
        (last.line, last.column) = (before.line, before.column);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::Report;
    use crate::problem::Problem;
    use crate::tree::Spot;

    fn problem(line: u64) -> Problem {
        Problem::at(Spot { line, column: 1 }, format!("at {line}"))
    }

    #[test]
    fn problems_come_out_in_the_order_of_the_text() {
        let report = Report::default();
        [3, 1, 2].map(problem).into_iter().for_each(|one| report.problem(one));
        let lines: Vec<u64> = report.verdict().unwrap_err().iter().map(|one| one.line).collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn a_file_of_nothing_but_mistakes_is_cut_off_and_says_so() {
        let report = Report::default();
        (1..=5_000).map(problem).for_each(|one| report.problem(one));
        let problems = report.verdict().unwrap_err();
        assert_eq!(problems.len(), Report::MAX + 1);
        let last = &problems[Report::MAX];
        assert_eq!((last.line, last.message.contains("more than 1000")), (1_000, true));
    }
}
