use serde_json::{Value as Json, json};

use super::{Field, Fields, Span, encode_json, encode_protobuf};
use crate::Record;
use crate::spans::span::tests::full_record;
use crate::trace_context::Hex;

fn resource() -> Vec<(String, String)> {
    vec![("service.name".to_owned(), "gateway".to_owned())]
}

/// The fields of this number, as bytes.
fn all(message: &[u8], number: u32) -> Vec<&[u8]> {
    let fields = Fields(message).filter(|(field, _)| *field == number);
    fields
        .map(
            |(_, value)| if let Field::Bytes(bytes) = value { bytes } else { panic!("{number} is a number") },
        )
        .collect()
}

fn one(message: &[u8], number: u32) -> &[u8] {
    let [one] = all(message, number)[..] else { panic!("there is not one field {number}") };
    one
}

fn number(message: &[u8], number: u32) -> u64 {
    let found = Fields(message).find(|(field, _)| *field == number);
    let Some((_, Field::Number(found))) = found else { panic!("no number {number}") };
    found
}

/// An `AnyValue` as the JSON form shows it.
fn any_value(message: &[u8]) -> Json {
    let (field, value) = Fields(message).next().unwrap();
    match (field, value) {
        (1, Field::Bytes(text)) => json!({"stringValue": str::from_utf8(text).unwrap()}),
        (2, Field::Number(truth)) => json!({"boolValue": truth == 1}),
        (3, Field::Number(number)) => json!({"intValue": number.to_string()}),
        (4, Field::Number(bits)) => json!({"doubleValue": f64::from_bits(bits)}),
        (5, Field::Bytes(list)) => {
            json!({"arrayValue": {"values": all(list, 1).into_iter().map(any_value).collect::<Vec<_>>()}})
        }
        other => panic!("{other:?} is no value"),
    }
}

fn pairs(messages: Vec<&[u8]>) -> Json {
    let pair = |message| json!({"key": str::from_utf8(one(message, 1)).unwrap(), "value": any_value(one(message, 2))});
    messages.into_iter().map(pair).collect()
}

fn hex(bytes: &[u8]) -> String {
    Hex(bytes).to_string()
}

/// Reads the binary form into the JSON form, by the numbers of the published `.proto` files.
pub(in crate::spans) fn protobuf_as_json(request: &[u8]) -> Json {
    let resource_spans = one(request, 1);
    let scope_spans = one(resource_spans, 2);
    let scope = one(scope_spans, 1);
    let span = |span: &[u8]| {
        json!({
            "traceId": hex(one(span, 1)),
            "spanId": hex(one(span, 2)),
            "parentSpanId": all(span, 4).first().map_or_else(String::new, |id| hex(id)),
            "name": str::from_utf8(one(span, 5)).unwrap(),
            "kind": number(span, 6),
            "startTimeUnixNano": number(span, 7).to_string(),
            "endTimeUnixNano": number(span, 8).to_string(),
            "attributes": pairs(all(span, 9)),
            "status": {"code": all(span, 15).first().map_or(0, |status| number(status, 3))},
            "flags": number(span, 16),
        })
    };
    json!({"resourceSpans": [{
        "resource": {"attributes": pairs(all(one(resource_spans, 1), 1))},
        "scopeSpans": [{
            "scope": {
                "name": str::from_utf8(one(scope, 1)).unwrap(),
                "version": str::from_utf8(one(scope, 2)).unwrap(),
            },
            "spans": all(scope_spans, 2).into_iter().map(span).collect::<Vec<_>>(),
        }],
    }]})
}

#[test]
fn both_forms_say_the_same() {
    let records = [full_record(), Record::default()];
    let spans: Vec<_> = records.iter().map(|record| Span::of(record, [1; 16], [2; 8], false)).collect();
    let json: Json = serde_json::from_slice(&encode_json(&resource(), &spans)).unwrap();
    assert_eq!(protobuf_as_json(&encode_protobuf(&resource(), &spans)), json);
}

#[test]
fn the_json_form_is_that_of_the_standard() {
    let record = full_record();
    let span = Span::of(&record, [0xab; 16], [0xcd; 8], false);
    let body: Json = serde_json::from_slice(&encode_json(&resource(), &[span])).unwrap();
    let resource = &body["resourceSpans"][0]["resource"]["attributes"][0];
    assert_eq!(resource, &json!({"key": "service.name", "value": {"stringValue": "gateway"}}));
    let span = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], "ab".repeat(16));
    assert_eq!(span["spanId"], "cd".repeat(8));
    assert_eq!(span["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(span["kind"], 3);
    assert_eq!(span["status"], json!({"code": 2}));
    assert_eq!(span["startTimeUnixNano"], "1793923199250000001");
    let attributes = span["attributes"].as_array().unwrap();
    for expected in [
        json!({"key": "gen_ai.usage.input_tokens", "value": {"intValue": "1230"}}),
        json!({"key": "gen_ai.request.stream", "value": {"boolValue": true}}),
        json!({"key": "loopbreaker.cost_usd", "value": {"doubleValue": 0.01234}}),
        json!({"key": "loopbreaker.finding.kinds", "value": {"arrayValue": {"values": [
            {"stringValue": "cycle"}, {"stringValue": "repeat"},
        ]}}}),
    ] {
        assert!(attributes.contains(&expected), "{expected}");
    }
}
