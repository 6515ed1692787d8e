//! The observatory: decision logs stored and searched, alerts, the causal graph, people in the loop.
