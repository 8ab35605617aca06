//! Any state comes back as it was written.

use proptest::prelude::*;
use tollgate::store::Yaml;

use super::states::{NOW, state};
use super::yaml::file;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_state_comes_back_as_it_was_written(state in state()) {
        let (_folder, path) = file();
        Yaml::replace(&path, &state, NOW, None).unwrap();
        prop_assert_eq!(Yaml::peek(&path, NOW, None).unwrap(), state);
    }
}
