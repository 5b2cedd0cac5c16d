//! JSON as far as an extension hands it on: texts, and objects of one field.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    String(String),
    Object(BTreeMap<String, Value>),
}

#[macro_export]
macro_rules! json {
    ({ $name:literal : $value:expr }) => {
        $crate::serde_json::Value::Object([($name.to_string(), $value)].into())
    };
}

pub use crate::json;
