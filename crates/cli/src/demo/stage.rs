//! What the agents run on: a model that plays their scripts, and a gateway before it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use loopbreaker_config::{BaseUrl, Config};
use loopbreaker_gateway::Gateway;
use loopbreaker_mock::Mock;
use loopbreaker_telemetry::Telemetry;
use tempfile::TempDir;

use super::script::Agent;
use crate::failure::Failure;

/// Model and gateway, running.
pub(super) struct Stage {
    /// Where the gateway listens.
    pub(super) url: BaseUrl,
    gateway: Gateway,
    model: Mock,
    /// What the dashboard shows; gone with the demo.
    _kept: TempDir,
}

/// How long things take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// The model, before it answers.
    pub(super) think: Duration,
    /// The model, for each further word of a stream.
    pub(super) word: Duration,
    /// A tool.
    pub(super) work: Duration,
}

impl Pace {
    /// As it could be, if models were fast.
    pub(super) const LIVE: Self = Self {
        think: Duration::from_millis(280),
        word: Duration::from_millis(15),
        work: Duration::from_millis(170),
    };
    /// As it is, so that a person can follow it on the dashboard.
    pub(super) const SLOW: Self = Self {
        think: Duration::from_millis(900),
        word: Duration::from_millis(40),
        work: Duration::from_millis(600),
    };
    /// As fast as it goes.
    pub(super) const NONE: Self = Self { think: Duration::ZERO, word: Duration::ZERO, work: Duration::ZERO };
}

impl Stage {
    /// Starts both, the gateway with its defaults and a folder that lasts as long as it. One that stays takes the usual
    /// port if it is free.
    pub(super) fn set(agents: &[Agent], pace: Pace, stays: bool) -> Result<Self, Failure> {
        // Transcripts that a real provider refuses are refused here too.
        let model = Mock::builder().strict(true).recording(false).start("127.0.0.1:0")?;
        give_scripts(&model, agents, pace);
        let mut config = Config::default();
        config.upstreams = config.upstreams.all_at(&base_url(model.addr())?);
        if !stays || !is_free(config.listen) {
            config.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        }
        let kept = TempDir::with_prefix("loopbreaker-demo-")?;
        let folder = Some(kept.path().to_owned());
        let gateway = Gateway::start(config, folder, 1, Telemetry::quiet()).map_err(|error| {
            Failure::told(error.to_string(), "is this machine short of ports or threads?")
        })?;
        Ok(Self { url: base_url(gateway.address())?, gateway, model, _kept: kept })
    }

    /// Lets the model begin every script again.
    pub(super) fn rewind(&self, agents: &[Agent], pace: Pace) {
        give_scripts(&self.model, agents, pace);
    }

    /// Stops both.
    pub(super) fn clear(self) {
        self.gateway.stop(Duration::from_secs(1));
        self.model.shutdown();
    }
}

fn give_scripts(model: &Mock, agents: &[Agent], pace: Pace) {
    for agent in agents {
        model.script_for(agent.name, agent.steps.iter().map(|step| step.turn(pace)));
    }
}

fn base_url(address: SocketAddr) -> Result<BaseUrl, Failure> {
    BaseUrl::parse(&format!("http://{address}")).map_err(|error| Failure::told(error.to_string(), ""))
}

/// Whether nobody listens there; otherwise the demo takes any other port.
fn is_free(address: SocketAddr) -> bool {
    TcpListener::bind(address).is_ok()
}
