//! Logs as a fleet of agents writes them: the same for the same number.

/// Makes logs out of a few hundred words.
pub(crate) struct Logs {
    words: Vec<String>,
}

/// Steps of one session.
const SESSION: u64 = 200;
/// Every so many logs one holds the rare word.
const RARE: u64 = 100_000;

impl Logs {
    pub(crate) fn new() -> Self {
        let syllables =
            ["pa", "rser", "tok", "en", "mis", "sing", "lex", "er", "buf", "fer", "cache", "index"];
        let mut words: Vec<String> =
            ["parser", "missing", "failure", "buffer", "token", "build", "test", "repair"]
                .map(str::to_owned)
                .into();
        for first in syllables {
            words.extend(syllables.map(|second| format!("{first}{second}")));
        }
        Self { words }
    }

    /// A word that stands in few logs.
    pub(crate) const fn rare_word() -> &'static str {
        "zeitgeist"
    }

    /// The nth log, in one of a hundred sessions that go on at the same time.
    pub(crate) fn log(&self, number: u64) -> String {
        let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let session = number / (SESSION * 100) * 100 + number % 100;
        // One session in twenty goes round in circles.
        let looping = session.is_multiple_of(20);
        let mut words = |count: usize| -> String {
            let words: Vec<&str> = (0..count)
                .map(|_| if looping { "build" } else { self.words[random.below(self.words.len())].as_str() })
                .collect();
            words.join(" ")
        };
        let (intent, thought, input, output) = (words(6), words(20), words(8), words(40));
        let rare = if number.is_multiple_of(RARE) { Self::rare_word() } else { "" };
        let status = if looping || number.is_multiple_of(7) { "failure" } else { "success" };
        let (high, low) = (random.next(), random.next());
        let trace = format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 52,
            number & 0xffff_ffff_ffff
        );
        format!(
            r#"{{"meta":{{"trace_id":"{trace}","timestamp":"2026-02-21T10:00:00Z","session_id":"run-{session}"}},"identity":{{"agent_id":"agent-{}","agent_type":"coder","capability_version":"1.4.0"}},"cognition":{{"intent":"{intent} {rare}","reasoning_chain":["{thought}"]}},"action":{{"tool_call":"bash","tool_input":"{{\"command\":\"{input}\"}}","tool_output_summary":"{output}","status":"{status}"}},"state_delta":{{"tokens_consumed":412}}}}"#,
            session % 50
        )
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }
}
