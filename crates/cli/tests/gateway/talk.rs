//! What agents send: transcripts that grow, in every dialect.

/// A transcript of chat completions under way.
#[derive(Debug, Clone)]
pub(crate) struct Chat {
    messages: Vec<String>,
    calls: usize,
    rest: String,
}

impl Chat {
    /// Begins with a task.
    pub(crate) fn new(task: &str) -> Self {
        let rest = r#""model":"gpt-4o""#.to_owned();
        Self { messages: vec![said("user", task)], calls: 0, rest }
    }

    /// A call and its result.
    pub(crate) fn call(mut self, command: &str, result: &str) -> Self {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        let args = text(&format!("{{\"command\":{}}}", text(command)));
        self.messages.push(format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"bash","arguments":{args}}}}}]}}"#
        ));
        let result = text(result);
        self.messages.push(format!(r#"{{"role":"tool","tool_call_id":"{id}","content":{result}}}"#));
        self
    }

    /// A call that is typed in words, and its result in words of the user.
    pub(crate) fn typed(mut self, words: &str, result: &str) -> Self {
        self.messages.push(said("assistant", words));
        self.messages.push(said("user", result));
        self
    }

    /// The same call with the same result, so often.
    pub(crate) fn again(self, times: usize) -> Self {
        (0..times).fold(self, |chat, _| chat.call("ls", "a.txt b.txt"))
    }

    /// New words of the user.
    pub(crate) fn user(mut self, words: &str) -> Self {
        self.messages.push(said("user", words));
        self
    }

    /// The beginning of an answer, with which the model is to go on.
    pub(crate) fn begun(mut self, words: &str) -> Self {
        self.messages.push(said("assistant", words));
        self
    }

    /// Without all but the first and the last `kept` messages, as a compaction leaves it.
    pub(crate) fn without_history(mut self, kept: usize) -> Self {
        let tail = self.messages.split_off(self.messages.len() - kept);
        self.messages.truncate(1);
        self.messages.extend(tail);
        self
    }

    pub(crate) fn body(&self) -> String {
        format!(r#"{{"messages":[{}],{}}}"#, self.messages.join(","), self.rest)
    }
}

/// A chat that has gone round so often.
pub(crate) fn looping(task: &str, times: usize) -> String {
    Chat::new(task).again(times).body()
}

/// A single question.
pub(crate) fn question(words: &str) -> String {
    Chat::new(words).body()
}

/// The same loop in each dialect, with its path.
pub(crate) fn looping_in_every_dialect(times: usize) -> Vec<(&'static str, String)> {
    let anthropic = |index: usize| {
        format!(
            r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"t{index}","name":"bash","input":{{"command":"ls"}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{index}","content":"a.txt b.txt"}}]}}"#
        )
    };
    let gemini = |_: usize| {
        r#"{"role":"model","parts":[{"functionCall":{"name":"bash","args":{"command":"ls"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"bash","response":{"output":"a.txt b.txt"}}}]}"#
            .to_owned()
    };
    let responses = |index: usize| {
        format!(
            r#"{{"type":"function_call","call_id":"c{index}","name":"bash","arguments":"{{\"command\":\"ls\"}}"}},{{"type":"function_call_output","call_id":"c{index}","output":"a.txt b.txt"}}"#
        )
    };
    let rounds = |round: &dyn Fn(usize) -> String| (0..times).map(round).collect::<Vec<_>>().join(",");
    vec![
        ("/v1/chat/completions", looping("fix it", times)),
        (
            "/v1/messages",
            format!(
                r#"{{"model":"claude-sonnet-4-5","max_tokens":64,"messages":[{{"role":"user","content":"fix it"}},{}]}}"#,
                rounds(&anthropic)
            ),
        ),
        (
            "/v1beta/models/gemini-2.5-pro:generateContent",
            format!(
                r#"{{"contents":[{{"role":"user","parts":[{{"text":"fix it"}}]}},{}]}}"#,
                rounds(&gemini)
            ),
        ),
        (
            "/v1/responses",
            format!(
                r#"{{"model":"gpt-4o","input":[{{"role":"user","content":"fix it"}},{}]}}"#,
                rounds(&responses)
            ),
        ),
    ]
}

fn said(role: &str, words: &str) -> String {
    format!(r#"{{"role":"{role}","content":{}}}"#, text(words))
}

fn text(words: &str) -> String {
    serde_json::to_string(words).unwrap()
}
