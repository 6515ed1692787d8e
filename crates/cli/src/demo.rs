//! `loopbreaker demo`: six small scripted agents, judged live.

mod chant;
mod exact_loop;
mod healthy;
mod paraphrase;
mod ping_pong;
mod polling;
mod script;
mod show;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use loopbreaker::{DetectorsConfig, ReplayRules};

use crate::args::DemoArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::replay::json::JsonLines;
use crate::replay::run::Run;
use script::Agent;

pub(crate) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    let rules = ReplayRules::new(&DetectorsConfig::default());
    if args.json {
        let mut lines = JsonLines::new(io::stdout().lock(), false);
        for agent in agents() {
            lines.write(&judge(&rules, &agent))?;
        }
    } else {
        // Somebody who watches sees the steps come; a pipe gets them at once.
        let pace = if io::stdout().is_terminal() { Duration::from_millis(20) } else { Duration::ZERO };
        let mut out = anstream::stdout().lock();
        show::begin(&mut out)?;
        for agent in agents() {
            show::agent(&mut out, &agent, &judge(&rules, &agent), pace)?;
        }
        show::end(&mut out)?;
    }
    Ok(Exit::Fine)
}

fn agents() -> [Agent; 6] {
    [
        healthy::agent(),
        polling::agent(),
        exact_loop::agent(),
        ping_pong::agent(),
        paraphrase::agent(),
        chant::agent(),
    ]
}

fn judge(rules: &ReplayRules, agent: &Agent) -> Run {
    let mut replay = rules.start();
    agent.steps.iter().for_each(|step| replay.observe(&step.as_step()));
    Run::new(agent.name.into(), replay.finish(), Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_of_the_six_agents_loop() {
        let rules = ReplayRules::new(&DetectorsConfig::default());
        let verdicts = agents().map(|agent| {
            let run = judge(&rules, &agent);
            (agent.name, run.report.verdict(), run.headline().map_or("-", |finding| finding.kind.as_str()))
        });
        assert_eq!(
            verdicts,
            [
                ("healthy", "ok", "-"),
                ("polling", "ok", "-"),
                ("exact-loop", "loop", "failing_repeat"),
                ("a-b-a-b", "loop", "cycle"),
                ("paraphrase-loop", "loop", "churn"),
                ("chant", "loop", "chant"),
            ]
        );
    }
}
