//! The gateway's own sections: what they mean when they are written, and when they are not.

#![expect(clippy::expect_used, reason = "a config that does not load ends its test")]

use std::time::Duration;

use loopbreaker::Timestamp;
use loopbreaker_config::{Breaker, Config, Dialect, LimitKey, LogPlace, Placement, Price, Role, State};

fn load(text: &str) -> Config {
    Config::parse(text).expect("the config is sound")
}

fn own() -> Config {
    load(include_str!("good/gateway.yaml"))
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    let config = Config::default();
    assert_eq!(config.listen.to_string(), "127.0.0.1:4141");
    assert_eq!((config.admin_listen, config.tls, config.data_dir), (None, None, None));
    assert_eq!(Config::DEFAULT_DATA_DIR, "~/.local/state/loopbreaker");
    let urls = Dialect::ALL.map(|dialect| config.upstreams.of(dialect).to_string());
    let expected =
        ["https://api.openai.com", "https://api.anthropic.com", "https://generativelanguage.googleapis.com"];
    assert_eq!(urls, expected);
    assert_eq!(config.upstreams.timeout, Duration::from_secs(600));
    assert_eq!(config.upstreams.breaker, Breaker { failures: 5, open_for: Duration::from_secs(30) });
    assert_eq!(config.state, State::Memory);
    assert_eq!((config.log.place, config.log.keep_prompts), (LogPlace::Sqlite, true));
    assert_eq!((config.log.max_age.as_secs(), config.log.max_bytes), (30 * 86_400, 10 << 30));
    assert_eq!((config.admin.tokens.len(), config.admin.trust_tenant_header), (0, false));
    assert_eq!((config.throttle.max_held, config.reject.status), (1_000, 429));
    assert_eq!((config.hint.placement, config.hint.message), (Placement::Prepend, None));
    assert!(!config.global_shadow.enabled && config.kill_switches.is_empty() && config.policies.is_empty());
}

#[test]
fn the_example_with_every_key_says_what_the_defaults_say() {
    let mut config = load(include_str!("good/every-key.yaml"));
    assert_eq!(config.data_dir.as_deref(), Some(Config::DEFAULT_DATA_DIR));
    assert_eq!(config.upstreams.routes.len(), 1);
    assert_eq!(config.admin.tokens[0].role, Role::Operator);
    assert_eq!(config.kill_switches[0].value, "acme");

    config.data_dir = None;
    config.upstreams.routes.clear();
    config.admin.tokens.clear();
    config.kill_switches.clear();
    config.notices.clear();
    assert_eq!(config, Config::default());
}

#[test]
fn a_placeholder_for_a_token_fits_no_token_and_is_told() {
    let config = load(include_str!("good/every-key.yaml"));
    assert_eq!(config.admin.tokens[0].sha256, [0; 32]);
    let told: Vec<_> = config.notices.iter().map(|notice| (notice.line, notice.path.as_str())).collect();
    assert_eq!(told, [(13, "admin.tokens[0].sha256")]);
}

#[test]
fn addresses_are_read_without_looking_anything_up() {
    let config = own();
    assert_eq!(config.listen.to_string(), "[::1]:4000");
    assert_eq!(config.admin_listen.map(|it| it.to_string()).as_deref(), Some("127.0.0.1:4001"));
}

#[test]
fn paths_keep_their_tilde() {
    let config = own();
    assert_eq!(config.data_dir.as_deref(), Some("~/loopbreaker"));
    assert_eq!(config.tls.map(|tls| tls.key).as_deref(), Some("~/loopbreaker/key.pem"));
}

#[test]
fn an_upstream_that_is_not_written_keeps_its_default() {
    let upstreams = own().upstreams;
    assert_eq!(upstreams.gemini.to_string(), "https://generativelanguage.googleapis.com");
    assert_eq!((upstreams.openai.port(), upstreams.openai.is_https()), (11434, false));
    assert_eq!(upstreams.anthropic.path(), "/anthropic");
}

#[test]
fn a_route_has_slashes_at_both_ends_and_speaks_openai_unless_it_says_otherwise() {
    let routes = own().upstreams.routes;
    let read: Vec<_> = routes.iter().map(|route| (&*route.prefix, route.dialect)).collect();
    assert_eq!(read, [("/groq/", Dialect::OpenAi), ("/vertex/", Dialect::Gemini)]);
}

#[test]
fn an_upstream_that_ends_with_the_version_is_mentioned() {
    let config = load("upstreams: { openai: https://api.openai.com/v1 }\n");
    assert_eq!(config.upstreams.openai.path(), "/v1");
    let expected = "requests bring `/v1` along, so they go to `https://api.openai.com/v1/v1/…`";
    assert_eq!((config.notices[0].column, &*config.notices[0].message), (22, expected));
}

#[test]
fn passwords_of_stores_are_kept_and_never_printed() {
    let config = own();
    let State::RedisCluster(url) = &config.state else { panic!("{:?}", config.state) };
    assert_eq!(url.as_str(), "redis+cluster://me:secret@cache:7000");
    assert!(matches!(&config.log.place, LogPlace::Postgres(url) if url.as_str().contains("secret")));
    assert!(!format!("{config:?}").contains("secret") && !config.explain().concat().contains("secret"));
}

#[test]
fn tokens_are_kept_as_their_hashes() {
    let tokens = own().admin.tokens;
    assert_eq!(tokens[0].sha256[..4], [0x9f, 0x86, 0xd0, 0x81]);
    assert_eq!((tokens[1].role, tokens[1].sha256[31]), (Role::Viewer, 0xae));
}

#[test]
fn headers_are_kept_in_lower_case() {
    assert_eq!(own().admin.tenant_header, "x-org");
}

#[test]
fn the_log_can_be_switched_off_in_one_word() {
    assert_eq!(load("log: off").log, load("log: { url: off }").log);
    assert_eq!(load("log: off").log.place, LogPlace::Off);
}

#[test]
fn a_pause_may_be_held_for_its_whole_time() {
    assert_eq!(load("pause: { hold: 30m }").pause.hold, Duration::from_secs(1_800));
}

#[test]
fn the_price_of_a_plain_name_wins_over_a_glob() {
    let prices = own().prices;
    let large =
        Price { input: 2.0, output: 8.0, cache_read: None, cache_write: Some(2.5), reasoning: Some(10.0) };
    assert_eq!(prices.of("house-large"), Some(&large));
    assert_eq!(prices.of("house-small").and_then(|price| price.cache_read), Some(0.05));
    assert_eq!(prices.of("gpt-5"), None);
}

#[test]
fn a_kill_switch_ends_at_its_moment() {
    let switches = own().kill_switches;
    let end = 1_798_761_600;
    assert!(
        switches[0].is_on(Timestamp::from_secs(end - 1)) && !switches[0].is_on(Timestamp::from_secs(end))
    );
    assert!(switches[1].is_on(Timestamp::from_secs(u64::MAX)));
    assert_eq!((&switches[1].key, switches[1].path.as_deref()), (&LimitKey::Agent, Some("/v1/messages")));
}

#[test]
fn the_moment_of_another_zone_is_the_same_moment() {
    assert_eq!(own().global_shadow.expires_at, Some(Timestamp::from_secs(1_798_761_600 - 3_600)));
}

#[test]
fn what_others_can_reach_is_explained_otherwise() {
    let admin = |text: &str| -> Vec<String> {
        load(text).explain().into_iter().filter(|line| line.starts_with("admin: ")).collect()
    };
    assert!(admin("listen: 127.0.0.1:80")[0].ends_with("serve this machine only"));
    let open = admin("listen: 0.0.0.0:80");
    assert!(open[0].ends_with("whoever asks the API is refused"), "{open:?}");
    let listen =
        |text: &str| load(text).explain().into_iter().find(|line| line.starts_with("listen: ")).unwrap();
    let alone = listen("listen: 0.0.0.0:80");
    assert!(alone.starts_with("listen: the gateway alone is at http://0.0.0.0:80"), "{alone}");
    assert!(alone.ends_with("set `admin.tokens` or `admin_listen`"), "{alone}");
    assert!(open[1].ends_with("the header `x-tenant-id` is not believed"), "{open:?}");
    let split = admin("listen: 0.0.0.0:80\nadmin_listen: 127.0.0.1:81\nadmin: { trust_tenant_header: true }");
    assert!(split[0].ends_with("serve this machine only") && split[1].contains("names the tenant; without"));
}

#[test]
fn nothing_is_said_to_be_enforced_in_the_global_shadow() {
    let explained = load("global_shadow: true").explain().join("\n");
    assert!(!explained.contains("enforced"), "{explained}");
    assert!(explained.contains("as long as global_shadow is on"), "{explained}");
}

#[test]
fn everything_that_is_set_is_explained() {
    let explained = own().explain().join("\n") + "\n";
    assert_eq!(explained, include_str!("good/gateway.explained"));
}
