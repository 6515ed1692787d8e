//! nginx before a provider, with our snippet: it asks us, and sends what is allowed by itself.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::lab::{Lab, until};
use crate::talk::question;
use crate::wire::{Reply, Wire, request};

const SNIPPET: &str = include_str!("../../../../deploy/proxies/nginx.conf");

/// A running nginx.
struct Nginx {
    address: SocketAddr,
    child: Child,
    _folder: TempDir,
}

impl Nginx {
    /// Starts nginx with the snippet as it is, but for its ports.
    fn start(lab: &Lab) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let ports = [
            ("127.0.0.1:8080", address.to_string()),
            ("127.0.0.1:4141", lab.address.to_string()),
            ("127.0.0.1:9000", lab.mock.addr().to_string()),
        ];
        let snippet = ports.iter().fold(SNIPPET.to_owned(), |text, (port, own)| {
            assert!(text.contains(port), "{port} is not in the snippet");
            text.replace(port, own)
        });
        let folder = tempfile::tempdir().unwrap();
        let temp: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {}/{name};\n", folder.path().display()))
            .concat();
        let config = format!(
            "daemon off;\nmaster_process off;\npid {0}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{temp}{snippet}}}\n",
            folder.path().display()
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, config).unwrap();
        // Debian has it where only root looks for programs.
        let installed = "/usr/sbin/nginx";
        let child = Command::new(if std::path::Path::new(installed).exists() { installed } else { "nginx" })
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&file)
            .args(["-e", "stderr"])
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx is missing: install the Debian package `nginx`");
        until("nginx listens", || TcpStream::connect(address).is_ok());
        Self { address, child, _folder: folder }
    }

    fn ask(&self, headers: &[(&str, &str)], words: &str) -> Reply {
        let mut wire = Wire::connect(self.address);
        wire.send(&request("POST", "/v1/chat/completions", headers, question(words).as_bytes()));
        wire.reply()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn nginx_sends_what_is_allowed_and_refuses_the_rest() {
    let lab = Lab::with(
        "policies: [{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 2, period: 1h }] } }]",
    );
    let nginx = Nginx::start(&lab);
    let key = [("authorization", "Bearer sk-one")];
    for words in ["a", "b"] {
        let reply = nginx.ask(&key, words);
        assert_eq!((reply.status, reply.header("x-loopbreaker-verdict")), (200, Some("allow")));
        assert!(reply.header("x-loopbreaker-session").is_some());
    }
    assert_eq!(
        lab.mock.requests()[1].body,
        question("b").as_bytes(),
        "the provider gets the body from nginx"
    );
    let refused = nginx.ask(&key, "c");
    assert_eq!((refused.status, refused.code().as_str()), (429, "budget_exceeded"));
    assert_eq!(
        (refused.header("x-should-retry"), refused.header("x-loopbreaker-verdict")),
        (Some("false"), Some("reject"))
    );
    assert!(refused.header("retry-after").is_some());
    assert_eq!(nginx.ask(&[("authorization", "Bearer sk-two")], "c").status, 200);
    assert_eq!(lab.sent(), 3);
}

#[test]
fn clients_of_nginx_cannot_choose_their_tenant() {
    let lab = Lab::with(
        "kill_switches: [{ tenant: acme }]\npolicies: [{ id: p, spec: { rules: [{ id: r, key: tenant, requests: 1, period: 1h }] } }]",
    );
    let nginx = Nginx::start(&lab);
    let as_tenant =
        |tenant: &str| nginx.ask(&[("authorization", "Bearer sk-one"), ("x-tenant-id", tenant)], "a").status;
    assert_eq!([as_tenant("acme"), as_tenant("another")], [200, 429]);
}

#[test]
fn a_kill_switch_is_a_403_of_nginx() {
    let lab = Lab::with("kill_switches: [{ scope_key: \"header:x-team\", scope_value: red }]");
    let nginx = Nginx::start(&lab);
    let refused = nginx.ask(&[("x-team", "red")], "a");
    assert_eq!((refused.status, refused.code().as_str()), (403, "kill_switch"));
    assert_eq!(nginx.ask(&[("x-team", "blue")], "a").status, 200);
}

#[test]
fn when_we_are_away_nginx_lets_requests_pass() {
    let mut lab = Lab::new();
    let nginx = Nginx::start(&lab);
    assert_eq!(nginx.ask(&[], "a").status, 200);
    lab.signal(Signal::TERM);
    lab.ended();
    let reply = nginx.ask(&[], "b");
    assert_eq!((reply.status, lab.sent()), (200, 2));
}
