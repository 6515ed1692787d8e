//! What a person at a terminal is told when the gateway has started.

use std::io::{self, IsTerminal as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use loopbreaker_config::Config;
use loopbreaker_gateway::Gateway;

use crate::args::ServeArgs;
use crate::config_file;
use crate::failure::say;

/// What of the config is worth a line.
#[derive(Debug, Clone)]
pub(crate) struct Greeting {
    config: String,
    has_tokens: bool,
    in_shadow: bool,
}

impl Greeting {
    pub(crate) fn of(args: &ServeArgs, config: &Config) -> Self {
        let asked = args.config.file.as_ref().map(|file| file.display().to_string());
        let found = || std::path::Path::new(config_file::DEFAULT).exists();
        Self {
            config: match asked.filter(|name| !name.is_empty()) {
                Some(name) if name == "-" => "from stdin".to_owned(),
                Some(name) => name,
                None if found() => config_file::DEFAULT.to_owned(),
                None => format!("none, the defaults hold; {} is read when it is there", config_file::DEFAULT),
            },
            has_tokens: !config.admin.tokens.is_empty(),
            in_shadow: config.global_shadow.enabled,
        }
    }

    /// Tells it, where somebody reads along.
    pub(crate) fn show(&self, gateway: &Gateway, scheme: &str) {
        if io::stderr().is_terminal() {
            say(&self.text(gateway.address(), gateway.admin_address(), scheme));
        }
    }

    fn text(&self, address: SocketAddr, admin: Option<SocketAddr>, scheme: &str) -> String {
        let url = |at: SocketAddr| format!("{scheme}://{}", reachable(at));
        let agents = url(address);
        let control = admin.or((address.ip().is_loopback() || self.has_tokens).then_some(address)).map(url);
        let dashboard = control.as_deref().unwrap_or(
            "not served: others can reach this port, so set `admin.tokens` or `admin_listen` in the config",
        );
        let shadow = if self.in_shadow {
            "Shadow        nothing is changed or refused, only noted (`global_shadow`)\n"
        } else {
            ""
        };
        format!(
            "\nPoint your agents at it:\n  export OPENAI_BASE_URL={agents}/v1\n  export ANTHROPIC_BASE_URL={agents}\n  \
             export GOOGLE_GEMINI_BASE_URL={agents}\n\nDashboard     {dashboard}\nConfig        {}\n{shadow}\
             Is it alive?  loopbreaker probe {agents}\n\n",
            self.config
        )
    }
}

/// An address to connect to: one that means every address of this machine is none.
fn reachable(at: SocketAddr) -> SocketAddr {
    match at.ip() {
        ip if ip.is_unspecified() => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), at.port()),
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::Greeting;

    fn greeting() -> Greeting {
        Greeting { config: "loopbreaker.yaml".to_owned(), has_tokens: false, in_shadow: false }
    }

    #[test]
    fn the_dashboard_is_where_it_is_served() {
        let [local, all, admin] =
            ["127.0.0.1:4141", "0.0.0.0:4141", "127.0.0.1:9000"].map(|at| at.parse().unwrap());
        let line = |text: String| text.lines().find(|line| line.starts_with("Dashboard")).unwrap().to_owned();
        assert_eq!(line(greeting().text(local, None, "http")), "Dashboard     http://127.0.0.1:4141");
        assert_eq!(line(greeting().text(all, Some(admin), "http")), "Dashboard     http://127.0.0.1:9000");
        assert!(line(greeting().text(all, None, "http")).contains("set `admin.tokens`"));
        let with_tokens = Greeting { has_tokens: true, ..greeting() };
        assert_eq!(line(with_tokens.text(all, None, "https")), "Dashboard     https://127.0.0.1:4141");
    }

    #[test]
    fn agents_are_given_an_address_that_can_be_reached() {
        let text = greeting().text("0.0.0.0:4141".parse().unwrap(), None, "http");
        assert!(text.contains("export OPENAI_BASE_URL=http://127.0.0.1:4141/v1"));
        assert!(!text.contains("Shadow"));
        let shadow = Greeting { in_shadow: true, ..greeting() };
        assert!(shadow.text("127.0.0.1:4141".parse().unwrap(), None, "http").contains("only noted"));
    }
}
