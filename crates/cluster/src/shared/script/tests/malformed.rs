use redis::Value;

use super::super::{Call, Id, Operation, Part, Response, ServerTime};
use super::fixture::Fixture;
use super::random::Random;

fn encoded(numbers: &[f64]) -> Value {
    Value::BulkString(numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
}

#[test]
fn malformed_responses_are_errors() {
    let rules = Fixture::tokens().rules;
    let amounts = [1].as_slice().into();
    let parts =
        [Part { name: b"k", rules: &rules, amounts, lease: None, view: None, wants_uses: false }];
    let time = ServerTime::default();
    let call =
        Call { operation: Operation::Read, id: Id([0; 16]), time, generation: 0, parts: &parts };
    assert!(Response::read(&call, &encoded(&[0., 5., 0., 0., 0., 1., 2., 3.])).is_ok());
    let malformed: [&[f64]; 9] = [
        &[],
        &[0., 5., 0., 0., 0., 1., 2.],
        &[0., 5., 0., 0., 0., 1., 2., 3., 4.],
        &[6., 5., 0., 0., 0., 1., 2., 3.],
        &[1., 5., 0., 1., 0., 1., 2., 3.],
        &[1., 5., 1., 0., 0., 1., 2., 3.],
        &[1., 5., 0., 0., -3., 1., 2., 3.],
        &[0., 0.5, 0., 0., 0., 1., 2., 3.],
        &[0., f64::NAN, 0., 0., 0., 1., 2., 3.],
    ];
    for numbers in malformed {
        let error = Response::read(&call, &encoded(numbers)).unwrap_err();
        assert!(error.to_string().starts_with("invalid response from the script: "), "{numbers:?}");
    }
    for value in [Value::Nil, Value::Int(1), Value::Okay, Value::Array(vec![])] {
        assert!(Response::read(&call, &value).is_err());
    }
    let mut random = Random(1);
    for length in 0..200 {
        let bytes = (0..length).map(|_| random.next().to_le_bytes()[0]).collect();
        assert!(Response::read(&call, &Value::BulkString(bytes)).is_err());
    }
}
